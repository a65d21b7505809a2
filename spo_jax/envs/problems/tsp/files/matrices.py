"""Distance matrices that files give entry by entry: the EDGE_WEIGHT_SECTION of TSPLIB."""

from collections.abc import Callable, Sequence
from typing import NoReturn

import numpy as np

from spo_jax.envs.files.textfiles import MAX_COORDINATE, Document, cost_text, shown
from spo_jax.envs.shared_arrays import empty

# Whether a format runs through the upper or the lower triangle when it is read row by row, and
# whether the diagonal is in it. Half a matrix is symmetric: a triangle by columns is the other by
# rows.
_TRIANGLES = {
    "UPPER_ROW": ("upper", 1),
    "LOWER_ROW": ("lower", 1),
    "UPPER_DIAG_ROW": ("upper", 0),
    "LOWER_DIAG_ROW": ("lower", 0),
    "UPPER_COL": ("lower", 1),
    "LOWER_COL": ("upper", 1),
    "UPPER_DIAG_COL": ("lower", 0),
    "LOWER_DIAG_COL": ("upper", 0),
}
EDGE_WEIGHT_FORMATS = ("FULL_MATRIX", *_TRIANGLES)
_SAME = 1e-9  # relative: two ways that differ by less differ by the rounding of who wrote them


def explicit(document: Document, n: int) -> np.ndarray:
    """[n, n] float64 distances of EDGE_WEIGHT_SECTION, in any of EDGE_WEIGHT_FORMATS.

    Line breaks carry no meaning. The diagonal is not looked at: it is 0. Raises InputError.
    """
    format = document.text("EDGE_WEIGHT_FORMAT").upper()
    if format not in EDGE_WEIGHT_FORMATS:
        document.fail(
            f"EDGE_WEIGHT_FORMAT {shown(format)} is not supported; supported: "
            f"{', '.join(EDGE_WEIGHT_FORMATS)}",
            document.fields["EDGE_WEIGHT_FORMAT"][0],
        )
    values = _numbers(document)
    side, offset = _TRIANGLES.get(format, ("", 0))
    due = n * n if not side else n * (n + 1) // 2 - offset * n
    if len(values) != due:
        document.fail(
            f"EDGE_WEIGHT_SECTION has {len(values)} numbers, but {format} of {n} nodes has {due}"
        )
    if not side:
        dist = empty((n, n))
        dist[...] = values.reshape(n, n)
    else:
        dist = empty((n, n))
        done = 0
        for k in range(n):
            row = slice(k + offset, n) if side == "upper" else slice(0, k + 1 - offset)
            length = row.stop - row.start
            dist[k, row] = dist[row, k] = values[done : done + length]
            done += length
    return checked(dist, [str(k) for k in range(1, n + 1)], document.fail)


def checked(dist: np.ndarray, names: Sequence[str], fail: Callable[[str], NoReturn]) -> np.ndarray:
    """`dist` with a diagonal of 0; exactly symmetric if all ways are as long as the ways back but
    for the rounding of who wrote them. names: of the nodes, for errors.

    Calls `fail` for a negative distance.
    """
    np.fill_diagonal(dist, 0.0)
    i, j = divmod(int(dist.argmin()), len(dist))
    if dist[i, j] < 0:
        fail(
            f"the distance from {names[i]} to {names[j]} is {cost_text(dist[i, j])}, "
            "but no distance may be negative"
        )
    if difference(dist) is None:
        for k in range(len(dist)):
            dist[k:, k] = dist[k, k:]
    return dist


def difference(dist: np.ndarray) -> tuple[int, int] | None:
    """The first node, and the one to which its way differs most from the way back, or None."""
    for k in range(len(dist)):
        away, back = dist[k, k:], dist[k:, k]
        wrong = np.abs(away - back) > _SAME * np.maximum(away, back)
        if wrong.any():
            return k, k + int(np.where(wrong, np.abs(away - back), -1.0).argmax())
    return None


def remark(dist: np.ndarray) -> list[str]:
    """What to say of distances that depend on the direction."""
    total = float(dist.sum())
    differs = sum(float(np.abs(dist[k] - dist[:, k]).sum()) for k in range(len(dist)))
    if not differs:
        return []
    share = 100 * differs / total
    apart = f"{share:.{share < 10:d}f}% on average"
    return [f"distances depend on the direction: there and back differ by {apart}"]


def _numbers(document: Document) -> np.ndarray:
    parts = []
    for row in document.section("EDGE_WEIGHT_SECTION"):
        try:
            part = np.array(row.words, np.float64)
            good = bool((np.abs(part) <= MAX_COORDINATE).all()) and "_" not in row.text
        except ValueError:
            good = False
        if not good:
            part = np.array([document.number(word, "distance", row.line) for word in row.words])
        parts.append(part)
    return np.concatenate(parts)
