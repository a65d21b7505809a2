# role: destroy
# problem: tsp
# expect: rejected
# why: deep brackets
def destroy(dist, current_tour, steps_since_improvement, rng):
    x = @REPEAT 150 [@1@REPEAT 150 ]@
    y = @REPEAT 5000 -@1
    return current_tour[2:], current_tour[:2]
