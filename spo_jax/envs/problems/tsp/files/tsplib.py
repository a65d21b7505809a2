"""TSPLIB files: instances and tours.

Everything follows Reinelt, "TSPLIB - A traveling salesman problem library" (ORSA Journal on
Computing 3, 1991): edge weights in the convention that the file names, because recorded optima
hold only there, unless another rounding is asked for. Files are scanned by
`spo_jax.envs.files.textfiles`. Nodes with their weights, and the reference look-up, also serve
`spo_jax.envs.problems.cvrp.files.cvrplib`.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from spo_jax.envs.files.headers import ABOUT, instance_name, is_fleet, require_kind, unused
from spo_jax.envs.files.reading import AS_STATED, Reading
from spo_jax.envs.files.textfiles import (
    Document,
    cost_text,
    counted,
    load_json,
    scan,
    shown,
    write_atomically,
)
from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.tsp.files.matrices import difference, explicit
from spo_jax.envs.problems.tsp.files.weights import EDGE_WEIGHT_TYPES as EDGE_WEIGHT_TYPES
from spo_jax.envs.problems.tsp.files.weights import (
    GEOGRAPHIC,
    Weights,
    axes_of,
    weights,
    weights_of,
)
from spo_jax.envs.problems.tsp.files.weights import degrees as degrees
from spo_jax.envs.problems.tsp.files.weights import distance_matrix as distance_matrix
from spo_jax.envs.problems.tsp.files.weights import euclidean as euclidean
from spo_jax.envs.problems.tsp.files.weights import scaled as scaled
from spo_jax.errors import InputError

# Where coordinates stand: the first is for distances, and for pictures of a matrix.
_PLACES = ("NODE_COORD_SECTION", "DISPLAY_DATA_SECTION")
# Why recorded costs are left out, and the cost of a known solution is computed anew.
OTHER_DISTANCES = "recorded optima are for the distances that the file asks for"

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


@dataclass(frozen=True)
class Nodes:
    """The nodes of a file in its order: ids, coords ([N, 2] float64 or None), and edge weights.

    file: what instances keep in `Instance.file`: ids, edge_weight_type, remarks, and, where the
    coordinates are geographic, `degrees` ([N, 2] float64 longitudes and latitudes).
    """

    ids: list[int]
    coords: np.ndarray | None
    weights: Weights
    file: dict[str, Any]


def nodes_of(document: Document, weight: str, distances: str) -> Nodes:
    """The nodes of a TSPLIB file, at least two. Raises InputError.

    The coordinates of an EXPLICIT file are those of NODE_COORD_SECTION or DISPLAY_DATA_SECTION, if
    it has one: for pictures.
    """
    n = document.dimension(least=2)
    pictures = [key for key in _PLACES if key in document.sections]
    remarks = []
    if weight == "EXPLICIT":
        ids, coords = list(range(1, n + 1)), None
        if pictures:
            ids, coords = document.nodes(n, pictures[0])
            if not counted(ids):
                document.fail(
                    f"the ids of {pictures[0]} are not 1 to {n}: those are the nodes of the rows "
                    "of an EXPLICIT matrix"
                )
        found = weights_of(explicit(document, n), distances)
        rule = f"--distances {distances}"
    else:
        if "EDGE_WEIGHT_SECTION" in document.sections:
            document.fail(f"EDGE_WEIGHT_SECTION is for EXPLICIT edge weights, not for {weight}")
        ids, places = document.nodes(n, axes=axes_of(weight))
        found = weights(places, weight, distances)
        coords = places[:, :2]
        rule = weight if found.as_stated else f"--distances {distances}"
    file: dict[str, Any] = {"ids": ids, "edge_weight_type": weight}
    if weight in GEOGRAPHIC and coords is not None:
        file["degrees"] = (degrees(coords) if weight == "GEO" else coords)[:, ::-1]
        if (wrong := np.abs(file["degrees"]) > (180, 90)).any():
            k = int(wrong.any(axis=1).argmax())
            lat, lon = (cost_text(each) for each in coords[k].tolist())
            document.fail(
                f"node {ids[k]}, latitude {lat} and longitude {lon}, is no place on earth, which "
                f"EDGE_WEIGHT_TYPE {weight} asks for"
            )
        remarks += _of_degrees(weight, coords)
    if len(pictures) > 1:
        remarks.append(f"not used: {pictures[1]}")
    if remarks := [*remarks, *found.remarks(rule)]:
        file["remarks"] = remarks
    return Nodes(ids, coords, found, file)


def _of_degrees(weight: str, coords: np.ndarray) -> list[str]:
    """A remark on GEO coordinates that are decimal degrees: two in five of these have minutes above
    59. In TSPLIB's own files a few are slips.
    """
    minutes = 100 * np.modf(np.abs(coords))[0]
    wrong = np.argwhere(minutes > 59.9999)
    if weight != "GEO" or len(wrong) < coords.size / 10:
        return []
    word = cost_text(coords[tuple(wrong[0])])
    return [
        f"{word} has minutes above 59: GEO reads degrees and minutes (DDD.MM), and GEOM, or a CSV "
        "with lat and lon, decimal degrees"
    ]


def read(path: str | Path, reading: Reading = AS_STATED) -> Instance:
    """A TSP instance, of coordinates (EDGE_WEIGHT_TYPES) or a matrix (EXPLICIT).

    Its TYPE is TSP, or ATSP where distances depend on the direction.

    Nodes are in the order of their ids where these are 1 to N, else in that of their lines; `file`
    keeps the ids (list of N ints) and the edge_weight_type. The reference is the cost of the
    `.opt.tour` beside the file or the value in a `solutions.json` beside it, the lower of the two
    if both exist; of these only the first where `reading` asks for other distances than the file's.

    Raises InputError for a file that is not such an instance. A damaged reference is not an error:
    reference_source says what is wrong.
    """
    document = scan(path)
    known = {*_PLACES, "EDGE_WEIGHT_SECTION"}
    types = (*EDGE_WEIGHT_TYPES, "EXPLICIT")
    kind, weight = require_kind(document, ("TSP", "ATSP"), types, known)
    remarks = unused(document, _one_salesman(document))
    nodes = nodes_of(document, weight, reading.distances)
    if remarks:
        nodes.file["remarks"] = [*nodes.file.get("remarks", ()), *remarks]
    found = nodes.weights
    if kind == "TSP" and not found.symmetric and (apart := difference(found.dist)):
        i, j = apart
        there, back = (cost_text(nodes.weights.dist[way]) for way in ((i, j), (j, i)))
        document.fail(
            f"{nodes.ids[i]} to {nodes.ids[j]} is {there} and back {back}, but TYPE TSP says that "
            "both are alike: write TYPE: ATSP if they are not",
            document.fields["TYPE"][0],
        )
    instance = Instance(
        problem="tsp",
        name=instance_name(document, ".tsp").removesuffix(".atsp"),
        size=len(nodes.ids),
        coords=nodes.coords,  # type: ignore[arg-type]
        dist=nodes.weights.dist,
        file=nodes.file,
    )
    reference, source = _reference(document.path, instance, nodes.weights.as_stated)
    return replace(instance, reference=reference, reference_source=source)


def _one_salesman(document: Document) -> list[str]:
    """The fields that count salesmen. Raises InputError where they are several."""
    keys = [key for key in document.fields if is_fleet(key)]
    for key in keys:
        line, word = document.fields[key]
        if document.integer(word, key, line) != 1:
            document.fail(f"{key} {word}: several salesmen (mTSP) are not supported", line)
    return keys


def _reference(path: Path, instance: Instance, as_stated: bool) -> tuple[float | None, str]:
    found, notes = [], []
    tour_file = path.with_name(path.stem + ".opt.tour")
    index = path.with_name("solutions.json")
    if tour_file.exists():
        try:
            tour = read_tour(tour_file, instance)
            found.append((tour_cost(instance.dist, tour), tour_file.name))
        except InputError as error:
            notes.append(f"unusable: {error}")
    if not as_stated:
        return best_reference(found, [*notes, OTHER_DISTANCES])
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
    """A lower bound on the length of a tour: half of each node's two shortest edges; of a directed
    instance the shortest ways from all nodes, or to them.
    """
    if instance.size < 3:
        return 0.0
    shortest = np.array([np.partition(row, 1)[:2] for row in to_others(instance.dist)])
    if not instance.directed:
        return float(shortest.sum() / 2)
    back = np.array([row.min() for row in to_others(instance.dist.T)])
    return float(max(back.sum(), shortest[:, 0].sum()))


def to_others(dist: np.ndarray) -> Iterator[np.ndarray]:
    """A copy of each row of `dist` [N, N] without its entry on the diagonal: [N - 1]."""
    return (np.delete(row, k) for k, row in enumerate(dist))


def read_tour(path: str | Path, instance: Instance) -> list[int]:
    """The tour of a TSPLIB tour file, as nodes 0..N-1 of `instance`. Raises InputError."""
    document = scan(path)
    for key, (line, _) in document.fields.items():
        if key not in ABOUT:
            document.fail(f"{key} is no field of a tour", line)
    rows = document.section("TOUR_SECTION")
    for key in document.sections:
        if key != "TOUR_SECTION":
            document.fail(f"{key} is no section of a tour")
    kind = document.fields.get("TYPE", (0, "TOUR"))[1]
    if kind.upper() != "TOUR":
        document.fail(f"TYPE is {shown(kind)}, expected TOUR")
    if "DIMENSION" in document.fields and document.dimension(least=1) != instance.size:
        document.fail(f"DIMENSION differs from the {instance.size} nodes of {instance.name}")
    node_of = {file_id: node for node, file_id in enumerate(_ids(instance))}
    tour: list[int] = []
    seen: set[int] = set()
    ended = False
    for row in rows:
        for word in row.words:
            file_id = document.integer(word, "a node id", row.line)
            if file_id == -1 and -1 not in node_of:
                ended = True
                continue
            if ended:
                document.fail("a second tour begins here: write one tour to a file", row.line)
            if file_id not in node_of:
                document.fail(f"{instance.name} has no node {file_id}", row.line)
            if node_of[file_id] in seen:
                document.fail(f"node {file_id} is visited twice", row.line)
            seen.add(node_of[file_id])
            tour.append(node_of[file_id])
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
