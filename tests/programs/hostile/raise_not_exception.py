# role: destroy
# problem: tsp
# expect: crash
# why: raises an integer
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    raise 5
    return current_tour[count:], current_tour[:count]
