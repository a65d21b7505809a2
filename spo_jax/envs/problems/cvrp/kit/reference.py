"""The kit of the capacitated vehicle routing problem in plain Python; the native one equals it.

Arguments: dist [N, N] floats, dist[a][b] from a to b, the depot is node 0; demands [N] ints;
capacity an int; routes a list of lists of distinct customers from 1 to N - 1, without the depot,
empty ones allowed; rng has `random()`. Results are new lists. Removals return (partial routes,
removed customers), both in the order of the routes, so they can be applied one after the other;
emptied routes stay as []. Among equals the first wins. Raises ValueError for numbers out of range
and for customers that repeat, that dist does not have, or that are not in the routes where they
must be; TypeError for what is no number or list (`spo_jax.envs.problems.kit`).
"""

from spo_jax.envs.problems.cvrp.kit.insertions import (
    best_position,
    greedy_insertion,
    ordered_insertion,
    regret_insertion,
)
from spo_jax.envs.problems.cvrp.kit.removals import (
    radial_removal,
    random_removal,
    related_removal,
    remove,
    route_removal,
    segment_removal,
    string_removal,
    worst_removal,
)
from spo_jax.envs.problems.cvrp.kit.routes import (
    cost,
    loads,
    neighbors,
    savings,
    slack,
    vehicles,
)
from spo_jax.envs.problems.cvrp.kit.search import (
    or_opt,
    two_opt,
    two_opt_star,
)
from spo_jax.envs.problems.kit import nearest

__all__ = [
    "best_position",
    "cost",
    "greedy_insertion",
    "loads",
    "nearest",
    "neighbors",
    "or_opt",
    "ordered_insertion",
    "radial_removal",
    "random_removal",
    "regret_insertion",
    "related_removal",
    "remove",
    "route_removal",
    "savings",
    "segment_removal",
    "slack",
    "string_removal",
    "two_opt",
    "two_opt_star",
    "vehicles",
    "worst_removal",
]
