# role: destroy
# problem: tsp
# expect: any-failure
# why: an integer where a list belongs
def destroy(dist, current_tour, steps_since_improvement, rng):
    return current_tour[1:], current_tour[0]
