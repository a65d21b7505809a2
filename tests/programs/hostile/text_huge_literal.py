# role: destroy
# problem: tsp
# expect: contained
# why: a decimal constant of thirty thousand digits
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    x = @REPEAT 30000 9@
    return current_tour[count:], current_tour[:count]
