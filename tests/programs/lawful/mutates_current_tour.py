# role: destroy
# problem: tsp
# expect: ok
# why: mutates its own copy of the tour
def destroy(dist, current_tour, steps_since_improvement, rng):
    removed = [current_tour.pop(rng.randrange(len(current_tour))) for _ in range(4)]
    return current_tour, removed
