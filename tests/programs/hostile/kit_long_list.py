# role: destroy
# problem: tsp
# expect: any-failure
# why: a list too long for any instance
def destroy(dist, current_tour, steps_since_improvement, rng):
    import lns
    return lns.remove(current_tour, list(range(10**7)))
