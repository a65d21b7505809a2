# role: destroy
# problem: tsp
# expect: any-failure
# why: a text of two letters unpacks too
def destroy(dist, current_tour, steps_since_improvement, rng):
    return 'ab'
