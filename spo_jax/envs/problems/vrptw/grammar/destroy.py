"""The grammar of VRPTW destroy programs: the CVRP's, with time windows.

One more mechanism removes customers whose windows lie close together, and related removal (Shaw)
can count the distance between windows, too. Times are in the unit of distances.
"""

from spo_jax.envs.problems.cvrp.grammar.destroy import Destroys
from spo_jax.envs.problems.cvrp.grammar.removals import BODIES, MECHANISMS
from spo_jax.program.grammar.base import choice
from spo_jax.program.grammar.pieces import uses

_TIMELY = """
    the customers whose time windows lie closest to that of $around, among the $spread times as \
many nearest to it
    $left
    $seed
    $nearest
    left = left[: $spread * count]
    middle = ready[seed] + due[seed]
    left.sort(key=lambda node: abs(ready[node] + due[node] - middle))
    return left[:count]
    """

GRAMMAR = Destroys(
    "vrptw",
    "def destroy(dist, demands, capacity, ready, due, service, current_routes,\n"
    "            steps_since_improvement, rng):",
    ("demands", "ready", "due"),
    {**MECHANISMS, "shaw": 3.0, "timely": 2.0},
    {**BODIES, "timely": _TIMELY},
    (
        choice(
            "by_time",
            "option",
            {0.0: 1.0, 0.3: 1.0, 1.0: 1.0, 2.0: 0.5},
            when=uses("shaw"),
            plain=0.0,
        ),
    ),
).grammar()
