# role: destroy
# problem: tsp
# expect: ok
# why: constant defaults, also on the entry function
def pick(tour, k=3, offset=0, scale=1.5, name="x", flag=None, pair=(1, 2)):
    return tour[offset : offset + k]

def destroy(dist, current_tour, steps_since_improvement, rng, fraction=0.2, verbose=False):
    removed = pick(current_tour, k=max(1, int(fraction * len(current_tour))))
    return current_tour[len(removed):], removed
