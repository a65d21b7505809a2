"""Small instances, and their optima by exhaustive search."""

from itertools import permutations

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.tsp.files import tsplib


def tsp(n, seed=0, scale=1.0):
    coords = np.random.default_rng(seed).random((n, 2)) * scale
    return Instance("tsp", f"t{n}", n, coords, tsplib.euclidean(coords))


def cvrp(n, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    coords = rng.random((n + 1, 2)) * scale
    demands = np.concatenate([[0], rng.integers(1, 10, n)])
    return Instance("cvrp", f"c{n}", n, coords, tsplib.euclidean(coords), demands, 15)


def shortest_tour(instance):
    """Every order of the nodes, the first one fixed."""
    d, n = instance.dist, instance.size
    return min(
        sum(d[a, b] for a, b in zip((0, *rest), (*rest, 0), strict=True))
        for rest in permutations(range(1, n))
    )


def shortest_tour_by_sets(instance):
    """Held and Karp: the shortest path from node 0 through every set of nodes to each of them."""
    d, n = instance.dist.tolist(), instance.size
    path = {(1 << k, k): d[0][k] for k in range(1, n)}
    for members in range(2, 1 << n, 2):
        inside = [k for k in range(1, n) if members >> k & 1]
        if len(inside) > 1:
            for last in inside:
                before = members ^ 1 << last
                path[members, last] = min(path[before, k] + d[k][last] for k in inside if k != last)
    return min(path[(1 << n) - 2, k] + d[k][0] for k in range(1, n))


def cheapest_routes(instance):
    """Best single routes of every set of customers, then the best partition, by bit sets."""
    d, n = instance.dist, instance.size
    route = {}
    for members in range(1, 1 << n):
        chosen = [k + 1 for k in range(n) if members >> k & 1]
        if instance.demands[chosen].sum() <= instance.capacity:
            route[members] = min(
                sum(d[a, b] for a, b in zip((0, *p), (*p, 0), strict=True))
                for p in permutations(chosen)
            )
    best = {0: 0.0}
    for members in range(1, 1 << n):
        lowest = members & -members
        best[members] = min(
            cost + best[members ^ part]
            for part, cost in route.items()
            if part & lowest and part & members == part
        )
    return best[(1 << n) - 1]
