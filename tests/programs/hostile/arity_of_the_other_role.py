# role: repair
# problem: tsp
# expect: any-failure
# why: the parameters of destroy
def repair(dist, current_tour, steps_since_improvement, rng):
    return current_tour
