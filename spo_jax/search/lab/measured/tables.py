"""Payoff tables of real programs: complete cross-play, as experiments/payoff_table.py makes it.

Programs that fail are in them.
"""

import io
import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from spo_jax.envs.files.textfiles import load_json
from spo_jax.errors import InputError
from spo_jax.program import Program
from spo_jax.search.lab.measured.dataset import data_of
from spo_jax.search.lab.measured.shares import Shares, shares_of
from spo_jax.search.lab.worlds import Worlds, failing_chances
from spo_jax.seeding import numpy_rng

Array = np.ndarray
LOWEST = 1e-6  # a cost so near the lowest, relative to it, counts as the lowest


@dataclass(frozen=True, eq=False)
class Table:
    """Scores of every destroy with every repair.

    scores: [K, M, E] float64, J of an evaluation, which is one instance with one seed, the same for
    all pairs; NaN where it failed; those of an instance, `per_instance` many, are side by side.
    answer: [K] int, the repair that was written for each destroy, -1 where there is none. step:
    after which the cost was taken, 0 where the file does not say. lowest: the share of rollouts at
    the lowest cost of their instance; NaN where the file has no costs. destroys: K programs; empty
    where they are not known. test: [E] bool, evaluations that rounds do not see, as they are those
    of the truth; empty where the file does not say which.
    """

    scores: Array
    answer: Array
    step: int = 0
    lowest: float = math.nan
    destroys: tuple[Program, ...] = ()
    per_instance: int = 1
    test: Array = field(default_factory=lambda: np.zeros(0, bool))

    @cached_property
    def utility(self) -> Array:
        """[K, M]: J of every pair, the mean over its evaluations; NaN where one of them failed."""
        return np.asarray(self.scores.mean(axis=2))

    @cached_property
    def whole(self) -> "Table":
        """Without failures, for what needs a complete table: programs that fail most are left out
        until none is left.
        """
        rows, columns = complete(np.isfinite(self.utility))
        if (len(rows), len(columns)) == self.utility.shape:
            return self
        place = {column: new for new, column in enumerate(columns)}
        return replace(
            self, scores=self.scores[np.ix_(rows, columns)],
            answer=np.array([place.get(int(self.answer[row]), -1) for row in rows], int),
            destroys=tuple(self.destroys[row] for row in rows) if self.destroys else (),
        )  # fmt: skip

    @cached_property
    def shares(self) -> Shares:
        """Of the table without failures."""
        return shares_of(self.whole.scores)

    @property
    def seen(self) -> int:
        """Evaluations that a round sees by default: those for training, or half of all."""
        if self.test.any():
            return int((~self.test).sum())
        return max(1, self.scores.shape[2] // 2)


def floored(utility: Array) -> Array:
    """J in which a failure counts as the lowest that did not fail: what it is worth as a truth.

    So a leader is worth its best valid response, and one without any is worth the lowest of all:
    finite, and no better than any other. NaN stays where all failed.
    """
    known = np.isfinite(utility)
    return np.where(known, utility, utility[known].min(initial=np.inf)) if known.any() else utility


def load_table(path: str | Path, step: int | None = None) -> Table:
    """A table's scores after a step, by default the last one.

    The file is a data set (see `dataset.py`). Or it is an .npz of before there were these, with
    `cost` [K, M, I, S, C], best costs after the steps `at` [C], NaN for what failed, `start` [I,
    S], the cost of the first solution, and `destroys` and `repairs`, of which the i-th repair is
    the answer to the i-th destroy; J is (start - cost) / start. Or it is one of payoff_shares.py,
    with `scores` [K, M, I, S] alone. The JSON of the same name beside it, if there is one, has the
    programs. Raises InputError for another file or step, where the programs that do not fail are
    fewer than three of a role, and for a JSON of other programs.
    """
    test = np.zeros(0, bool)
    destroys: tuple[Program, ...] = ()
    try:
        with np.load(io.BytesIO(Path(path).read_bytes())) as known:
            arrays = {name: known[name] for name in known.files}
        if "about" in arrays:
            data = data_of(arrays, path)
            scores, start = np.asarray(data.scores, np.float64), data.start
            steps, answer = data.at.tolist(), data.answer
            destroys = tuple(each.program for each in data.destroys)
            test = np.repeat(data.test, scores.shape[3])
        else:
            scores, start, steps = _older(arrays)
            # The i-th repair is the answer to the i-th destroy, where there are costs at all.
            own = np.arange(len(scores))
            answer = np.where((own < scores.shape[1]) & np.isfinite(start).all(), own, -1)
        if not all(isinstance(each, int) for each in steps) or not scores.size:
            raise ValueError("steps are whole numbers, and there are scores")
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile) as error:
        raise InputError(f"--table {path} is no payoff table ({error})") from None
    if step is not None and step not in steps:
        available = ", ".join(map(str, steps)) if any(steps) else "none"
        raise InputError(f"--table {path} has no costs after step {step}: it has {available}")
    if "about" not in arrays and "destroys" in arrays:
        destroys = _destroys(Path(path), arrays["destroys"].tolist())
    place = steps.index(step) if step is not None else len(steps) - 1
    table = Table(
        scores[..., place].reshape(*scores.shape[:2], -1), answer, int(steps[place]),
        _at_lowest(start[..., None] * (1 - scores), place), destroys, scores.shape[3], test,
    )  # fmt: skip
    if min(table.whole.utility.shape) < 3:
        raise InputError(
            f"--table {path}: too many pairs failed, fewer than three programs of a role are left"
        )
    return table


def _older(arrays: Mapping[str, Array]) -> tuple[Array, Array, list[int]]:
    """J [K, M, I, S, C], the first costs, NaN where there are none, and the steps of a file of
    before there were data sets. Raises ValueError for other shapes.
    """
    if "scores" in arrays:
        scores = np.asarray(arrays["scores"], np.float64)
        if scores.ndim != 4:
            raise ValueError(f"its scores have {scores.ndim} axes")
        return scores[..., None], np.full(scores.shape[2:], math.nan), [0]
    cost, start = (np.asarray(arrays[name], np.float64) for name in ("cost", "start"))
    steps = np.asarray(arrays.get("at", [0])).tolist()
    if not (
        cost.ndim == 5 and start.shape == cost.shape[2:4] and np.shape(steps) == cost.shape[4:]
    ):
        raise ValueError("cost is [K, M, I, S, C], start [I, S] and at [C]")
    begun = start[..., None]
    return (begun - cost) / begun, start, steps


def _at_lowest(cost: Array, place: int) -> float:
    """The share of rollouts that are at the lowest cost of their instance after a step."""
    least = np.nanmin(cost, axis=(0, 1, 3, 4), initial=np.inf)[:, None]
    there = cost[..., place] <= least * (1 + LOWEST)
    ended = np.isfinite(cost[..., place])
    return float(there[ended].mean()) if ended.any() else math.nan


def _destroys(path: Path, digests: Sequence[str]) -> tuple[Program, ...]:
    """The destroys of a table from the JSON beside it; none where there is no such file."""
    json_path = path.with_suffix(".json")
    if not json_path.exists():
        return ()
    try:
        pairs = [each["destroy"] for each in load_json(json_path)["pairs"]]
        known = [Program("destroy", each["source"], each["strategy"]) for each in pairs]
        by_digest = {program.digest: program for program in known}
        return tuple(by_digest[digest] for digest in digests)
    except (KeyError, TypeError, AttributeError):
        raise InputError(
            f"{json_path} does not have the programs of {path}: move it away"
        ) from None


def complete(fine: Array) -> tuple[list[int], list[int]]:
    """Rows and columns of a bool matrix without a False between them; the worst goes first."""
    rows, columns = list(range(fine.shape[0])), list(range(fine.shape[1]))
    while rows and columns:
        part = ~fine[np.ix_(rows, columns)]
        if not part.any():
            break
        by_row, by_column = part.mean(axis=1), part.mean(axis=0)
        if by_row.max() >= by_column.max():
            del rows[int(by_row.argmax())]
        else:
            del columns[int(by_column.argmax())]
    return rows, columns


def sub_tables(
    table: Table, count: int, leaders: int, followers: int, seed: int = 0, *,
    failing: float = 0.0, tie: float = 0.0,
) -> Worlds:  # fmt: skip
    """`count` worlds of so many of its programs, drawn anew for each, or of all that there are,
    those of the table without failures.

    J is in standard deviations of leaders, around the table's mean; with failures from 0, which is
    what a failure may be paid. failing, tie: see `failing_chances`. Raises InputError where leaders
    do not differ.
    """
    if not table.shares.leader:
        raise InputError("a table in which no difference between leaders was found has no unit")
    known = table.whole.utility
    whole = (known - known.mean()) / math.sqrt(table.shares.leader)
    rng = numpy_rng(seed, "laboratory", "programs")
    found = []
    for _ in range(count):
        rows, columns = (
            np.sort(rng.permutation(many)[:most])
            for many, most in zip(whole.shape, (leaders, followers), strict=True)
        )
        found.append(whole[np.ix_(rows, columns)])
    worlds = np.array(found)
    if failing:
        worlds = worlds + known.mean() / math.sqrt(table.shares.leader)
    chances = failing_chances(worlds, failing, tie, seed)
    return Worlds(worlds, table.shares.noise_in_leaders, chances)
