# role: destroy
# problem: tsp
# expect: ok
# why: helpers that call helpers
from itertools import chain

def clamp(x, low, high):
    return max(low, min(high, x))

def amount(n, z):
    return clamp(n // 10 + z, 1, int(0.35 * n))

def ring(tour, start, k):
    return list(chain(tour[start:], tour[:start]))[:k]

def destroy(dist, current_tour, steps_since_improvement, rng):
    k = amount(len(current_tour), steps_since_improvement)
    removed = ring(current_tour, rng.randrange(len(current_tour)), k)
    return [c for c in current_tour if c not in set(removed)], removed
