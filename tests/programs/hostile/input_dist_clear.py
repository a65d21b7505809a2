# role: destroy
# problem: tsp
# expect: any-failure
# why: empties the distances
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    dist.clear()
    return current_tour[count:], current_tour[:count]
