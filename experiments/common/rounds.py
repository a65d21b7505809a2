"""What single rounds of a run found, read from its folder: typical pairs, and the best programs."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spo_jax.envs.metrics import leader_credit
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program, Role
from spo_jax.search.runs.store import DATABASE, load_run
from spo_jax.search.runs.tables import connect


@dataclass(frozen=True)
class Found:
    """A program that a round wrote, and what it earned there."""

    program: Program
    credit: float


def typical_pairs(path: str | Path) -> list[Pair | None]:
    """[K] the pair with the median J of those that each round found; the lower of two medians.

    None for a round that found no pair. Of equals it is the one first in the order of digests.
    """
    rounds = load_run(path).rounds
    with closing(connect(Path(path) / DATABASE)) as db:
        found: list[Pair | None] = []
        for number in range(1, rounds + 1):
            rows = _valid(db, number)
            found.append(_pair(db, *rows[(len(rows) - 1) // 2][:2]) if rows else None)
    return found


def best_programs(path: str | Path, number: int, role: Role, count: int) -> list[Found]:
    """The `count` programs of a round that earned most there, of those that it wrote.

    A destroy earns the mean of its two best pairs (eq:leader-credit), a repair its own pair's J
    (eq:follower-credit). Raises InputError for a round that is not there or found fewer.
    """
    rounds = load_run(path).rounds
    if not 1 <= number <= rounds:
        raise InputError(f"{path} has rounds 1 to {rounds}, and no round {number}")
    with closing(connect(Path(path) / DATABASE)) as db:
        written = "SELECT DISTINCT digest FROM programs WHERE round = ? AND role = ?"
        own = {digest for (digest,) in db.execute(written, (number, role))}
        values: dict[str, list[float]] = {}
        for destroy, repair, value in _valid(db, number):
            digest = destroy if role == "destroy" else repair
            if digest in own:
                values.setdefault(digest, []).append(value)
        earned = {digest: _earned(role, each) for digest, each in values.items()}
        ranked = sorted(earned, key=lambda digest: (-earned[digest], digest))[:count]
        if len(ranked) < count:
            raise InputError(
                f"round {number} of {path} has {len(ranked)} valid {role} programs, not {count}"
            )
        return [Found(_program(db, role, digest), earned[digest]) for digest in ranked]


def _earned(role: Role, values: Sequence[float]) -> float:
    return float(leader_credit(np.array([values]))[0]) if role == "destroy" else max(values)


def _valid(db: Any, number: int) -> list[tuple[str, str, float]]:
    """(destroy, repair, J) of the pairs that a round found, by J and then by their digests."""
    return db.execute(
        "SELECT destroy, repair, utility FROM pairs WHERE round = ? AND kind = 'response'"
        " AND status = 'ok' ORDER BY utility, destroy, repair",
        (number,),
    ).fetchall()


def _pair(db: Any, destroy: str, repair: str) -> Pair:
    return Pair(_program(db, "destroy", destroy), _program(db, "repair", repair))


def _program(db: Any, role: Role, digest: str) -> Program:
    source, strategy = db.execute(
        "SELECT source, strategy FROM programs WHERE role = ? AND digest = ? ORDER BY round, id"
        " LIMIT 1",
        (role, digest),
    ).fetchone()
    return Program.from_source(role, source, strategy)
