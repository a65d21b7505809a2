"""Edge weights from coordinates: the conventions of TSPLIB, and distances without rounding.

Every convention is a distance and a rounding of it, after Reinelt, "TSPLIB - A traveling salesman
problem library" (ORSA Journal on Computing 3, 1991).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from spo_jax.envs.problems.tsp.files.matrices import remark
from spo_jax.envs.shared_arrays import empty

_PI, _EARTH = 3.141592, 6378.388  # TSPLIB's own constants; better ones would change the optima
_MEAN_EARTH = 6371.0088  # kilometres, the mean radius of the IUGG

# Of [..., 2] and [..., 2] coordinates, or [..., 3] and [..., 3].
Distance = Callable[[np.ndarray, np.ndarray], np.ndarray]
Rounding = Callable[[np.ndarray], np.ndarray]


def _nint(x: np.ndarray) -> np.ndarray:
    return np.floor(x + 0.5)


def _straight(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.sqrt((a[..., 0] - b[..., 0]) ** 2 + (a[..., 1] - b[..., 1]) ** 2)


def _straight_3d(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.sqrt(((a - b) ** 2).sum(axis=-1))


def _manhattan(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.abs(a - b).sum(axis=-1)


def _maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.abs(a - b).max(axis=-1)


def _att(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Pseudo-Euclidean: a scaled distance."""
    return np.sqrt(((a[..., 0] - b[..., 0]) ** 2 + (a[..., 1] - b[..., 1]) ** 2) / 10.0)


def _att_rounded(exact: np.ndarray) -> np.ndarray:
    """Rounded, then raised by one if that lowered it."""
    rounded = _nint(exact)
    return rounded + (rounded < exact)


def _geo(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Great circles in kilometres; `a` and `b` are (latitude, longitude) in DDD.MM."""
    (lat_a, lon_a), (lat_b, lon_b) = (np.moveaxis(_radians(x), -1, 0) for x in (a, b))
    q1, q2, q3 = np.cos(lon_a - lon_b), np.cos(lat_a - lat_b), np.cos(lat_a + lat_b)
    angle = np.arccos(np.clip(0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3), -1.0, 1.0))
    return _EARTH * angle


def _geom(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Great circles in metres; `a` and `b` are (latitude, longitude) in decimal degrees.

    With Concorde's radius; symmetric to the last bit, which its own formula is not.
    """
    (lat_a, lon_a), (lat_b, lon_b) = (np.moveaxis(np.radians(x), -1, 0) for x in (a, b))
    sine, cosine = (f((lon_a - lon_b) / 2) ** 2 for f in (np.sin, np.cos))
    near = np.sin((lat_a - lat_b) / 2) ** 2 * cosine + np.cos((lat_a + lat_b) / 2) ** 2 * sine
    far = np.cos((lat_a - lat_b) / 2) ** 2 * cosine + np.sin((lat_a + lat_b) / 2) ** 2 * sine
    return 2000 * _EARTH * np.arctan2(np.sqrt(near), np.sqrt(far))


def great_circle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Great circles in kilometres; `a` and `b` are (longitude, latitude) in decimal degrees."""
    (lon_a, lat_a), (lon_b, lat_b) = (np.moveaxis(np.radians(x), -1, 0) for x in (a, b))
    half = np.sin((lat_a - lat_b) / 2) ** 2
    half = half + np.cos(lat_a) * np.cos(lat_b) * np.sin((lon_a - lon_b) / 2) ** 2
    return 2 * _MEAN_EARTH * np.arcsin(np.sqrt(np.minimum(half, 1.0)))


def degrees(coords: np.ndarray) -> np.ndarray:
    """Decimal degrees of TSPLIB's DDD.MM: the integer part is degrees, the rest is minutes."""
    whole = np.trunc(coords)
    return whole + 5.0 * (coords - whole) / 3.0


def _radians(coords: np.ndarray) -> np.ndarray:
    return _PI * degrees(coords) / 180.0


def _above(exact: np.ndarray) -> np.ndarray:
    return np.trunc(exact + 1.0)


# EXACT_2D, FLOOR_2D and their like in three dimensions are of LKH, GEOM is of Concorde.
_CONVENTIONS: dict[str, tuple[Distance, Rounding | None]] = {
    "EUC_2D": (_straight, _nint),
    "CEIL_2D": (_straight, np.ceil),
    "FLOOR_2D": (_straight, np.floor),
    "EXACT_2D": (_straight, None),
    "EUC_3D": (_straight_3d, _nint),
    "CEIL_3D": (_straight_3d, np.ceil),
    "FLOOR_3D": (_straight_3d, np.floor),
    "EXACT_3D": (_straight_3d, None),
    "MAN_2D": (_manhattan, _nint),
    "MAN_3D": (_manhattan, _nint),
    "MAX_2D": (_maximum, _nint),
    "MAX_3D": (_maximum, _nint),
    "ATT": (_att, _att_rounded),
    "GEO": (_geo, _above),
    "GEOM": (_geom, _above),
}
EDGE_WEIGHT_TYPES = tuple(_CONVENTIONS)
GEOGRAPHIC = ("GEO", "GEOM")  # whose coordinates are latitude and longitude


def _cut(exact: np.ndarray) -> np.ndarray:
    """To one decimal, as the DIMACS challenge has the VRPTW."""
    return np.floor(10.0 * exact) / 10.0


_ROUNDINGS: dict[str, Rounding | None] = {"exact": None, "round": _nint, "ceil": np.ceil}
_ROUNDINGS["dimacs"] = _cut
# Options that say what the file says.
_ALIKE = {
    (f"{kind}_2D", own)
    for kind, own in [
        ("EUC", "round"),
        ("MAN", "round"),
        ("MAX", "round"),
        ("CEIL", "ceil"),
        ("EXACT", "exact"),
    ]
}
_ALIKE |= {(kind.replace("2D", "3D"), own) for kind, own in _ALIKE}


@dataclass(frozen=True)
class Weights:
    """Distances as they are used, and what rounding did to them.

    dist: [N, N] float64, with a diagonal of 0. moved: the mean change by rounding over the mean
    distance; near: the same over each node's nearest neighbour. as_stated: whether they are what
    the file says, so that its recorded costs hold. symmetric: whether they are known to be, as
    those of coordinates are.
    """

    dist: np.ndarray
    moved: float = 0.0
    near: float = 0.0
    as_stated: bool = True
    symmetric: bool = False

    def remarks(self, rule: str) -> list[str]:
        """By how much distances depend on the direction, and a warning where rounding changes what
        is solved. rule: what says that it is rounded.

        By more than one per cent on average; or by more than ten between neighbours, which
        matter most: benchmarks on integer grids are below seven.
        """
        directions = [] if self.symmetric else remark(self.dist)
        keep = "--distances exact keeps them"
        if self.moved > 0.01:
            far = f"{100 * self.moved:.{self.moved < 0.1:d}f}%"
            rounding = f"rounding, as {rule} says, changes distances by {far} on average: {keep}"
            return [*directions, rounding]
        if self.near > 0.1:
            far = f"{100 * self.near:.0f}%"
            rounding = f"rounding, as {rule} says, changes short distances by {far}: {keep}"
            return [*directions, rounding]
        return directions


def axes_of(edge_weight_type: str) -> str:
    """What the coordinates of a convention are called."""
    return "x y z" if edge_weight_type.endswith("_3D") else "x y"


def exact_length(coords: np.ndarray, edge_weight_type: str, walk: Sequence[int]) -> float:
    """The length of a walk through [N, 2 or 3] `coords` without rounding."""
    distance, _ = _CONVENTIONS[edge_weight_type]
    nodes = coords[list(walk)]
    return math.fsum(distance(nodes[:-1], nodes[1:]).tolist())


def weights(coords: np.ndarray, edge_weight_type: str, distances: str = "file") -> Weights:
    """Those of [N, 2 or 3] `coords`, in the convention of the file or, unless "file", as
    `distances` says.
    """
    distance, rounding = _CONVENTIONS[edge_weight_type]
    as_stated = distances == "file" or (edge_weight_type, distances) in _ALIKE
    return _made(coords, distance, rounding if as_stated else _ROUNDINGS[distances], as_stated)


def weights_by(coords: np.ndarray, distance: Distance | None, distances: str = "file") -> Weights:
    """Those of [N, 2] `coords` by a distance, straight lines if None, that no file rounds."""
    return _made(coords, distance or _straight, _ROUNDINGS.get(distances), distances == "file")


def weights_of(dist: np.ndarray, distances: str = "file") -> Weights:
    """Those of a matrix [N, N] that is given, which no file rounds."""
    rounding = _ROUNDINGS.get(distances)
    if rounding is None:
        return Weights(dist)
    found = _filled(len(dist), lambda low, high: dist[low:high], rounding)
    return Weights(*found, as_stated=np.array_equal(found[0], dist))


def distance_matrix(coords: np.ndarray, edge_weight_type: str) -> np.ndarray:
    """[N, N] float64 edge weights of [N, 2] `coords`, integers in TSPLIB's rounding.

    The diagonal is 0. Nodes that share coordinates are 0 apart, except under GEO, where they are 1.
    """
    return weights(coords, edge_weight_type).dist


def euclidean(coords: np.ndarray) -> np.ndarray:
    """[N, N] float64 unrounded Euclidean distances of [N, 2] `coords`.

    Exactly symmetric with a zero diagonal: differences are squared, never expanded.
    """
    return weights_by(coords, None).dist


def scaled(dist: np.ndarray, largest: int) -> np.ndarray:
    """[N, N] int64 for solvers on integers: `dist` scaled so that its largest entry is `largest`.

    A matrix of integers that are small enough is left as it is.
    """
    top = float(dist.max(initial=0.0))
    if top <= largest and (dist == np.rint(dist)).all():
        return dist.astype(np.int64)
    return np.rint(dist * (largest / top)).astype(np.int64)


def _made(
    coords: np.ndarray, distance: Distance, rounding: Rounding | None, as_stated: bool
) -> Weights:
    coords = np.asfortranarray(coords, np.float64)  # each axis in one piece is twice as fast

    def rows(low: int, high: int) -> np.ndarray:
        return distance(coords[low:high, None, :], coords[None, :, :])

    return Weights(*_filled(len(coords), rows, rounding), as_stated, symmetric=True)


def _filled(
    n: int, rows: Callable[[int, int], np.ndarray], rounding: Rounding | None
) -> tuple[np.ndarray, float, float]:
    """The matrix of rounded rows; how much rounding moved all distances, and those to the nearest.

    rows: the exact rows from one number to another.
    """
    dist = empty((n, n))
    sums: list[tuple[float, ...]] = []
    step = max(1, 2**16 // max(n, 1))  # blocks of rows, so that temporaries stay in the cache
    for k in range(0, n, step):
        exact = rows(k, min(k + step, n))
        dist[k : k + step] = exact if rounding is None else rounding(exact)
        if rounding is not None:
            own = (np.arange(len(exact)), np.arange(k, k + len(exact)))
            dist[own[1], own[1]], exact[own] = 0.0, 0.0
            moved = np.abs(dist[k : k + step] - exact)
            whole = float(moved.sum()), float(exact.sum())
            exact[own] = np.inf
            nearest = (own[0], exact.argmin(axis=1))
            sums.append((*whole, float(moved[nearest].sum()), float(exact[nearest].sum())))
    np.fill_diagonal(dist, 0.0)
    if n < 2 or not sums:
        return dist, 0.0, 0.0
    all_moved, total, near_moved, near = (math.fsum(column) for column in zip(*sums, strict=True))
    return dist, all_moved / total if total else 0.0, near_moved / near if near else 0.0
