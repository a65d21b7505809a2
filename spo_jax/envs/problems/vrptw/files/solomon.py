"""Files of the VRPTW: Solomon's and Homberger's instances (.txt) and CVRPLIB's solutions (.sol).

Distances, which are travel times too, are straight lines that are not rounded, as in the tables of
best known solutions that SINTEF keeps. Those of the DIMACS challenge are cut to one decimal, so
that its costs are not comparable. The fleet is free: the number of vehicles in the file is no
limit, and the objective is the total distance, not first the number of routes.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import NoReturn

import numpy as np

from spo_jax.envs.files.reading import AS_STATED, Reading
from spo_jax.envs.files.textfiles import (
    MAX_NODES,
    cost_text,
    read_text,
    shown,
    write_atomically,
)
from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.cvrp.files import cvrplib
from spo_jax.envs.problems.cvrp.files.loads import (
    Fail,
    amount,
    depots_own,
    free_fleet,
    positive,
    require_demand,
    whole,
    written,
)
from spo_jax.envs.problems.cvrp.rules import Routes
from spo_jax.envs.problems.tsp.files.tsplib import OTHER_DISTANCES, best_reference
from spo_jax.envs.problems.tsp.files.weights import weights_by
from spo_jax.envs.problems.vrptw.rules import ROUNDING, TIMES
from spo_jax.errors import InputError

_NOT_SOLOMON = "this is not Solomon's format; of another problem, say --problem"
_COLUMNS = ("number", "x", "y", "demand", "ready time", "due date", "service time")


_HEAD_WORDS = {"NUMBER", "CAPACITY", "CUST", "CUSTOMER", "NO", "ID", "X", "XCOORD", "Y", "YCOORD"}
_HEAD_WORDS |= {"COORD", "DEMAND", "READY", "DUE", "SERVICE", "TIME", "DATE", "DURATION"}
_HEADS = (("NUMBER", "CAPACITY"), ("CUST", "X", "Y", "DEMAND", "READY", "DUE", "SERVICE"))


@dataclass(frozen=True)
class _Solomon:
    """A file cut into its parts: lines are (number in the file, words)."""

    path: Path
    name: str
    vehicle: list[tuple[int, list[str]]]
    customers: list[tuple[int, list[str]]]

    def fail(self, message: str, line: int | None = None) -> NoReturn:
        where = f"{self.path}" if line is None else f"{self.path}, line {line}"
        raise InputError(f"{where}: {message}")


def read(path: str | Path, reading: Reading = AS_STATED) -> Instance:
    """An instance of a file with the sections VEHICLE and CUSTOMER, whose customer 0 is the depot.

    Nodes are the customers in the order of the file, which counts them from 0. Demands that are no
    whole numbers are scaled, which a remark says. `extra` has the rows of `rules.TIMES`, `file` the
    number of vehicles. The reference is the cost of the `.sol` beside the file.

    Raises InputError for a file that is not such an instance, and for a customer that no vehicle
    can serve in time. A damaged reference is not an error: reference_source says what is wrong.
    """
    require_no_round(path, reading)
    parts = _cut(Path(path))
    vehicles, limit = _vehicle(parts)
    table, stated, own = _customers(parts, limit)
    demands, capacity, scaling = whole(stated, limit)
    coords, times = table[:, :2], table[:, 2:]
    found = weights_by(coords, None, reading.distances)
    ready, due, service = times.T
    if reading.distances == "dimacs":
        require_no_detour(parts.fail, found.dist, service, 0.1)
    lines = [line for line, _ in parts.customers]
    due[:] = in_time(parts.fail, lines, found.dist, ready, due, service)
    rounding = found.remarks(f"--distances {reading.distances}")
    file = {
        "ids": list(range(len(coords))),
        "vehicles": vehicles,
        "remarks": [*rounding, free_fleet(vehicles), *own, *scaling],
    }
    instance = Instance(
        problem="vrptw",
        name=parts.name,
        size=len(coords) - 1,
        coords=coords,
        dist=found.dist,
        demands=demands,
        capacity=capacity,
        extra={name: row.copy() for name, row in zip(TIMES, times.T, strict=True)},
        file=file,
    )
    return referenced(parts.path, instance, found.as_stated)


def require_no_round(path: str | Path, reading: Reading) -> None:
    """Raises InputError for distances that are asked for and could make routes late."""
    if reading.distances == "round":
        raise InputError(
            f"{path}: --distances round may lengthen a way by a stop less, so that routes could be "
            "late where a customer leaves them: use exact or ceil"
        )


def referenced(path: Path, instance: Instance, as_stated: bool) -> Instance:
    """The instance with the cost of the `.sol` beside its file.

    as_stated: whether its distances are what the file says.
    """
    routes, cost, notes = cvrplib.companion_solution(path, instance, check_routes)
    known = []
    if routes is not None:
        length = cvrplib.routes_cost(instance.dist, routes)
        known.append((length, f"{path.stem}.sol"))
        if as_stated and cost and abs(float(cost) - length) > 1e-6 * length:  # it is rounded
            notes.append(f"its Cost line says {cost}")
    if not as_stated:
        notes.append(OTHER_DISTANCES)
    if not known and not notes:
        notes.append("no .sol beside the file")
    reference, source = best_reference(known, notes)
    return replace(instance, reference=reference, reference_source=source)


def _cut(path: Path) -> _Solomon:
    """The sections of a file; of each the lines that do not begin with a letter."""
    parts = _Solomon(path, "", [], [])
    name, section = "", None
    seen: list[str] = []
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", read_text(path)), 1):
        words = raw.split()
        if not words:
            continue
        title = words[0].upper()
        if title in ("VEHICLE", "CUSTOMER") and len(words) == 1:
            if title in seen:
                parts.fail(f"a second section {title}", number)
            seen.append(title)
            section = parts.vehicle if title == "VEHICLE" else parts.customers
        elif section is None:
            if name:
                parts.fail(
                    f"expected the section VEHICLE, not {shown(raw.strip())}: {_NOT_SOLOMON}",
                    number,
                )
            name = raw.strip()
        elif not words[0][0].isalpha():
            if len(section) > MAX_NODES:
                parts.fail(f"a section has more than {MAX_NODES} rows", number)
            section.append((number, words))
        elif section or not _is_head(raw):  # the heads of columns stand above the numbers
            parts.fail(f"expected a row of numbers, not {shown(raw.strip())}", number)
    for title in ("VEHICLE", "CUSTOMER"):
        if title not in seen:
            parts.fail(f"the section {title} is missing: {_NOT_SOLOMON}")
    return replace(parts, name=name or path.stem)


def _is_head(line: str) -> bool:
    """Whether a line has heads of columns, in the order that Solomon's format has."""
    if not all(word in _HEAD_WORDS for word in re.split(r"[\s._]+", line.upper()) if word):
        return False
    for heads in _HEADS:
        found = [re.search(rf"\b{head}", line.upper()) for head in heads]
        places = [each.start() for each in found if each]
        if places != sorted(places):
            return False
    return True


def _vehicle(parts: _Solomon) -> tuple[int, Fraction]:
    """The number of vehicles, which is no limit, and the capacity."""
    if len(parts.vehicle) != 1:
        parts.fail(f"VEHICLE needs one row, 'number capacity', and has {len(parts.vehicle)}")
    [(line, words)] = parts.vehicle
    if len(words) != 2:
        parts.fail(f"expected 'number capacity', not {shown(' '.join(words))}", line)
    number, capacity = (
        amount(word, what, line, parts.fail)
        for word, what in zip(words, ("the number of vehicles", "the capacity"), strict=True)
    )
    if number < 1 or number.denominator != 1:
        parts.fail(f"the number of vehicles is {written(number)}", line)
    return int(number), positive(capacity, "the capacity", line, parts.fail)


def _customers(parts: _Solomon, limit: Fraction) -> tuple[np.ndarray, list[Fraction], list[str]]:
    """[N, 5] x, y, ready, due and service, N demands, that of the depot 0, and remarks."""
    if len(parts.customers) < 2:
        parts.fail("CUSTOMER needs a row for the depot and one for each customer")
    table = np.empty((len(parts.customers), 5))
    demands: list[Fraction] = []
    remarks = []
    for k, (line, words) in enumerate(parts.customers):
        if len(words) != len(_COLUMNS):
            listed = ", ".join(_COLUMNS)
            parts.fail(f"expected {len(_COLUMNS)} columns ({listed}), not {len(words)}", line)
        number, x, y, demand, *times = (
            amount(word, f"the {what}", line, parts.fail)
            for word, what in zip(words, _COLUMNS, strict=True)
        )
        if number != k:
            parts.fail(f"expected customer {k}, not {written(number)}: they count from 0", line)
        if min(times) < 0:
            parts.fail("ready time, due date and service time must not be negative", line)
        if times[1] < times[0]:
            detail = f"{written(times[1])} is before the ready time {written(times[0])}"
            parts.fail(f"the due date {detail}", line)
        if k == 0:
            remarks = depots_own(demand)
            demand = Fraction(0)
            if times[2] != 0:
                service = written(times[2])
                parts.fail(f"the depot's service time must be 0, not {service}", line)
        else:
            require_demand(demand, limit, f"customer {k}", line, "the capacity", parts.fail)
        demands.append(demand)
        table[k] = [float(each) for each in (x, y, *times)]
    return table, demands, remarks


def in_time(
    fail: Fail,
    lines: Sequence[int],
    dist: np.ndarray,
    ready: np.ndarray,
    due: np.ndarray,
    service: np.ndarray,
) -> np.ndarray:
    """[N] due times, by which a vehicle can serve each customer alone. Fails where none can.

    Times that are missed by rounding alone are moved by that, so that programs, which know no
    slack, can count on routes of one customer. lines: of the customers, for what is wrong.
    """
    slack = ROUNDING * due[0]
    arrives = np.maximum(ready[0] + dist[0], ready)
    back = arrives + service + dist[:, 0]
    for k in range(1, len(dist)):
        line = lines[k]
        if arrives[k] > due[k] + slack:
            fail(
                f"customer {k} cannot be reached in its window: a vehicle that comes from the "
                f"depot is there at {arrives[k]:g}, and it is due at {due[k]:g}",
                line,
            )
        if back[k] > due[0] + slack:
            fail(
                f"customer {k} cannot be served in time: the vehicle would be back at {back[k]:g}, "
                f"and the depot closes at {due[0]:g}",
                line,
            )
    return np.maximum(due, [back[1:].max(), *arrives[1:]])


def require_no_detour(fail: Fail, dist: np.ndarray, service: np.ndarray, enough: float) -> None:
    """Calls `fail` where a stop less can take longer: routes would be late where it is left out.

    enough: the service of all customers from which none can. O(n^3).
    """
    if service[1:].min() >= enough:
        return
    for k in range(1, len(dist)):
        detour = dist[:, k, None] + (service[k] + dist[k])
        detour[k] = detour[:, k] = np.inf
        longer = dist > detour + ROUNDING * dist.max()
        if longer.any():
            a, b = np.argwhere(longer)[0].tolist()
            fail(
                f"the way from {a} to {b} takes {dist[a, b]:g}, longer than by customer {k} with "
                f"its service, {detour[a, b]:g}: routes could be late where {k} leaves them",
                None,
            )


def write_instance(path: str | Path, instance: Instance) -> None:
    """An instance as a file in Solomon's format. Raises InputError without coordinates."""
    if instance.coords is None:
        raise InputError(f"{instance.name} has no coordinates, which Solomon's format needs")
    demands, capacity = cvrplib.demands_of(instance)
    vehicles = instance.file.get("vehicles", instance.size)
    times = [instance.extra[name] for name in TIMES]
    lines = [instance.name, "", "VEHICLE", "NUMBER     CAPACITY", f"{vehicles:5d} {capacity:12d}"]
    lines += ["", "CUSTOMER"]
    lines += ["CUST NO.  XCOORD.   YCOORD.   DEMAND   READY TIME   DUE DATE   SERVICE TIME", ""]
    for k, (x, y) in enumerate(instance.coords.tolist()):
        row = [cost_text(each) for each in (x, y, int(demands[k]), *(t[k] for t in times))]
        lines.append(" ".join([f"{k:5d}", *(f"{each:>10}" for each in row)]))
    write_atomically(path, "\n".join(lines) + "\n")


# --- solutions ----------------------------------------------------------------------------------


def schedule(instance: Instance, route: Sequence[int]) -> Iterator[tuple[int, float, float]]:
    """(node, when service begins there, when it is due) of each stop, the depot last."""
    ready, due, service = (instance.extra[name].tolist() for name in TIMES)
    clock, before = ready[0], 0
    for node in [*route, 0]:
        clock = max(clock + float(instance.dist[before, node]), ready[node])
        yield node, clock, due[node]
        clock += service[node]
        before = node


def check_routes(instance: Instance, routes: Sequence[Sequence[int]]) -> None:
    """Raises InputError unless `routes` serve every customer once, in time, within the capacity."""
    cvrplib.check_routes(instance, routes)
    slack = ROUNDING * float(instance.extra["due"][0])
    for number, route in enumerate(routes, 1):
        for node, begins, due in schedule(instance, route):
            if begins > due + slack:
                where = f"at customer {node}" if node else "back at the depot"
                raise InputError(
                    f"no solution of {instance.name}: route {number} is late {where}, at "
                    f"{begins:.9g} in place of {due:.9g}"
                )


def read_solution(path: str | Path, instance: Instance) -> Routes:
    """The routes of a .sol file; see `spo_jax.envs.problems.cvrp.files.cvrplib.read_solution`."""
    return cvrplib.load_routes(path, instance, check_routes)[0]


def write_solution(path: str | Path, instance: Instance, routes: Sequence[Sequence[int]]) -> None:
    """A CVRPLIB .sol file: numbered routes without the depot, then the cost. Raises InputError."""
    cvrplib.write_solution(path, instance, routes, check_routes)
