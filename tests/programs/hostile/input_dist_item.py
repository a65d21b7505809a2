# role: destroy
# problem: tsp
# expect: any-failure
# why: writes a distance
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    dist[0][1] = 0.0
    return current_tour[count:], current_tour[:count]
