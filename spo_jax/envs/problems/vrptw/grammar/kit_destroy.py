"""The grammar of VRPTW destroy programs that use the kit: the CVRP's, with removal by time."""

from spo_jax.envs.problems.cvrp.grammar.kit_destroy import (
    MECHANISMS,
    RELATIONS,
    REMOVALS,
    Destroys,
)
from spo_jax.program.grammar.base import choice
from spo_jax.program.grammar.kit import Removal
from spo_jax.program.grammar.pieces import uses

GRAMMAR = Destroys(
    "vrptw",
    "def destroy(dist, demands, capacity, ready, due, service, current_routes,\n"
    "            steps_since_improvement, rng):",
    {
        **REMOVALS,
        "related": Removal(
            "lns.related_removal(dist, demands, ready, service, $all, center, $count, rng, "
            "power=$power$how)",
            REMOVALS["related"].phrase,
        ),
        "timely": Removal(
            "lns.timely_removal(dist, ready, service, $all, center, $count, by_time=$by_time)",
            "the customers nearest to $around in place and time (weight of time $by_time)",
        ),
    },
    {**MECHANISMS, "timely": 2.5},
    {
        **RELATIONS,
        "time 0.3": (", by_time=0.3", " by distance and time of service (weight 0.3)"),
        "time 1": (", by_time=1", " by distance and time of service"),
    },
    (choice("by_time", "control", {0.2: 1.0, 0.5: 1.0, 1.0: 1.0}, when=uses("timely"), plain=0.5),),
).grammar()
