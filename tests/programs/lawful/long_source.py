# role: destroy
# problem: tsp
# expect: ok
# why: sixty thousand characters of comments
# @REPEAT 60000 x@
def destroy(dist, current_tour, steps_since_improvement, rng):
    return current_tour[2:], current_tour[:2]
