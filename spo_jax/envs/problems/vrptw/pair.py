"""Discovered by spo-jax: run vrptw-quick, round 3 (D3.02 with R3.17), discovery utility J =
0.617160, validated at 0.629439.

One step of the search makes a candidate from the current solution:

    rest, removed = destroy(dist, demands, capacity, ready, due, service, current_routes, steps, rng)
    candidate = repair(dist, demands, capacity, ready, due, service, rest, removed, steps, rng)

dist is the square matrix of distances: a NumPy array, or nested lists where the code only
writes dist[i][j]. demands[i] is the demand of node i; node 0 is the depot. ready[i] is when
service at node i can begin at the earliest. due[i] is when it must have begun; due[0] is when
the depot closes. service[i] is how long service at node i takes. steps counts the steps since
the best cost last fell. rng is a random.Random. `lns` is the kit, of which
`spo export` writes what a pair uses into its file; `spo solve` reads this one.
"""

import lns
import math


def destroy(dist, demands, capacity, ready, due, service, current_routes,
            steps_since_improvement, rng):
    """Remove from sqrt(n) to 50 customers at random from the lower half, but 50 on every 3rd
    step without improvement, taking separate regions of 20, each of customers related by
    distance and time of service to those chosen before them (power 5), starting from a
    random customer, or once 2 steps have passed without improvement strings of
    consecutive stops (length 10) of the routes around a random customer, half of them
    with up to 3 stops kept inside."""
    n = len(dist) - 1
    limit = max(1, int(0.35 * n))
    low = int(math.sqrt(n))
    high = max(low, min(limit, 50))
    burst = steps_since_improvement % 3 == 2
    size = high if burst else rng.randint(low, (low + high) // 2)
    size = max(1, min(limit, size))
    routes, removed_customers = current_routes, []
    while len(removed_customers) < size:
        count = min(20, size - len(removed_customers))
        left = [node for route in routes for node in route]
        center = rng.choice(left)
        if steps_since_improvement < 2:
            routes, removed = lns.related_removal(dist, demands, ready, service, routes, center,
                count, rng, power=5, by_time=1)
        else:
            routes, removed = lns.string_removal(dist, routes, center, count, rng,
                length=10, gap=3)
        removed_customers += removed
    return routes, removed_customers


def repair(dist, demands, capacity, ready, due, service, partial_routes,
           removed_customers, steps_since_improvement, rng):
    """Insert the removed customers one at a time, in random order, each at its cheapest
    place; make up to 100 tries (within 4000 insertions) and keep the shortest; polish
    each try at the inserted customers by 2-opt* and Or-opt in at most 30 moves."""
    tries = max(1, min(100, 4000 // len(removed_customers)))
    best, best_cost = None, float("inf")
    for attempt in range(tries):
        order = rng.sample(removed_customers, len(removed_customers))
        trial, added = lns.ordered_insertion(dist, demands, capacity, ready, due, service,
            partial_routes, order)
        trial = lns.two_opt_star(dist, demands, capacity, ready, due, service, trial,
            removed_customers, moves=30)
        trial = lns.or_opt(dist, demands, capacity, ready, due, service, trial,
            removed_customers, moves=30)
        added = lns.cost(dist, trial)
        if added < best_cost:
            best, best_cost = trial, added
    return best

