# role: destroy
# problem: tsp
# expect: ok
# why: the order of a set with None must not change a result
def destroy(dist, current_tour, steps_since_improvement, rng):
    marks = {(None, v) for v in current_tour}
    removed = [v for _, v in list(marks)[:4]]
    return [c for c in current_tour if c not in removed], removed
