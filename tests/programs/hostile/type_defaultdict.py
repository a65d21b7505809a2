# role: destroy
# problem: tsp
# expect: any-failure
# why: a defaultdict of positions
def destroy(dist, current_tour, steps_since_improvement, rng):
    from collections import defaultdict
    d = defaultdict(int)
    for i, x in enumerate(current_tour[2:]):
        d[i] = x
    return d, current_tour[:2]
