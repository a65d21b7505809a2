# role: destroy
# problem: tsp
# expect: contained
# why: another thing under the kit's name
def destroy(dist, current_tour, steps_since_improvement, rng):
    import lns
    lns = max
    return lns(current_tour, dist)
