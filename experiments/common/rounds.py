"""What single rounds of a run found: typical pairs, and the best programs."""

from dataclasses import dataclass

import numpy as np

from spo_jax.envs.metrics import leader_credit
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program, Role
from spo_jax.search.runs.records import PairRecord
from spo_jax.search.runs.run import Run


@dataclass(frozen=True)
class Found:
    """A program that a round wrote, and what it earned there."""

    program: Program
    credit: float


def typical_pairs(run: Run) -> list[Pair | None]:
    """[K] the pair with the median J of those that each round found; the lower of two medians.

    None for a round that found no pair. Of equals it is the one first in the order of digests.
    """
    found: list[Pair | None] = []
    for number in range(1, run.rounds + 1):
        pairs = _valid(run, number)
        middle = pairs[(len(pairs) - 1) // 2] if pairs else None
        found.append(None if middle is None else run.pair(middle.destroy, middle.repair))
    return found


def best_programs(run: Run, number: int, role: Role, count: int) -> list[Found]:
    """The `count` programs of a round that earned most there, of those that it wrote.

    A destroy earns the mean of its two best pairs (eq:leader-credit), a repair its own pair's J
    (eq:follower-credit). Raises InputError for a round that is not there or found fewer.
    """
    if not 1 <= number <= run.rounds:
        raise InputError(f"{run.path} has rounds 1 to {run.rounds}, and no round {number}")
    own = {each.digest for each in run.programs if each.round == number and each.role == role}
    values: dict[str, list[float]] = {}
    for pair in _valid(run, number):
        name = pair.destroy if role == "destroy" else pair.repair
        if run[name].digest in own:
            values.setdefault(name, []).append(pair.utility)
    earned = {
        name: float(leader_credit(np.array([each]))[0]) if role == "destroy" else max(each)
        for name, each in values.items()
    }
    ranked = sorted(earned, key=lambda name: (-earned[name], run[name].digest))[:count]
    if len(ranked) < count:
        raise InputError(
            f"round {number} of {run.path} has {len(ranked)} valid {role} programs, not {count}"
        )
    return [Found(run[name].program, earned[name]) for name in ranked]


def _valid(run: Run, number: int) -> list[PairRecord]:
    """The pairs that a round found, by J and then by their digests."""
    rows = (p for p in run.pairs if p.round == number and p.kind == "response")
    valid = (p for p in rows if p.status == "ok")
    return sorted(valid, key=lambda p: (p.utility, run[p.destroy].digest, run[p.repair].digest))
