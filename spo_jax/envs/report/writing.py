"""The files that `spo solve` writes, and what it leaves alone.

A file that exists is replaced only by a better or an equal solution of the same instance. Solution
files are read and checked by the problem. The other files cannot be, so they carry a mark: the
digest of the instance and the cost of the solution that they show. A file of another origin is
refused before the search begins.
"""

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from spo_jax.envs.files.reading import remarks_of
from spo_jax.envs.files.textfiles import MAX_BYTES, jsonable, shown_cost, write_atomically
from spo_jax.envs.problem import Instance, Problem, Solution
from spo_jax.envs.report.plot import placed, plot_solution, require_picture
from spo_jax.errors import InputError

_MARK = re.compile(rb"spo solve: ([0-9a-f]{32}) (-?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?)\b")
_FORCE = "(--force overwrites it)"


@dataclass(frozen=True, eq=False)
class Outputs:
    """Where a solution of `instance` goes, and what of the files there may be replaced.

    solution: a file in the problem's format. The others may be None. plot: a picture of it. json:
    an object with its walks, ids, names and loads. geojson: its walks on the map. force: whether
    all of them are overwritten, whatever they hold.

    Raises InputError for a picture or a map that cannot be drawn, and without `force` for a file
    that is there and holds no solution of the instance.
    """

    problem: Problem
    instance: Instance
    solution: Path
    plot: Path | None = None
    json: Path | None = None
    geojson: Path | None = None
    force: bool = False

    def __post_init__(self) -> None:
        if self.plot is not None:
            require_picture(self.problem, self.plot)
            if not placed(self.problem, self.instance):
                raise InputError(f"{self.instance.name} has no coordinates: leave --plot out")
        if self.geojson is not None:
            require_map(self.problem, self.instance)
        self._existing()
        for path in self._others():
            self._marked(path)

    def write(self, solution: Solution, cost: float) -> list[str]:
        """Write the files; a line about each. A better solution that is there is kept and shown.

        So the other files tell of the solution that is in the solution file afterwards.
        """
        existing = self._existing()
        turned = self.problem.turned
        if existing is not None and turned(existing[1]) < turned(cost):
            lines = [self._kept(self.solution, existing[1], cost)]
            solution, cost = existing
        else:
            self.problem.write(self.solution, self.instance, solution)
            lines = [f"solution: {self.solution}"]
            if existing is not None and existing[1] != cost:
                lines[0] += f" (in place of one of {self.problem.word} {shown_cost(existing[1])})"
        for path, what in self._others().items():
            known = self._marked(path)
            if known is not None and turned(known) < turned(cost):
                lines.append(self._kept(path, known, cost))
            else:
                self._write_other(path, solution, cost)
                lines.append(f"{what}: {path}")
        return lines

    def _others(self) -> dict[Path, str]:
        named = (self.plot, "picture"), (self.json, "JSON"), (self.geojson, "GeoJSON")
        return {path: what for path, what in named if path is not None}

    def _write_other(self, path: Path, solution: Solution, cost: float) -> None:
        mark = mark_of(self.instance, cost)
        if path == self.plot:
            plot_solution(self.problem, self.instance, solution, path, mark=mark)
        else:
            made = as_json if path == self.json else as_geojson
            found = {"made_by": mark, **made(self.problem, self.instance, solution)}
            write_atomically(path, json.dumps(found, allow_nan=False, indent=1) + "\n")

    def _kept(self, path: Path, old: float, new: float) -> str:
        side = "above" if self.problem.maximise else "below"
        return (
            f"kept: {path}, whose {self.problem.word} {shown_cost(old)} is {side} "
            f"{shown_cost(new)} {_FORCE}"
        )

    def _existing(self) -> tuple[Solution, float] | None:
        """The solution in the solution file and its cost; None where there is nothing to keep."""
        path = self.solution
        if self.force or not _filled(path):
            return None
        try:
            solution = self.problem.read_solution(path, self.instance)
            return solution, self.problem.cost(self.instance, solution)
        except InputError:
            self._refuse(path, "no solution")

    def _marked(self, path: Path) -> float | None:
        """The cost that a file's mark tells; None where there is nothing to keep."""
        if self.force or not _filled(path):
            return None
        found = _MARK.search(path.read_bytes()) if path.stat().st_size <= MAX_BYTES else None
        if found is None or found[1].decode() != self.instance.digest:
            self._refuse(path, "nothing that spo solve wrote")
        return float(found[2])

    def _refuse(self, path: Path, what: str) -> NoReturn:
        raise InputError(
            f"{path} is there and is {what} of {self.instance.name}: name another file, or add "
            "--force to overwrite it"
        )


def mark_of(instance: Instance, cost: float) -> str:
    """What tells that `spo solve` wrote a file: the digest of the instance, and a cost."""
    return f"spo solve: {instance.digest} {float(cost)!r}"


def _filled(path: Path) -> bool:
    """Whether there is a regular file that holds something; a device or a pipe holds nothing."""
    return path.is_file() and path.stat().st_size > 0


# --- contents -------------------------------------------------------------------------------------


def as_json(problem: Problem, instance: Instance, solution: Solution) -> dict[str, Any]:
    """A solution as an object: cost, reference, limits (what of `Instance.extra` begins with
    max_), walks, and the solution as the problem has it.

    Of a walk there are the nodes, counted from 0 as rows of the distances are (in a CVRP the depot
    is 0), their ids and names in the file, the length, and the load where there are demands.
    """
    found: dict[str, Any] = {
        "problem": problem.name,
        "instance": instance.name,
        "size": instance.size,
        "cost": problem.cost(instance, solution),
        "reference": instance.reference,
        "reference_source": instance.reference_source,
        "remarks": list(remarks_of(instance)),
        **problem.sense,
    }
    if instance.capacity is not None:
        found["capacity"] = instance.capacity
    if limits := {name: value for name, value in instance.extra.items() if name.startswith("max_")}:
        found["limits"] = limits
    if problem.offers("walks"):
        found["walks"] = [_walk(instance, walk) for walk in problem.walks(instance, solution)]
    return found | {"solution": jsonable(solution)}


def _walk(instance: Instance, walk: list[int]) -> dict[str, Any]:
    nodes = [int(node) for node in walk]
    found: dict[str, Any] = {"nodes": nodes}
    for key in ("ids", "names"):
        if key in instance.file:
            found[key] = [instance.file[key][node] for node in nodes]
    found["length"] = math.fsum(instance.dist[nodes[:-1], nodes[1:]].tolist())
    if instance.demands is not None:
        found["load"] = int(instance.demands[nodes[:-1]].sum())
    return found


def require_map(problem: Problem, instance: Instance) -> None:
    """Raises InputError for an instance without geographic coordinates."""
    if "degrees" not in instance.file or not problem.offers("walks"):
        raise InputError(
            f"{instance.name} has no geographic coordinates, which --geojson needs: they come from "
            "a CSV with lat and lon or from EDGE_WEIGHT_TYPE GEO"
        )


def as_geojson(problem: Problem, instance: Instance, solution: Solution) -> dict[str, Any]:
    """The walks as LineStrings and the depot, if there is one, as a Point (RFC 7946).

    Positions are longitude, then latitude, in degrees with seven decimals: a centimetre.
    """
    places = [[round(x, 7) for x in place] for place in instance.file["degrees"].tolist()]
    features = []
    if instance.demands is not None:
        features.append(_feature("Point", places[0], {"depot": True}))
    for number, walk in enumerate(problem.walks(instance, solution), 1):
        about = _walk(instance, walk)
        line = [places[node] for node in about.pop("nodes")]
        features.append(_feature("LineString", line, {"route": number} | about))
    return {"type": "FeatureCollection", "features": features}


def _feature(kind: str, places: list[Any], about: dict[str, Any]) -> dict[str, Any]:
    geometry = {"type": kind, "coordinates": places}
    return {"type": "Feature", "properties": about, "geometry": geometry}
