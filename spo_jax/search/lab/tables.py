"""Payoff tables of real programs: complete cross-play, as experiments/payoff_table.py makes it."""

import io
import math
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from spo_jax.envs.textfiles import load_json
from spo_jax.errors import InputError
from spo_jax.program import Program
from spo_jax.search.lab.shares import Shares, shares_of
from spo_jax.search.lab.worlds import Worlds
from spo_jax.seeding import numpy_rng

Array = np.ndarray
LOWEST = 1e-6  # a cost so near the lowest, relative to it, counts as the lowest


@dataclass(frozen=True, eq=False)
class Table:
    """Scores of every destroy with every repair, all finite.

    scores: [K, M, E] float64, J of an evaluation, which is one instance with one seed, the same for
    all pairs. answer: [K] int, the repair that was written for each destroy, -1 where there is
    none. step: after which the cost was taken, 0 where the file does not say. lowest: the share of
    rollouts at the lowest cost of their instance; NaN where the file has no costs. destroys: K
    programs; empty where they are not beside the file.
    """

    scores: Array
    answer: Array
    step: int = 0
    lowest: float = math.nan
    destroys: tuple[Program, ...] = ()

    @cached_property
    def utility(self) -> Array:
        """[K, M]: J of every pair, the mean over its evaluations."""
        return np.asarray(self.scores.mean(axis=2))

    @cached_property
    def shares(self) -> Shares:
        return shares_of(self.scores)


def load_table(path: str | Path, step: int | None = None) -> Table:
    """A table's scores after a step, by default the last one.

    The file is an .npz with `cost` [K, M, I, S, C], best costs after the steps `at` [C], NaN for
    what failed, `start` [I, S], the cost of the first solution, and `destroys` and `repairs`, of
    which the i-th repair is the answer to the i-th destroy; J is (start - cost) / start. Or it is
    one of payoff_shares.py, with `scores` [K, M, I, S] alone. The JSON of the same name beside it,
    if there is one, has the programs. Programs that fail most are left out until no failure is
    left. Raises InputError for another file or step, where fewer than three programs of a role are
    left, and for a JSON of other programs.
    """
    try:
        with np.load(io.BytesIO(Path(path).read_bytes())) as known:
            arrays = {name: known[name] for name in known.files}
        own = [arrays["scores"]] if "scores" in arrays else [arrays["cost"], arrays["start"]]
        held = [np.asarray(each, np.float64) for each in own]
        steps = np.asarray(arrays.get("at", [0])).tolist()
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"--table {path} is no payoff table ({error})") from None
    if step is not None and step not in steps:
        told = ", ".join(map(str, steps)) if "at" in arrays else "none"
        raise InputError(f"--table {path} has no costs after step {step}: it has {told}")
    place = steps.index(step) if step is not None else len(steps) - 1
    lowest = math.nan
    if len(held) == 1:
        scores = held[0]
    else:
        cost, start = held[0][..., place], held[1]
        scores = (start - cost) / start
        least = np.nanmin(held[0], axis=(0, 1, 3, 4))[:, None]
        ended = np.isfinite(cost)
        lowest = float((cost <= least * (1 + LOWEST))[ended].mean()) if ended.any() else math.nan
    if scores.ndim != 4:
        raise InputError(f"--table {path} is no payoff table (its scores have {scores.ndim} axes)")
    rows, columns = complete(np.asarray(np.isfinite(scores).all(axis=(2, 3))))
    if min(len(rows), len(columns)) < 3:
        raise InputError(
            f"--table {path}: too many pairs failed, fewer than three programs of a role are left"
        )
    paired = "cost" in arrays
    answer = [columns.index(i) if paired and i in columns else -1 for i in rows]
    whole = scores[np.ix_(rows, columns)].reshape(len(rows), len(columns), -1)
    programs = _destroys(Path(path), arrays["destroys"].tolist()) if "destroys" in arrays else ()
    destroys = tuple(programs[row] for row in rows) if programs else ()
    return Table(whole, np.array(answer), int(steps[place]), lowest, destroys)


def _destroys(path: Path, digests: Sequence[str]) -> tuple[Program, ...]:
    """The destroys of a table from the JSON beside it; none where there is no such file."""
    beside = path.with_suffix(".json")
    if not beside.exists():
        return ()
    try:
        told = [each["destroy"] for each in load_json(beside)["pairs"]]
        known = [Program("destroy", each["source"], each["strategy"]) for each in told]
        by_digest = {program.digest: program for program in known}
        return tuple(by_digest[digest] for digest in digests)
    except (KeyError, TypeError, AttributeError):
        raise InputError(f"{beside} does not have the programs of {path}: move it away") from None


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


def sub_tables(table: Table, count: int, leaders: int, followers: int, seed: int = 0) -> Worlds:
    """`count` worlds of so many of its programs, drawn anew for each, or of all that there are.

    J is in standard deviations of leaders, around the table's mean. Raises InputError where leaders
    do not differ.
    """
    if not table.shares.leader:
        raise InputError("a table in which no difference between leaders was found has no unit")
    whole = (table.utility - table.utility.mean()) / math.sqrt(table.shares.leader)
    rng = numpy_rng(seed, "laboratory", "programs")
    found = []
    for _ in range(count):
        rows, columns = (
            np.sort(rng.permutation(many)[:most])
            for many, most in zip(whole.shape, (leaders, followers), strict=True)
        )
        found.append(whole[np.ix_(rows, columns)])
    return Worlds(np.array(found), table.shares.noise_in_leaders)
