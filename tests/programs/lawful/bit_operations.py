# role: destroy
# problem: tsp
# expect: ok
# why: bit masks
def destroy(dist, current_tour, steps_since_improvement, rng):
    mask = 0
    for v in current_tour[::5]:
        mask |= 1 << v
    removed = [v for v in current_tour if mask >> v & 1]
    assert mask.bit_length() <= len(dist) + 1 and ~mask < 0 and bin(mask).count("1") == len(removed)
    return [v for v in current_tour if not mask & (1 << v)], removed
