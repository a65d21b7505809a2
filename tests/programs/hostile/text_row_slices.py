# role: destroy
# problem: tsp
# expect: any-failure
# why: two thousand slices of a row
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    x = dist[0]@REPEAT 2000 [:]@
    return current_tour[count:], current_tour[:count]
