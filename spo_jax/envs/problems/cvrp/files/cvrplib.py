"""CVRPLIB files: instances (.vrp) and solutions (.sol).

Distances are in the convention of the file, as TSPLIB defines them: rounded ones unless another
rounding is asked for, as the library's best known costs assume. Files are not read with `vrplib`:
it drops node ids and line numbers, which the checks here need, leaves distances unrounded, and
takes solutions in one spelling; the tests hold our reading against its own.

The fleet is free, as in the paper, unless the file has a field VEHICLES or a number of vehicles is
asked for: the k of a name like A-n32-k5 is no limit. Recorded optima of the sets A, B and P hold
for exactly k vehicles, so a lower cost is possible.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain, islice
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from spo_jax.envs.files.headers import (
    instance_name,
    is_fleet,
    is_limit,
    is_route_limit,
    limits_length,
    require_kind,
    unused,
)
from spo_jax.envs.files.reading import AS_STATED, Reading
from spo_jax.envs.files.textfiles import Document, cost_text, scan, shown, write_atomically
from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.cvrp.files.loads import (
    amount,
    depots_own,
    longest_route,
    positive,
    require_demand,
    vehicle_limit,
    whole,
)
from spo_jax.envs.problems.cvrp.files.solutions import parse
from spo_jax.envs.problems.cvrp.limits import allowed, limits_of
from spo_jax.envs.problems.cvrp.rules import Routes
from spo_jax.envs.problems.tsp.files import tsplib
from spo_jax.envs.problems.tsp.files.weights import EDGE_WEIGHT_TYPES, axes_of, exact_length
from spo_jax.errors import InputError

SECTIONS = {"NODE_COORD_SECTION", "DISPLAY_DATA_SECTION", "EDGE_WEIGHT_SECTION"}
SECTIONS |= {"DEMAND_SECTION", "DEPOT_SECTION", "SERVICE_TIME_SECTION"}
_INDEX_LEVELS = 3  # folders searched for index.json: the file's own and two above it


def demands_of(instance: Instance) -> tuple[np.ndarray, int]:
    """[N] int64 demands and the capacity. Raises InputError where the instance has none."""
    if instance.demands is None or instance.capacity is None:
        raise InputError(f"{instance.name} has no demands or no capacity: it is no CVRP instance")
    return instance.demands, int(instance.capacity)


def read(path: str | Path, reading: Reading = AS_STATED) -> Instance:
    """A CVRP instance with one depot, of coordinates (EUC_2D, ...) or a matrix (EXPLICIT).

    Node 0 is the depot and nodes 1..n are the customers in the file's order: the numbers that .sol
    files use. `file` keeps the file's ids in our order (list of n + 1 ints). Demands that are no
    whole numbers are scaled, which a remark says. Limits on routes that some route could exceed are
    in `extra` (`spo_jax.envs.problems.cvrp.limits`). The reference is the cost of the `.sol` beside
    the file or the `bks` of an `index.json` in its folder or the two above, the lower of the two if
    both exist; of these only the first where `reading` asks for other distances than the file's.

    Raises InputError for a file that is not such an instance. A damaged reference is not an error:
    reference_source says what is wrong.
    """
    document = scan(path)
    types = (*EDGE_WEIGHT_TYPES, "EXPLICIT")
    _, weight = require_kind(document, ("CVRP", "ACVRP", "DCVRP"), types, SECTIONS)
    found, as_stated = unlimited(document, weight, reading)
    demands, capacity = demands_of(found)
    extra = route_limits(document, found)
    extra |= vehicle_limit(
        demands, capacity, *vehicles_of(document, reading.vehicles), document.fail
    )
    instance = replace(found, extra=extra)
    reference, source = _reference(document.path, instance, as_stated)
    return replace(instance, reference=reference, reference_source=source)


def unlimited(document: Document, weight: str, reading: Reading) -> tuple[Instance, bool]:
    """The instance of a file with depot, demands and capacity, without limits and reference.

    Also whether its distances are as the file states them.
    """
    nodes = tsplib.nodes_of(document, weight, reading.distances)
    limit = _capacity(document, reading.capacity)
    ids, depot = nodes.ids, _depot(document, nodes.ids)
    stated, remarks = _demands(document, ids, depot, limit)
    demands, capacity, scaling = whole(stated, limit)
    order = [depot, *(k for k in range(len(ids)) if k != depot)]
    file = nodes.file | {"ids": [ids[k] for k in order]}
    if remarks := [*file.get("remarks", ()), *_free(document), *remarks, *scaling]:
        file["remarks"] = remarks
    if "degrees" in file:
        file["degrees"] = file["degrees"][order]
    instance = Instance(
        problem="cvrp",
        name=instance_name(document, ".vrp"),
        size=len(ids) - 1,
        coords=None if nodes.coords is None else nodes.coords[order],  # type: ignore[arg-type]
        dist=nodes.weights.dist if depot == 0 else nodes.weights.dist[np.ix_(order, order)],
        demands=demands[order],
        capacity=capacity,
        file=file,
    )
    return instance, nodes.weights.as_stated


def _capacity(document: Document, given: float | None) -> Fraction:
    if given is not None and "CAPACITY" not in document.fields:
        return positive(
            amount(str(given), "--capacity", None, document.fail), "--capacity", None, document.fail
        )
    if "CAPACITY" not in document.fields:
        document.fail("CAPACITY is missing: add it to the file, or give --capacity")
    word, line = document.text("CAPACITY"), document.fields["CAPACITY"][0]
    if given is not None:
        document.fail(f"CAPACITY is {shown(word)}: --capacity is for files that have none", line)
    return positive(amount(word, "CAPACITY", line, document.fail), "CAPACITY", line, document.fail)


def _depot(document: Document, ids: list[int]) -> int:
    """The position of the depot among the nodes."""
    depots: list[tuple[int, int]] = []
    for row in document.section("DEPOT_SECTION"):
        for word in row.words:
            depots.append((document.integer(word, "a depot id", row.line), row.line))
    end = next((k for k, (node, _) in enumerate(depots) if node == -1), len(depots))
    listed = depots[:end]
    for node, line in depots[end:]:
        if node != -1:
            document.fail(f"DEPOT_SECTION goes on with {node} after -1, which ends it", line)
    if not listed:
        document.fail("DEPOT_SECTION names no depot")
    if len(listed) > 1:
        document.fail(
            f"{len(listed)} depots are not supported, only one: this is a problem with several "
            "depots (MDVRP)",
            listed[1][1],
        )
    node, line = listed[0]
    if node not in ids:
        document.fail(f"depot {node} is not a node", line)
    return ids.index(node)


def _free(document: Document) -> list[str]:
    """Remarks on fields that say nothing here: the cost is the length."""
    remarks, known = [], {"CAPACITY", "SERVICE_TIME"}
    for key, (line, value) in document.fields.items():
        if is_fleet(key):
            known.add(key)  # `vehicles_of` looks at it
        elif "COST" in key.split("_")[1:]:
            known.add(key)
            remarks.append(f"{key} {value} is not counted: the cost is the length of the routes")
        elif is_limit(key):  # `route_limits` looks at it
            known.add(key)
            if document.number(value or "0", key, line) == 0:
                remarks.append(f"{key} is 0, which is taken as no limit")
    return [*remarks, *unused(document, known)]


def vehicles_of(document: Document, given: int | None) -> tuple[int | None, str, int | None]:
    """The most vehicles or None, what says so, and the line."""
    if given is not None:
        return given, "--vehicles", None
    found: tuple[int | None, str, int | None] = None, "", None
    for key, (line, value) in document.fields.items():
        if is_fleet(key):
            count = document.integer(value, key, line)
            if count < 1:
                document.fail(f"{key} must be positive, not {count}", line)
            if found[0] is None or count < found[0]:
                found = count, key, line
    return found


def _demands(
    document: Document, ids: list[int], depot: int, capacity: Fraction
) -> tuple[list[Fraction], list[str]]:
    """N demands in the file's node order, that of the depot 0, and remarks."""
    remarks = []
    position = {node: k for k, node in enumerate(ids)}
    demands: dict[int, Fraction] = {}
    for node, word, line in _entries(document, "DEMAND_SECTION", "demand"):
        demand = amount(word, "demand", line, document.fail)
        if node not in position:
            document.fail(f"demand for node {node}, which is no node of the file", line)
        if node in demands:
            document.fail(f"a second demand for node {node}", line)
        if position[node] == depot:
            remarks += depots_own(demand)
            demand = Fraction(0)
        else:
            who = f"node {node}"
            require_demand(demand, capacity, who, line, "CAPACITY", document.fail)
        demands[node] = demand
    demands.setdefault(ids[depot], Fraction(0))
    for node in ids:
        if node not in demands:
            document.fail(f"DEMAND_SECTION has no demand for node {node}")
    return [demands[node] for node in ids], remarks


def _entries(document: Document, key: str, what: str) -> Iterator[tuple[int, str, int]]:
    """(node id, word, line) of a section."""
    for row in document.section(key):
        words = row.words
        if len(words) != 2:
            document.fail(f"expected 'id {what}'", row.line)
        yield document.integer(words[0], "a node id", row.line), words[1], row.line


def route_limits(document: Document, instance: Instance) -> dict[str, Any]:
    """What `Instance.extra` has of the limits on the length of routes that some route exceeds.

    Service times count in what limits the duration, as in LKH-3 and PyVRP: DISTANCE and all but
    those fields that name a length alone.
    """
    ids, dist = instance.file["ids"], instance.dist
    demands, capacity = demands_of(instance)
    service = service_of(document, ids)
    service[0] = 0.0
    none = np.zeros(len(ids))
    found: dict[str, Any] = {}
    for key, (line, word) in document.fields.items():
        if not is_limit(key):
            continue
        limit = document.number(word, key, line) if word else 0.0
        if limit < 0:
            document.fail(f"{key} must not be negative", line)
        if limit == 0:  # as files write that there is none
            continue
        name = "max_distance" if limits_length(key) else "max_duration"
        times = none if name == "max_distance" else service
        longest = longest_route(dist, demands, capacity, times)
        if longest <= limit:
            continue
        if not is_route_limit(key):
            document.fail(
                f"{key} {word} may bind, as a route can be up to {longest:g} long here: it is a "
                "constraint that is not supported",
                line,
            )
        alone = dist[0] + dist[:, 0] + times
        if alone.max() > allowed(limit):
            node = int(alone.argmax())
            document.fail(
                f"there is no solution: node {ids[node]} cannot be served within {key} "
                f"{word}, as a route to it alone takes {alone[node]:g}",
                line,
            )
        found[name] = min(limit, found.get(name, limit))
    if "max_duration" in found and service.any():
        found["service"] = service
    return found


def service_of(document: Document, ids: list[int]) -> np.ndarray:
    """[N] float64: the service times in the order of the ids."""
    service = np.zeros(len(ids))
    line, word = document.fields.get("SERVICE_TIME", (None, ""))
    if word:
        service[:] = document.number(word, "SERVICE_TIME", line)
    if "SERVICE_TIME_SECTION" in document.sections:
        position = {node: k for k, node in enumerate(ids)}
        for node, word, line in _entries(document, "SERVICE_TIME_SECTION", "time"):
            if node not in position:
                document.fail(f"a time for node {node}, which is no node of the file", line)
            service[position[node]] = document.number(word, "service time", line)
    if service.min() < 0:
        document.fail("a service time must not be negative")
    return service


# --- references ---------------------------------------------------------------------------------


def _reference(path: Path, instance: Instance, as_stated: bool) -> tuple[float | None, str]:
    found: list[tuple[float, str]] = []
    routes, stated, notes = companion_solution(path, instance, check_routes)
    if routes is not None:
        found.append((routes_cost(instance.dist, routes), f"{path.stem}.sol"))
        if as_stated and stated is not None and float(stated) != found[0][0]:
            holds = _holds_exactly(instance, routes, stated)
            notes.append(f"its Cost line says {stated}{holds}")
    if not as_stated:
        return tsplib.best_reference(found, [*notes, tsplib.OTHER_DISTANCES])
    names = (path.stem, instance.name)
    index = next((f for f in _indices(path) if f.exists()), None)
    if index is not None:
        bks = tsplib.recorded(index, names, "bks")
        free = tsplib.recorded(index, names, "free_fleet_cost_found")
        if isinstance(bks, str):
            notes += [] if found else [bks]
        elif bks[0] % 1 and not (instance.dist % 1).any():
            recorded = f"{index.name} says {cost_text(bks[0])}"
            notes.append(f"{recorded}, which no sum of whole distances is: --distances exact")
        else:
            found.append((bks[0], index.name))
        if not isinstance(free, str):
            notes.append(f"a free fleet reaches {cost_text(free[0])}")
    elif not found and not notes:
        notes.append("no .sol or index.json beside the file")
    return tsplib.best_reference(found, notes)


def _holds_exactly(instance: Instance, routes: Routes, stated: str) -> str:
    """A clause where a stated cost is that of distances without rounding, to its last digit."""
    kind = instance.file["edge_weight_type"]
    if instance.coords is None or kind == "EXPLICIT" or len(axes_of(kind).split()) > 2:
        return ""
    walk = [0, *chain.from_iterable([*route, 0] for route in routes)]
    exact = exact_length(instance.coords, kind, walk)
    decimals = len(stated.partition(".")[2])
    near = abs(exact - float(stated)) <= 0.5 * 10.0**-decimals + 1e-9 * exact
    return ", which holds with --distances exact" if near else ""


def _indices(path: Path) -> list[Path]:
    folder = path.resolve().parent
    return [up / "index.json" for up in [folder, *folder.parents][:_INDEX_LEVELS]]


# --- solutions ----------------------------------------------------------------------------------


def routes_cost(dist: np.ndarray, routes: Iterable[Sequence[int]]) -> float:
    """The exact float64 length of all routes, depot to depot: the correctly rounded sum."""
    walk = [0, *chain.from_iterable([*route, 0] for route in routes)]
    return math.fsum(dist[walk[:-1], walk[1:]].tolist())


def lower_bound(instance: Instance) -> float:
    """A lower bound on the length of routes: half of each customer's shortest edge, twice; of a
    directed instance the shortest ways from all customers, or to them.
    """
    bound = _shortest_ways(instance.dist)
    return max(bound, _shortest_ways(instance.dist.T)) if instance.directed else bound


def _shortest_ways(dist: np.ndarray) -> float:
    """The sum of the shortest ways from all customers."""
    return float(np.array([row.min() for row in islice(tsplib.to_others(dist), 1, None)]).sum())


def read_solution(path: str | Path, instance: Instance) -> Routes:
    """The routes of a .sol file, each a list of customers 1..n, checked against `instance`.

    Empty routes are dropped. Raises InputError for a file that is no feasible solution of it.
    """
    return load_routes(path, instance, check_routes)[0]


Check = Callable[[Instance, Routes], None]  # raises InputError unless the routes are feasible


def load_routes(path: str | Path, instance: Instance, check: Check) -> tuple[Routes, str | None]:
    """The routes of a .sol file, and the cost as it states it, or None. Raises InputError."""
    routes, stated = parse(path)
    try:
        check(instance, routes)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return routes, stated


def companion_solution(
    path: Path, instance: Instance, check: Check
) -> tuple[Routes | None, str | None, list[str]]:
    """The routes of the .sol beside an instance's file, if it is one, the cost that it states, and
    what is wrong with it.
    """
    solution = path.with_suffix(".sol")
    if not solution.exists():
        return None, None, []
    try:
        routes, stated = load_routes(solution, instance, check)
    except InputError as error:
        return None, None, [f"unusable: {error}"]
    return routes, stated, []


def check_routes(instance: Instance, routes: Sequence[Sequence[int]]) -> None:
    """Raises InputError unless `routes` serve every customer once, within all limits."""
    demands, capacity = demands_of(instance)

    def fail(problem: str) -> NoReturn:
        raise InputError(f"no solution of {instance.name}: {problem}")

    seen: set[int] = set()
    for number, route in enumerate(routes, 1):
        for customer in route:
            if not 1 <= customer <= instance.size:
                fail(f"there is no customer {customer}")
            if customer in seen:
                fail(f"customer {customer} is visited twice")
            seen.add(customer)
        load = sum(int(demands[customer]) for customer in route)
        if load > capacity:
            fail(f"route {number} carries {load}, more than the capacity {capacity}")
    limits = limits_of(instance)
    if limits is not None and (wrong := limits.excess(instance.dist, routes)):
        fail(wrong)
    if len(seen) != instance.size:
        fail(f"customer {min(set(range(1, instance.size + 1)) - seen)} is not visited")


def write_solution(
    path: str | Path,
    instance: Instance,
    routes: Sequence[Sequence[int]],
    check: Check = check_routes,
) -> None:
    """A CVRPLIB .sol file: numbered routes without the depot, then the cost. Raises InputError."""
    full = [[int(customer) for customer in route] for route in routes if len(route)]
    check(instance, full)
    lines = [f"Route #{k}: {' '.join(map(str, route))}" for k, route in enumerate(full, 1)]
    lines.append(f"Cost {cost_text(routes_cost(instance.dist, full))}")
    write_atomically(path, "\n".join(lines) + "\n")
