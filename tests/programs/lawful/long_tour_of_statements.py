# role: destroy
# problem: tsp
# expect: ok
# why: two thousand statements
def destroy(dist, current_tour, steps_since_improvement, rng):
    k = 0
@REPEAT 2000     k += 1
@    k = k % 3 + 1
    return current_tour[k:], current_tour[:k]
