"""The kit of the vehicle routing problem with time windows in plain Python; the native one equals
it.

Arguments: ready, due and service are lists of N numbers of the nodes, in the unit of dist, which
are travel times, too; ready[0] is when vehicles can leave the depot, due[0] when they must be back.
All else is as in the kit of the CVRP (`spo_jax.envs.problems.cvrp.kit.reference`), whose functions
these are; every place and every move keeps the capacity and the time windows. A route that is late
as it is given takes no customer of another. A route of one customer counts as in time.
"""

from spo_jax.envs.problems.cvrp.kit.removals import (
    radial_removal,
    random_removal,
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
)
from spo_jax.envs.problems.kit import nearest
from spo_jax.envs.problems.vrptw.kit.insertions import (
    best_position,
    greedy_insertion,
    ordered_insertion,
    regret_insertion,
)
from spo_jax.envs.problems.vrptw.kit.removals import (
    begins,
    related_removal,
    timely_removal,
)
from spo_jax.envs.problems.vrptw.kit.search import (
    exchange,
    or_opt,
    two_opt,
    two_opt_star,
)

__all__ = [
    "begins",
    "best_position",
    "cost",
    "exchange",
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
    "string_removal",
    "timely_removal",
    "two_opt",
    "two_opt_star",
    "worst_removal",
]
