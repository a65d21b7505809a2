"""Written by hand with the kit: strings as in SISR (Christiaens and Vanden Berghe, 2020), removal by
place and time, and insertion by regret.

One step of the search makes a candidate from the current solution:

    rest, removed = destroy(dist, demands, capacity, ready, due, service, current_routes, steps, rng)
    candidate = repair(dist, demands, capacity, ready, due, service, rest, removed, steps, rng)

dist is the square matrix of distances: a NumPy array, or nested lists where the code only
writes dist[i][j]. demands[i] is the demand of node i; node 0 is the depot. ready[i] is when
service at node i can begin at the earliest. due[i] is when it must have begun; due[0] is when
the depot closes. service[i] is how long service at node i takes. steps counts the steps since
the best cost last fell. rng is a random.Random. `lns` is the kit, of which `spo export` writes
what a pair uses into its file; `spo solve` reads this one.
"""

import lns


def destroy(
    dist, demands, capacity, ready, due, service, current_routes, steps_since_improvement, rng
):
    """Remove 4 to 30 customers around a random one: strings of up to 10 consecutive stops of the
    routes near it, half of them with up to one stop kept inside, or with a probability of 0.4 the
    nearest in place and time (weight of time 0.2)."""
    n = len(dist) - 1
    size = max(1, min(int(0.35 * n), rng.randint(4, 30)))
    center = rng.randint(1, n)
    if rng.random() < 0.6:
        return lns.string_removal(dist, current_routes, center, size, rng, length=10, gap=1)
    return lns.timely_removal(dist, ready, service, current_routes, center, size, by_time=0.2)


def repair(
    dist,
    demands,
    capacity,
    ready,
    due,
    service,
    partial_routes,
    removed_customers,
    steps_since_improvement,
    rng,
):
    """Insert next the removed customer with the largest regret over its two cheapest routes, less
    half of what it adds, at its cheapest place, with a random factor on new routes; polish at the
    inserted customers by 2-opt* and Or-opt in at most 100 moves each."""
    problem = dist, demands, capacity, ready, due, service
    routes, _ = lns.regret_insertion(
        *problem, partial_routes, removed_customers,
        k=2, weight=0.5, fresh=rng.choice([0.5, 1, 1, 1, 2]),
    )
    routes = lns.two_opt_star(*problem, routes, removed_customers, moves=100)
    return lns.or_opt(*problem, routes, removed_customers, moves=100)
