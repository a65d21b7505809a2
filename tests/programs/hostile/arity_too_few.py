# role: destroy
# problem: tsp
# expect: any-failure
# why: too few parameters
def destroy(dist, current_tour, rng):
    return current_tour[2:], current_tour[:2]
