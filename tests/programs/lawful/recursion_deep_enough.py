# role: destroy
# problem: tsp
# expect: ok
# why: recursion a few hundred deep
def destroy(dist, current_tour, steps_since_improvement, rng):
    def depth(k):
        return 0 if k == 0 else 1 + depth(k - 1)
    assert depth(400) == 400
    return current_tour[2:], current_tour[:2]
