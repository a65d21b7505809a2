"""The page of payoffs: each round's matrix of J with the credits at its margins."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from spo_jax.errors import InputError
from spo_jax.runs.report.figures import Scale
from spo_jax.runs.report.text import number
from spo_jax.runs.run import Run

MOST_CELLS = 100_000  # of all matrices


@dataclass(frozen=True)
class Cell:
    """A pair in a matrix. name: of its repair. bin: of the scale of values, -1 without J."""

    name: str
    value: str
    bin: int
    credit: str


@dataclass(frozen=True)
class Row:
    """A destroy with its pairs. credit, selection: what it learns from, and is selected by."""

    name: str
    cells: tuple[Cell, ...]
    credit: str
    selection: str
    bin: int


@dataclass(frozen=True)
class Matrix:
    """A round's payoffs, the rows and the cells of a row with the best first.

    apart: whether followers earn other credits than J. panel: rows of the cross-play, whose columns
    are `candidates`, with their scores below.
    """

    number: int
    summary: str
    rows: tuple[Row, ...]
    width: int
    apart: bool
    selected_apart: bool
    panel: tuple[Row, ...]
    candidates: tuple[Cell, ...]


def page(run: Run) -> dict[str, Any]:
    """Matrices by round, the last first, the ends of the scale of colours, and how many are left
    out.
    """
    if not run.rounds:
        return {"missing": "There are no payoffs, because no round of this run is over yet."}
    if run.config.search.method != "spo":
        return {
            "missing": f"There is no matrix of payoffs, because the method "
            f"{run.config.search.method} does not answer {run.game.leader.plural} with "
            f"{run.game.follower.plural} and has no credits."
        }
    try:
        scores = {k: run.credits(k) for k in range(1, run.rounds + 1)}
    except InputError as error:
        return {"missing": f"There is no matrix of payoffs: {error}"}
    everything = [each.utility.ravel() for each in scores.values()]
    scale = Scale(np.concatenate(everything) if everything else np.zeros(0))
    best = run.best.round if run.best else 0
    drawn: list[int] = []
    room = MOST_CELLS
    for k in sorted(scores, key=lambda k: (k != best, -k)):  # the best pair's, then the last ones
        room -= scores[k].utility.size
        if room < 0 and drawn:
            break
        drawn.append(k)
    return {
        "matrices": [_matrix(run, k, scores[k], scale) for k in sorted(drawn, reverse=True)],
        "ends": (number(scale.low), number(scale.high)),
        "best": best,
        "left_out": len(scores) - len(drawn),
    }


def _matrix(run: Run, k: int, scores: Any, scale: Scale) -> Matrix:
    utility, follower = scores.utility, scores.follower
    # Credits may have any size, so their colours are relative to the round.
    own = Scale(scores.leader)
    apart = not np.allclose(utility, follower, equal_nan=True)
    rows = []
    for i in _falling(scores.leader):
        cells = [
            _cell(str(scores.repairs[i, j]), utility[i, j], follower[i, j], scale)
            for j in _falling(utility[i])
            if scores.repairs[i, j]
        ]
        rows.append(
            Row(
                str(scores.destroys[i]), tuple(cells), number(scores.leader[i]),
                number(scores.leader_selection[i]), own.bin(scores.leader[i]),
            )
        )  # fmt: skip
    panel, candidates = _panel(run, k, scale)
    known = utility[np.isfinite(utility)]
    best = number(float(known.max())) if len(known) else "–"
    middle = number(float(np.median(known))) if len(known) else "–"
    summary = (
        f"best {best}, median {middle}, {len(rows)} {run.game.leader.plural}, "
        f"{len(known)} valid responses"
    )
    same = np.allclose(scores.leader, scores.leader_selection, equal_nan=True)
    width = max((len(row.cells) for row in rows), default=0)
    return Matrix(k, summary, tuple(rows), width, apart, not same, panel, candidates)


def _panel(run: Run, k: int, scale: Scale) -> tuple[tuple[Row, ...], tuple[Cell, ...]]:
    played = run.cross_play(k)
    order = _falling(played.scores)
    rows = []
    for i, name in enumerate(played.destroys):
        cells = [
            _cell(str(played.repairs[j]), played.utility[i, j], math.nan, scale) for j in order
        ]
        known = played.utility[i][np.isfinite(played.utility[i])]
        mean = float(known.mean()) if len(known) else math.nan
        rows.append(Row(str(name), tuple(cells), number(mean), "", scale.bin(mean)))
    below = [_cell(str(played.repairs[j]), played.scores[j], math.nan, scale) for j in order]
    return tuple(rows), tuple(below)


def _cell(name: str, value: float, credit: float, scale: Scale) -> Cell:
    return Cell(name, short(value), scale.bin(value), number(credit))


def _falling(values: np.ndarray) -> list[int]:
    """Indices [N], the highest value first and NaN last."""
    return [int(k) for k in np.argsort(-np.where(np.isnan(values), -np.inf, values), kind="stable")]


def short(value: float) -> str:
    """.7203, without the 0 in front, and a dash for none."""
    return number(value).replace("0.", ".", 1) if abs(value) < 1 else number(value)
