# role: destroy
# problem: tsp
# expect: unstable
# why: the order of a set of functions must not change a result
def destroy(dist, current_tour, steps_since_improvement, rng):
    def make(k):
        return lambda: k
    picks = [f() for f in {make(v) for v in current_tour}]
    removed = picks[:4]
    return [v for v in current_tour if v not in removed], removed
