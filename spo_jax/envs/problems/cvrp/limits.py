"""What bounds the routes of a CVRP besides the capacity: length, duration, number of vehicles.

`Instance.extra` has them under the names of `Limits`' fields; one without limits has none of these.
Workers import this module: keep its imports light.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from spo_jax.envs.instance import Instance
from spo_jax.errors import InputError
from spo_jax.program import Role

# Above a limit is what is above it by more than this share: a program may add the same ways in
# another order. Sums of a thousand ways differ by less.
ROUNDING = 1e-12
UNBOUNDED = 1 << 30  # vehicles


@dataclass(frozen=True)
class Limits:
    """Limits of an instance.

    Attributes:
        max_distance: Of a route, in units of `Instance.dist`.
        max_duration: Of a route: its length and the service times of its customers.
        max_vehicles: The most routes.
        service: [N] floats, 0 at the depot: how long the service of each customer takes.
    """

    max_distance: float
    max_duration: float
    max_vehicles: int
    service: tuple[float, ...]

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What `limit` of the kit takes after the matrix."""
        return self.max_distance, self.max_duration, self.max_vehicles, self.service

    def duration(self, rows: Any, route: Sequence[int]) -> tuple[float, float]:
        """The length of a route and its duration, added in the order of the walk.

        rows: `rows[a][b]` is the way from a to b.
        """
        length, clock, before = 0.0, 0.0, 0
        for node in route:
            way = rows[before][node]
            length += way
            clock = clock + way + self.service[node]
            before = node
        return float(length + rows[before][0]), float(clock + rows[before][0])

    def excess(self, rows: Any, routes: Iterable[Sequence[int]]) -> str:
        """What of a solution is above a limit, in a clause; "" if nothing is."""
        count = 0
        for route in routes:
            if not len(route):
                continue
            count += 1
            length, duration = self.duration(rows, route)
            if length > allowed(self.max_distance):
                return f"route {count} is {length:g} long, more than {self.max_distance:g}"
            if duration > allowed(self.max_duration):
                return f"route {count} takes {duration:g}, more than {self.max_duration:g}"
        if count > self.max_vehicles:
            return f"there are {count} routes, more than {self.max_vehicles}"
        return ""


def allowed(limit: float) -> float:
    """What is not above a limit."""
    return limit + ROUNDING * limit if limit < math.inf else limit


def limits_of(instance: Instance) -> Limits | None:
    """The limits of an instance; None if it has none."""
    extra = instance.extra
    if not extra.keys() & {"max_distance", "max_duration", "max_vehicles"}:
        return None
    service = extra.get("service")
    return Limits(
        float(extra.get("max_distance", math.inf)),
        float(extra.get("max_duration", math.inf)),
        int(extra.get("max_vehicles", UNBOUNDED)),
        (0.0,) * (instance.size + 1) if service is None else tuple(map(float, service)),
    )


def require_lone(instance: Instance) -> None:
    """Raises InputError for a customer whom no vehicle can serve alone within the limits."""
    limits = limits_of(instance)
    if limits is None:
        return
    for node in range(1, instance.size + 1):
        if wrong := limits.excess(instance.dist, [[node]]):
            raise InputError(
                f"{instance.name} has no solution: customer {node} cannot be served, as "
                f"{wrong.replace('route 1', 'a route to it alone')}"
            )


def told(role: Role, instances: Iterable[Instance], kit: bool) -> str:
    """What a contract says of the limits of some instances; "" where none has any.

    kit: whether programs can ask the kit for them.
    """
    found = [limits for each in instances if (limits := limits_of(each)) is not None]
    words = {
        "their length": any(each.max_distance < math.inf for each in found),
        "their duration (the length and the service times of their customers)": any(
            each.max_duration < math.inf for each in found
        ),
        "their number": any(each.max_vehicles < UNBOUNDED for each in found),
    }
    named = [word for word, holds in words.items() if holds]
    if not named:
        return ""
    listed = " and on ".join([", on ".join(named[:-1]), named[-1]] if named[1:] else named)
    lines = ["Limits", f"- Besides the capacity, routes have limits on {listed}."]
    if kit:
        lines += [_SLACK, _VEHICLES] if words["their number"] else [_SLACK]
        lines += [_KIT] if role == "repair" else []
    else:
        lines.append("- The arguments do not state them; a route of one customer keeps them.")
    lines.append(_REMOVED if role == "destroy" else _LOST)
    return "\n".join(lines)


_SLACK = (
    "- lns.slack(dist, routes, customer=0): for each route, how much longer it may get; with a "
    "customer, where it also serves that one. inf: without a limit."
)
_VEHICLES = "- lns.vehicles(dist): the most routes; 2 ** 30: without a limit."
_KIT = (
    "- The functions of the kit keep all of this. In loops of your own, a customer may enter route "
    "r where that adds at most lns.slack(dist, routes, customer)[r]. Insertions open a route too "
    "many only where a customer fits nowhere: then try another order."
)
_REMOVED = (
    "- What you return cannot break a limit. What you remove must fit into routes again: of full "
    "routes, take out customers that can change places."
)
_LOST = "- Routes that break a limit are lost: the step changes nothing."
