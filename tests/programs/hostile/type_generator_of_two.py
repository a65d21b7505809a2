# role: destroy
# problem: tsp
# expect: any-failure
# why: a generator of two unpacks too
def destroy(dist, current_tour, steps_since_improvement, rng):
    return (x for x in [current_tour[2:], current_tour[:2]])
