# role: destroy
# problem: tsp
# expect: contained
# why: a sum of nine hundred and fifty terms
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    x = 1@REPEAT 950 +1@
    return current_tour[count:], current_tour[:count]
