"""VRPTW instances in CVRPLIB's format (.vrp), as LKH-3's and PyVRP's collections have them.

The file of a CVRP with TIME_WINDOW_SECTION (id, ready time, due date), and SERVICE_TIME or
SERVICE_TIME_SECTION. Travel takes as long as the distance, in the file's own rounding.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from spo_jax.envs.files.headers import require_kind
from spo_jax.envs.files.reading import AS_STATED, Reading
from spo_jax.envs.files.textfiles import Document, scan
from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.cvrp.files import cvrplib
from spo_jax.envs.problems.cvrp.files.loads import free_fleet
from spo_jax.envs.problems.vrptw.files.solomon import (
    in_time,
    referenced,
    require_no_detour,
    require_no_round,
)
from spo_jax.envs.problems.vrptw.rules import TIMES

_KINDS = ("VRPTW", "CVRPTW", "CVRP")
_WEIGHTS = ("EUC_2D", "CEIL_2D", "FLOOR_2D", "EXACT_2D", "EXPLICIT")


def read(path: str | Path, reading: Reading = AS_STATED) -> Instance:
    """An instance with one depot; nodes, demands and remarks are as in the file of a CVRP.

    The number of vehicles is no limit. The reference is the cost of the `.sol` beside the file.

    Raises InputError for a file that is not such an instance, for one that limits routes by more
    than their times, and for a customer that no vehicle can serve in time.
    """
    require_no_round(path, reading)
    document = scan(path)
    _, weight = require_kind(document, _KINDS, _WEIGHTS, cvrplib.SECTIONS | {"TIME_WINDOW_SECTION"})
    found, as_stated = cvrplib.unlimited(document, weight, reading)
    ids = found.file["ids"]
    ready, due, lines = _windows(document, ids)
    if limits := cvrplib.route_limits(document, found):
        name = next(iter(limits)).replace("_", " ")
        document.fail(f"a limit on routes ({name}) is not supported beside time windows")
    service = cvrplib.service_of(document, ids)
    if "SERVICE_TIME_SECTION" in document.sections and service[0]:
        document.fail(f"the depot's service time must be 0, not {service[0]:g}")
    service[0] = 0.0
    if weight == "EXPLICIT" or reading.distances not in ("exact", "ceil"):
        require_no_detour(document.fail, found.dist, service, np.inf if weight == "EXPLICIT" else 1)
    due[:] = in_time(document.fail, lines, found.dist, ready, due, service)
    file, (vehicles, _, _) = dict(found.file), cvrplib.vehicles_of(document, None)
    if vehicles is not None:
        file |= {"vehicles": vehicles}
        file["remarks"] = [*file.get("remarks", ()), free_fleet(vehicles)]
    extra = dict(zip(TIMES, (ready, due, service), strict=True))
    instance = replace(found, problem="vrptw", extra=extra, file=file)
    return referenced(document.path, instance, as_stated)


def _windows(document: Document, ids: list[int]) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """[N] when service can begin and must have begun, and the line of each, in the order of ids."""
    position = {node: k for k, node in enumerate(ids)}
    times, lines = np.full((len(ids), 2), np.nan), [0] * len(ids)
    for row in document.section("TIME_WINDOW_SECTION"):
        if len(row.words) != 3:
            document.fail("expected 'id ready due'", row.line)
        node = document.integer(row.words[0], "a node id", row.line)
        if node not in position:
            document.fail(f"times for node {node}, which is no node of the file", row.line)
        k = position[node]
        if lines[k]:
            document.fail(f"second times for node {node}", row.line)
        early, late = (document.number(word, "a time", row.line) for word in row.words[1:])
        if early < 0:
            document.fail("a ready time must not be negative", row.line)
        if late < early:
            document.fail(f"the due date {late:g} is before the ready time {early:g}", row.line)
        times[k], lines[k] = (early, late), row.line
    for node in ids:
        if not lines[position[node]]:
            document.fail(f"TIME_WINDOW_SECTION has no times for node {node}")
    return times[:, 0].copy(), times[:, 1].copy(), lines
