# role: destroy
# problem: tsp
# expect: rejected
# why: an asynchronous comprehension
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    async def c():
        return [x async for x in current_tour]
    return current_tour[count:], current_tour[:count]
