# role: destroy
# problem: tsp
# expect: any-failure
# why: nested comprehensions twenty-five deep
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    x = @REPEAT 25 [@1@REPEAT 25  for a in [1, 2]]@
    return current_tour[count:], current_tour[:count]
