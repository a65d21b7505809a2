# role: destroy
# problem: tsp
# expect: rejected
# why: the module behind a function of the kit
def destroy(dist, current_tour, steps_since_improvement, rng):
    import lns
    lns.cost.__self__.prepare(dist)
    return current_tour[4:], current_tour[:4]
