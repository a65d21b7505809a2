"""Discovered by spo-jax: run cvrp-solve, round 7 (D7.18 with R7.70), discovery utility J =
0.050543.

One step of the search makes a candidate from the current solution:

    rest, removed = destroy(dist, demands, capacity, current_routes, steps, rng)
    candidate = repair(dist, demands, capacity, rest, removed, steps, rng)

dist is the square matrix of distances: a NumPy array, or nested lists where the code only
writes dist[i][j]. demands[i] is the demand of node i; node 0 is the depot. steps counts the
steps since the best cost last fell. rng is a random.Random. `lns` is the kit, of which
`spo export` writes what a pair uses into its file; `spo solve` reads this one.
"""

import lns


def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    """Remove from 15 to 25 customers at random, taking strings of consecutive stops (length
    3 growing to 10 by one every 5 steps without improvement) of the routes around a
    random customer, half of them with up to 1 stops kept inside."""
    n = len(dist) - 1
    limit = max(1, int(0.35 * n))
    low = 15
    high = max(low, min(limit, 25))
    size = rng.randint(low, high)
    size = max(1, min(limit, size))
    center = rng.randint(1, n)
    length = min(10, 3 + steps_since_improvement // 5)
    return lns.string_removal(dist, current_routes, center, size, rng,
        length=length, gap=1)


def repair(dist, demands, capacity, partial_routes, removed_customers,
           steps_since_improvement, rng):
    """Insert next the removed customer with the largest regret over its 2 cheapest places
    less 0.5 times its insertion cost, each at its cheapest place; polish the result at
    the inserted customers by 2-opt* and Or-opt in at most 100 moves."""
    k = 2
    weight = 0.5
    best, added = lns.regret_insertion(dist, demands, capacity, partial_routes,
        removed_customers, k=k, weight=weight)
    best = lns.two_opt_star(dist, demands, capacity, best, removed_customers, moves=100)
    return lns.or_opt(dist, demands, capacity, best, removed_customers, moves=100)
