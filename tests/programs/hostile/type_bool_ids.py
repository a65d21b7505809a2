# role: destroy
# problem: tsp
# expect: any-failure
# why: True for node 1
def destroy(dist, current_tour, steps_since_improvement, rng):
    removed = [True]
    return [x for x in current_tour if x != 1], removed
