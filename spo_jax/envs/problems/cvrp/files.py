"""CVRPLIB files: instances (.vrp) and solutions (.sol).

Distances are Euclidean, rounded to the nearest integer as the library's best known costs assume.
Solutions are read with `vrplib`. Instances are not: it drops node ids and line numbers, which the
checks here need, and leaves distances unrounded; the tests hold our reading against its own.

The fleet is free, as in the paper: a VEHICLES field, or the k of a name like A-n32-k5, is no limit.
Recorded optima of the sets A, B and P hold for exactly k vehicles, so a lower cost is possible.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NoReturn

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.cvrp.rules import Routes
from spo_jax.envs.problems.tsp import files as tsplib
from spo_jax.envs.textfiles import (
    Document,
    cost_text,
    instance_name,
    read_text,
    require_kind,
    scan,
    write_atomically,
)
from spo_jax.errors import InputError

_SECTIONS = {"NODE_COORD_SECTION", "DEMAND_SECTION", "DEPOT_SECTION", "DISPLAY_DATA_SECTION"}
_LIMITS = ("DISTANCE", "DURATION", "MAX_DURATION", "SERVICE_TIME", "DISTANCE_LIMIT")
_MAX_CAPACITY = 10**12  # so that loads cannot overflow an int64
_INDEX_LEVELS = 3  # folders searched for index.json: the file's own and two above it


def demands_of(instance: Instance) -> tuple[np.ndarray, int]:
    """[N] int64 demands and the capacity. Raises InputError where the instance has none."""
    if instance.demands is None or instance.capacity is None:
        raise InputError(f"{instance.name} has no demands or no capacity: it is no CVRP instance")
    return instance.demands, int(instance.capacity)


def read(path: str | Path) -> Instance:
    """A CVRP instance with one depot and EUC_2D coordinates.

    Node 0 is the depot and nodes 1..n are the customers in the file's order: the numbers that .sol
    files use. `file` keeps the file's ids in our order (list of n + 1 ints). The reference is the
    cost of the `.sol` beside the file or the `bks` of an `index.json` in its folder or the two
    above, the lower of the two if both exist.

    Raises InputError for a file that is not such an instance. A damaged reference is not an error:
    reference_source says what is wrong.
    """
    document = scan(path)
    weight = require_kind(document, "CVRP", ("EUC_2D",), _SECTIONS)
    for key in _LIMITS:
        line, value = document.fields.get(key, (None, ""))
        if value and not (key == "SERVICE_TIME" and value.strip("0.") == ""):
            document.fail(f"{key} limits the routes, which is not supported", line)
    ids, coords = document.nodes(document.dimension(least=3))
    capacity = _capacity(document)
    depot = _depot(document, ids)
    demands = _demands(document, ids, depot, capacity)
    order = [depot, *(k for k in range(len(ids)) if k != depot)]
    coords, demands = coords[order], demands[order]
    instance = Instance(
        problem="cvrp",
        name=instance_name(document, ".vrp"),
        size=len(ids) - 1,
        coords=coords,
        dist=tsplib.distance_matrix(coords, weight),
        demands=demands,
        capacity=capacity,
        file={"ids": [ids[k] for k in order], "edge_weight_type": weight},
    )
    reference, source = _reference(document.path, instance)
    return replace(instance, reference=reference, reference_source=source)


def _capacity(document: Document) -> int:
    word = document.text("CAPACITY")
    line = document.fields["CAPACITY"][0]
    capacity = document.integer(word, "CAPACITY", line)
    if not 0 < capacity <= _MAX_CAPACITY:
        document.fail(f"CAPACITY must be positive and at most 1e12, not {capacity}", line)
    return capacity


def _depot(document: Document, ids: list[int]) -> int:
    """The position of the depot among the nodes."""
    depots: list[tuple[int, int]] = []
    for row in document.section("DEPOT_SECTION"):
        for word in row.words:
            depots.append((document.integer(word, "a depot id", row.line), row.line))
    listed = depots[: next((k for k, (node, _) in enumerate(depots) if node == -1), None)]
    if not listed:
        document.fail("DEPOT_SECTION names no depot")
    if len(listed) > 1:
        document.fail(f"{len(listed)} depots are not supported, only one", listed[1][1])
    node, line = listed[0]
    if node not in ids:
        document.fail(f"depot {node} is not a node", line)
    return ids.index(node)


def _demands(document: Document, ids: list[int], depot: int, capacity: int) -> np.ndarray:
    """[N] int64 demands in the file's node order."""
    position = {node: k for k, node in enumerate(ids)}
    demands: dict[int, int] = {}
    for row in document.section("DEMAND_SECTION"):
        if len(row.words) != 2:
            document.fail("expected 'id demand'", row.line)
        node = document.integer(row.words[0], "a node id", row.line)
        demand = document.integer(row.words[1], "a demand", row.line)
        if node not in position:
            document.fail(f"demand for node {node}, which has no coordinates", row.line)
        if node in demands:
            document.fail(f"a second demand for node {node}", row.line)
        if position[node] == depot:
            if demand != 0:
                document.fail(f"the depot's demand must be 0, not {demand}", row.line)
        elif demand <= 0:
            document.fail(f"the demand of node {node} must be positive, not {demand}", row.line)
        elif demand > capacity:
            document.fail(
                f"the demand {demand} of node {node} exceeds CAPACITY {capacity}", row.line
            )
        demands[node] = demand
    for node in ids:
        if node not in demands:
            document.fail(f"DEMAND_SECTION has no demand for node {node}")
    return np.array([demands[node] for node in ids], np.int64)


# --- references ---------------------------------------------------------------------------------


def _reference(path: Path, instance: Instance) -> tuple[float | None, str]:
    found, notes = [], []
    solution = path.with_suffix(".sol")
    if solution.exists():
        try:
            routes, stated = _load(solution, instance)
            cost = routes_cost(instance.dist, routes)
            found.append((cost, solution.name))
            if stated is not None and stated != cost:
                notes.append(f"its Cost line says {cost_text(stated)}")
        except InputError as error:
            notes.append(f"unusable: {error}")
    names = (path.stem, instance.name)
    index = next((f for f in _indices(path) if f.exists()), None)
    if index is not None:
        bks = tsplib.recorded(index, names, "bks")
        free = tsplib.recorded(index, names, "free_fleet_cost_found")
        if isinstance(bks, str):
            notes += [] if found else [bks]
        else:
            found.append((bks[0], index.name))
        if not isinstance(free, str):
            notes.append(f"a free fleet reaches {cost_text(free[0])}")
    elif not solution.exists():
        notes.append("no .sol or index.json beside the file")
    return tsplib.best_reference(found, notes)


def _indices(path: Path) -> list[Path]:
    folder = path.resolve().parent
    return [up / "index.json" for up in [folder, *folder.parents][:_INDEX_LEVELS]]


# --- solutions ----------------------------------------------------------------------------------


def routes_cost(dist: np.ndarray, routes: Iterable[Sequence[int]]) -> float:
    """The exact float64 length of all routes, depot to depot: the correctly rounded sum."""
    walk = [0, *chain.from_iterable([*route, 0] for route in routes)]
    return math.fsum(dist[walk[:-1], walk[1:]].tolist())


def lower_bound(instance: Instance) -> float:
    """A lower bound on the length of routes: half of each customer's shortest edge, twice."""
    others = instance.dist + np.diag(np.full(len(instance.dist), np.inf))
    return float(others[1:].min(axis=1).sum())


def read_solution(path: str | Path, instance: Instance) -> Routes:
    """The routes of a .sol file, each a list of customers 1..n, checked against `instance`.

    Empty routes are dropped. Raises InputError for a file that is no feasible solution of it.
    """
    return _load(path, instance)[0]


def _load(path: str | Path, instance: Instance) -> tuple[Routes, float | None]:
    """The routes, and the cost that the file states."""
    from vrplib.parse import parse_solution  # here, because workers import this module's package

    text = read_text(path)
    try:
        solution = parse_solution(text)
    except (ValueError, IndexError) as error:
        raise InputError(f"{path} is not a CVRPLIB solution: {error}") from None
    routes: Routes = [route for route in solution["routes"] if route]
    try:
        check_routes(instance, routes)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    stated = solution.get("cost")
    return routes, float(stated) if isinstance(stated, int | float) else None


def check_routes(instance: Instance, routes: Iterable[Sequence[int]]) -> None:
    """Raises InputError unless `routes` serve every customer once, within the capacity."""
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
    if len(seen) != instance.size:
        fail(f"customer {min(set(range(1, instance.size + 1)) - seen)} is not visited")


def write_solution(path: str | Path, instance: Instance, routes: Sequence[Sequence[int]]) -> None:
    """A CVRPLIB .sol file: numbered routes without the depot, then the cost. Raises InputError."""
    full = [[int(customer) for customer in route] for route in routes if len(route)]
    check_routes(instance, full)
    lines = [f"Route #{k}: {' '.join(map(str, route))}" for k, route in enumerate(full, 1)]
    lines.append(f"Cost {cost_text(routes_cost(instance.dist, full))}")
    write_atomically(path, "\n".join(lines) + "\n")
