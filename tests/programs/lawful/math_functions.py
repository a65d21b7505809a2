# role: destroy
# problem: tsp
# expect: ok
# why: many functions of math
import math as m
from math import ceil, exp, floor, inf, log, sqrt

def destroy(dist, current_tour, steps_since_improvement, rng):
    n = len(current_tour)
    t = exp(-steps_since_improvement / max(1.0, sqrt(n))) + m.tanh(0.0) + m.gcd(4, 6) * 0 + m.fabs(-0.0)
    k = min(max(1, ceil(t * log(n + 1))), floor(0.35 * n))
    assert k < inf and m.isclose(m.pi, 3.14159, rel_tol=1e-4) and m.isfinite(t) and m.dist([0, 0], [3, 4]) == 5
    assert m.comb(5, 2) == 10 and m.factorial(3) == 6 and m.prod([1, 2]) == 2 and m.fsum([0.1] * 10) == 1.0
    return current_tour[k:], current_tour[:k]
