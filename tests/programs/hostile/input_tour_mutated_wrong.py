# role: destroy
# problem: tsp
# expect: invalid
# why: mutates the tour and returns it with the removed nodes still there
def destroy(dist, current_tour, steps_since_improvement, rng):
    removed = current_tour[:2]
    current_tour.reverse()
    return current_tour, removed
