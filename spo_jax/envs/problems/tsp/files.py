"""TSPLIB files: instances, tours, and the edge weights that the library defines.

Everything follows Reinelt, "TSPLIB - A traveling salesman problem library" (ORSA Journal on
Computing 3, 1991): integer edge weights in the convention that the file names, because recorded
optima hold only there. Files are scanned by `spo_jax.envs.textfiles`. The edge weights and the
reference look-up also serve `spo_jax.envs.problems.cvrp.files`.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.envs.textfiles import (
    Document,
    cost_text,
    instance_name,
    load_json,
    require_kind,
    scan,
    shown,
    write_atomically,
)
from spo_jax.errors import InputError

# --- edge weights -------------------------------------------------------------------------------

_PI, _EARTH = 3.141592, 6378.388  # TSPLIB's own constants; better ones would change the optima


def _nint(x: np.ndarray) -> np.ndarray:
    return np.floor(x + 0.5)


def _exact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.sqrt((a[..., 0] - b[..., 0]) ** 2 + (a[..., 1] - b[..., 1]) ** 2)


def _att(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Pseudo-Euclidean: a scaled distance, rounded, then raised by one if that lowered it."""
    exact = np.sqrt(((a[..., 0] - b[..., 0]) ** 2 + (a[..., 1] - b[..., 1]) ** 2) / 10.0)
    rounded = _nint(exact)
    return rounded + (rounded < exact)


def _geo(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Great circles in kilometres; `a` and `b` are (latitude, longitude) in DDD.MM."""
    (lat_a, lon_a), (lat_b, lon_b) = (np.moveaxis(_radians(x), -1, 0) for x in (a, b))
    q1, q2, q3 = np.cos(lon_a - lon_b), np.cos(lat_a - lat_b), np.cos(lat_a + lat_b)
    angle = np.arccos(np.clip(0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3), -1.0, 1.0))
    return np.trunc(_EARTH * angle + 1.0)


def degrees(coords: np.ndarray) -> np.ndarray:
    """Decimal degrees of TSPLIB's DDD.MM: the integer part is degrees, the rest is minutes."""
    whole = np.trunc(coords)
    return whole + 5.0 * (coords - whole) / 3.0


def _radians(coords: np.ndarray) -> np.ndarray:
    return _PI * degrees(coords) / 180.0


_METRICS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "EUC_2D": lambda a, b: _nint(_exact(a, b)),
    "CEIL_2D": lambda a, b: np.ceil(_exact(a, b)),
    "ATT": _att,
    "GEO": _geo,
}
EDGE_WEIGHT_TYPES = tuple(_METRICS)


def euclidean(coords: np.ndarray) -> np.ndarray:
    """[N, N] float64 unrounded Euclidean distances of [N, 2] `coords`.

    Exactly symmetric with a zero diagonal: differences are squared, never expanded.
    """
    return _matrix(coords, _exact)


def distance_matrix(coords: np.ndarray, edge_weight_type: str) -> np.ndarray:
    """[N, N] float64 edge weights of [N, 2] `coords`, integers in TSPLIB's rounding.

    The diagonal is 0. Nodes that share coordinates are 0 apart, except under GEO, where they are 1.
    """
    return _matrix(coords, _METRICS[edge_weight_type])


def scaled(dist: np.ndarray, largest: int) -> np.ndarray:
    """[N, N] int64 for solvers on integers: `dist` scaled so that its largest entry is `largest`.

    A matrix of integers that are small enough is left as it is.
    """
    top = float(dist.max(initial=0.0))
    if top <= largest and (dist == np.rint(dist)).all():
        return dist.astype(np.int64)
    return np.rint(dist * (largest / top)).astype(np.int64)


def _matrix(
    coords: np.ndarray, metric: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    coords = np.asarray(coords, np.float64)
    n = len(coords)
    dist = np.empty((n, n))
    step = max(1, 2**18 // max(n, 1))  # blocks of rows, so that temporaries stay small
    for k in range(0, n, step):
        dist[k : k + step] = metric(coords[k : k + step, None, :], coords[None, :, :])
    np.fill_diagonal(dist, 0.0)
    return dist


# --- references ---------------------------------------------------------------------------------


def recorded(path: Path, names: Iterable[str], field: str | None = None) -> tuple[float, str] | str:
    """The cost that a JSON index records for the first of `names` in it, and that name.

    An index maps a name to a cost, or to an object with the cost under `field`. Returns the reason
    as a clause if there is none.
    """
    if not path.exists():
        return f"no {path.name} beside the file"
    try:
        index = load_json(path)
    except InputError as error:
        return str(error)
    for name in names:
        value = index.get(name) if isinstance(index, dict) else None
        if isinstance(value, dict) and field:
            value = value.get(field)
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        if 0 <= value < math.inf:
            return float(value), name
    return f"{path.name} records no cost for it"


def best_reference(
    found: Sequence[tuple[float, str]], notes: Sequence[str]
) -> tuple[float | None, str]:
    """The lowest of the (cost, source) pairs, the first on ties, and its source with remarks.

    The remarks name the pairs that disagree, and `notes`; without any pair, they are the notes.
    """
    if not found:
        return None, "; ".join(notes)
    cost, source = min(found, key=lambda pair: pair[0])
    others = [f"{name} says {cost_text(value)}" for value, name in found if value != cost]
    remarks = [*others, *notes]
    return cost, source + (f" ({'; '.join(remarks)})" if remarks else "")


# --- instances and tours ------------------------------------------------------------------------


def read(path: str | Path) -> Instance:
    """A symmetric TSP instance with coordinates (EUC_2D, CEIL_2D, ATT or GEO).

    Node k is the k-th line of NODE_COORD_SECTION; `file` keeps the file's ids (list of N ints) and
    its edge_weight_type. The reference is the cost of the `.opt.tour` beside the file or the value
    in a `solutions.json` beside it, the lower of the two if both exist.

    Raises InputError for a file that is not such an instance. A damaged reference is not an error:
    reference_source says what is wrong.
    """
    document = scan(path)
    known = {"NODE_COORD_SECTION", "DISPLAY_DATA_SECTION"}
    weight = require_kind(document, "TSP", EDGE_WEIGHT_TYPES, known)
    ids, coords = document.nodes(document.dimension(least=3))
    name = instance_name(document, ".tsp")
    file = {"ids": ids, "edge_weight_type": weight}
    instance = Instance("tsp", name, len(ids), coords, distance_matrix(coords, weight), file=file)
    reference, source = _reference(document.path, instance)
    return replace(instance, reference=reference, reference_source=source)


def _reference(path: Path, instance: Instance) -> tuple[float | None, str]:
    found, notes = [], []
    tour_file = path.with_name(path.stem + ".opt.tour")
    index = path.with_name("solutions.json")
    if tour_file.exists():
        try:
            tour = read_tour(tour_file, instance)
            found.append((tour_cost(instance.dist, tour), tour_file.name))
        except InputError as error:
            notes.append(f"unusable: {error}")
    value = recorded(index, (path.stem, instance.name))
    if not isinstance(value, str):
        found.append((value[0], index.name))
    elif not tour_file.exists():
        notes.append(f"no {tour_file.name} beside the file")
        notes.append(value)
    if not found and not tour_file.exists() and not index.exists():
        notes = ["no .opt.tour or solutions.json beside the file"]
    return best_reference(found, notes)


def tour_cost(dist: np.ndarray, tour: Sequence[int]) -> float:
    """The exact float64 length of a closed tour: the correctly rounded sum of its edges."""
    nodes = list(tour)
    return math.fsum(dist[nodes, nodes[1:] + nodes[:1]].tolist())


def check_tour(instance: Instance, tour: Sequence[int]) -> None:
    """Raises InputError unless `tour` visits every node of `instance` exactly once."""
    if sorted(tour) != list(range(instance.size)):
        raise InputError(f"not a tour of {instance.name}: it must visit every node exactly once")


def lower_bound(instance: Instance) -> float:
    """A lower bound on the length of a tour: half of each node's two shortest edges."""
    if instance.size < 3:
        return 0.0
    others = instance.dist + np.diag(np.full(instance.size, np.inf))
    return float(np.partition(others, 1)[:, :2].sum() / 2)


def read_tour(path: str | Path, instance: Instance) -> list[int]:
    """The first tour of a TSPLIB tour file, as nodes 0..N-1 of `instance`. Raises InputError."""
    document = scan(path)
    kind = document.fields.get("TYPE", (0, "TOUR"))[1]
    if kind.upper() != "TOUR":
        document.fail(f"TYPE is {shown(kind)}, expected TOUR")
    if "DIMENSION" in document.fields and document.dimension(least=1) != instance.size:
        document.fail(f"DIMENSION differs from the {instance.size} nodes of {instance.name}")
    node_of = {file_id: node for node, file_id in enumerate(_ids(instance))}
    tour: list[int] = []
    seen: set[int] = set()
    for row in document.section("TOUR_SECTION"):
        for word in row.words:
            file_id = document.integer(word, "a node id", row.line)
            if file_id == -1 and -1 not in node_of:
                return _complete(document, tour, instance)
            if file_id not in node_of:
                document.fail(f"{instance.name} has no node {file_id}", row.line)
            if node_of[file_id] in seen:
                document.fail(f"node {file_id} is visited twice", row.line)
            seen.add(node_of[file_id])
            tour.append(node_of[file_id])
    return _complete(document, tour, instance)


def _complete(document: Document, tour: list[int], instance: Instance) -> list[int]:
    if len(tour) != instance.size:
        document.fail(f"the tour visits {len(tour)} of the {instance.size} nodes")
    return tour


def _ids(instance: Instance) -> list[int]:
    return instance.file.get("ids") or list(range(1, instance.size + 1))


def write_tour(path: str | Path, instance: Instance, tour: Sequence[int]) -> None:
    """A TSPLIB tour file with the ids of the instance's own file. Raises InputError."""
    nodes = [int(node) for node in tour]
    check_tour(instance, nodes)
    ids = _ids(instance)
    lines = [
        f"NAME : {instance.name}.tour",
        f"COMMENT : length {cost_text(tour_cost(instance.dist, nodes))}",
        "TYPE : TOUR",
        f"DIMENSION : {instance.size}",
        "TOUR_SECTION",
        *(str(ids[node]) for node in nodes),
        "-1",
        "EOF",
    ]
    write_atomically(path, "\n".join(lines) + "\n")
