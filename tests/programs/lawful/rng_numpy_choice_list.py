# role: destroy
# problem: tsp
# expect: ok
# why: choice of a list with a size returns an array
def destroy(dist, current_tour, steps_since_improvement, rng):
    removed = rng.choice(current_tour, size=4, replace=False)
    first = rng.choice(current_tour)
    removed = [int(v) for v in removed if v != first] + [first]
    return [x for x in current_tour if x not in removed], removed
