# role: destroy
# problem: tsp
# expect: ok
# why: import math inside the function
def destroy(dist, current_tour, steps_since_improvement, rng):
    import math
    n = len(current_tour)
    k = max(1, math.ceil(math.sqrt(n)) - 1 + int(math.log1p(steps_since_improvement)))
    k = min(k, math.floor(0.35 * n))
    i = rng.randint(0, n - 1)
    idx = {(i + j) % n for j in range(k)}
    return [x for p, x in enumerate(current_tour) if p not in idx], [current_tour[p] for p in sorted(idx)]
