# role: destroy
# problem: tsp
# expect: ok
# why: slices with steps and negative indices
def destroy(dist, current_tour, steps_since_improvement, rng):
    removed = current_tour[1::4]
    partial = current_tour[:]
    partial[1::4] = [None] * len(removed)
    partial = [x for x in partial if x is not None]
    assert partial[-1] == partial[::-1][0] and current_tour[-len(current_tour)] == current_tour[-0]
    return partial, removed[::-1]
