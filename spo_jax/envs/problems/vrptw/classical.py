"""Five fixed classical VRPTW destroy operators: the unevolved half of the repair panel (A.5).

Random, worst, radial and string removal are the CVRP's, which do not look at times. Related removal
counts the distance between the middles of the windows besides that between the places (Shaw 1998).
"""

from spo_jax.envs.problems.cvrp.classical import CVRP_DESTROYS, SIZE, SPLIT
from spo_jax.program import Program

_HEAD = """\
def destroy(
    dist, demands, capacity, ready, due, service, current_routes, steps_since_improvement, rng
):
"""

_SHAW = f"""\
{_HEAD}{SIZE}\
    waiting = [node for route in current_routes for node in route]
    chosen = [waiting.pop(rng.randrange(len(waiting)))]
    while len(chosen) < size:
        pivot = rng.choice(chosen)
        row, middle = dist[pivot], ready[pivot] + due[pivot]
        unlike = {{}}
        for node in waiting:
            unlike[node] = row[node] + 0.25 * abs(ready[node] + due[node] - middle)
        waiting.sort(key=lambda node: unlike[node])
        chosen.append(waiting.pop(int(len(waiting) * rng.random() ** 6)))
{SPLIT}"""
_SHAW_STRATEGY = (
    "Remove between a tenth (at most 30) and 35% (at most 60) of the customers, each related by"
    " distance and time window to a random one already removed."
)


def _timed(program: Program) -> Program:
    """A destroy program of the CVRP with the arguments of the VRPTW."""
    source = _HEAD + program.source.split("\n", 1)[1]
    return Program.from_source("destroy", source, program.strategy, form="classical")


_SAME = (*CVRP_DESTROYS[:3], *CVRP_DESTROYS[4:])
VRPTW_DESTROYS: tuple[Program, ...] = (
    *map(_timed, _SAME),
    Program.from_source("destroy", _SHAW, _SHAW_STRATEGY, form="classical"),
)
"""The panel in the order random, worst, radial, adjacent strings, related."""
