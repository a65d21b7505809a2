# role: destroy
# problem: tsp
# expect: ok
# why: starred unpacking, chained comparison, conditional expressions
def destroy(dist, current_tour, steps_since_improvement, rng):
    first, *middle, last = current_tour
    a, (b, c), *_ = first, (last, middle[0]), 0, 0
    k = 2 if 0 <= steps_since_improvement < 3 else 4 if steps_since_improvement < 8 else 6
    removed = [first, *middle[: k - 1]]
    partial = [*middle[k - 1 :], last]
    assert a == first and b != c and not (a is None or b in ()) and a not in [b]
    return partial, removed
