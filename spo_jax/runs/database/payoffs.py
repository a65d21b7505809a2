"""Rebuilds the payoff that a round's credit scheme was given, and what it paid, from the tables."""

import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spo_jax.config import Settings
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program
from spo_jax.runs.database import tables
from spo_jax.runs.database.reading import read_population
from spo_jax.runs.manifest import shape_of
from spo_jax.search.credit import Payoff
from spo_jax.search.payoffs import PlayedPairs, payoff_of, with_asked
from spo_jax.search.rounds import ASKED, RESPONSE, CrossPlay, Digests, Played, RoundScores
from spo_jax.search.sampling.start import START, StartPair, opened


@dataclass(frozen=True)
class _Dated(Played):
    """A pair with the round of its verdict."""

    round: int = 0


@dataclass(frozen=True)
class _Placed:
    """A program in the payoff of a round, as `tables.CreditRow`."""

    role: str
    row: int
    program: Program


def read_payoff(
    db: sqlite3.Connection, k: int, config: Settings, manifest: Mapping[str, Any]
) -> Payoff:
    """The payoff of round k, as its credit scheme saw it.

    The code that the round itself ran derives it again, from what the round knew then. Raises
    InputError for a run of a version that did not keep all of that.
    """
    _require_kept(db, config)
    shape = shape_of(manifest, config)
    table = PlayedPairs(shape, _known(db, k, START, RESPONSE))
    destroys, responses = _rows(db, k)
    start = _start(manifest.get("start_pairs") or (), destroys, responses, table) if k == 1 else ()
    begun = opened(list(start), k, table)
    payoff = payoff_of(
        destroys,
        responses,
        table,
        config.search.repairs_per_destroy,
        (*read_population(db, k - 1, "destroy"), *begun.leaders),
        (*read_population(db, k - 1, "repair"), *begun.followers),
        [row.program for row in tables.CLASSICAL.select(db, "round = ?", k)],
    )
    asked = [(row.destroy, row.repair) for row in tables.ASKED_PAIRS.select(db, "round = ?", k)]
    return with_asked(payoff, asked, PlayedPairs(shape, _known(db, k, START, RESPONSE, ASKED)))


def read_reasons(db: sqlite3.Connection, k: int, payoff: Payoff) -> np.ndarray:
    """[D, R] texts: why pairs of the payoff of round k have no utility, "" for the others."""
    failed = tables.FAILURES.select(db, "round = ? AND subject = 'pair'", k)
    why = {(each.destroy, each.repair): f"{each.status}: {each.reason}" for each in failed}
    for pair, played in _known(db, k, START, RESPONSE).items():
        if played.status != Status.OK.label:  # perhaps since an earlier round
            why[pair] = f"{played.status}: {played.reason}"
    found = np.full(payoff.utility.shape, "", dtype=object)
    for i, (destroy, row) in enumerate(zip(payoff.destroys, payoff.repairs, strict=True)):
        for j, repair in enumerate(row):
            if repair is not None and math.isnan(payoff.utility[i, j]):
                found[i, j] = why.get((destroy.digest, repair.digest), "")
    return found


def scores_of(
    rows: Sequence[tables.CreditRow], names: Mapping[str, str], slots: int
) -> RoundScores:
    """What the programs of a round earned, by their names. slots: R, unless a row has more."""
    leaders = [row for row in rows if row.role == "destroy"]
    followers = [row for row in rows if row.role == "repair"]
    shape = (len(leaders), max(slots, *(row.slot + 1 for row in followers), 0))
    repairs = np.full(shape, "", dtype=object)
    values = np.full((3, *shape), np.nan)
    for row in followers:
        repairs[row.row, row.slot] = names[row.program]
        values[:, row.row, row.slot] = row.utility, row.credit, row.selection
    destroys = np.array([names[row.program] for row in leaders], dtype=object)
    own = np.array([(row.credit, row.selection) for row in leaders]).reshape(-1, 2)
    return RoundScores(destroys, repairs, values[0], own[:, 0], values[1], own[:, 1], values[2])


def crossed_of(rows: Sequence[tables.CrossPlayRow], names: Mapping[str, str]) -> CrossPlay:
    """A round's cross-play, by the names of its programs."""
    destroys = {row.row: names[row.destroy] for row in rows}
    repairs = {row.slot: names[row.repair] for row in rows}
    scores = {row.slot: row.score for row in rows}
    values = np.array([row.utility for row in rows]).reshape(len(destroys), len(repairs))
    found = [np.array(list(each.values()), dtype=object) for each in (destroys, repairs)]
    return CrossPlay(found[0], found[1], values, np.array(list(scores.values())))


def _require_kept(db: sqlite3.Connection, config: Settings) -> None:
    """Raises InputError for a run whose schemes saw what nobody kept: classical destroys, or J of
    pairs that they asked for. A scheme that asks does so in every round.
    """
    if tables.ASKED_PAIRS.exists(db):
        return
    lacks = "the problem's classical destroys" if config.search.panel_classical else ""
    if db.execute("SELECT 1 FROM pairs WHERE kind = ?", (ASKED,)).fetchone():
        lacks = "which pairs its credit scheme asked for"
    if lacks:
        raise InputError(
            f"this run is of an earlier version, which did not keep {lacks}: its payoffs as the "
            "scheme saw them are not known; `credits` has the utilities"
        )


def _known(db: sqlite3.Connection, k: int, *kinds: str) -> dict[Digests, Played]:
    """What round k knew once it had evaluated its own pairs of some kinds.

    A fault of the host is no verdict. A pair with one has that of a later round by now, which round
    k did not know.
    """
    rows = tables.PAIRS.of(_Dated).select(db, "round <= ?", k)
    return {p.digests: p for p in rows if (p.kind in kinds if p.round == k else not p.host_fault)}


def _rows(
    db: sqlite3.Connection, k: int
) -> tuple[tuple[Program, ...], tuple[tuple[Program, ...], ...]]:
    """The destroys of round k, and the repairs that were written for each."""
    rows = tables.CREDITS.of(_Placed).select(db, "round = ?", k)
    destroys = [each.program for each in rows if each.role == "destroy"]
    responses: list[list[Program]] = [[] for _ in destroys]
    for each in rows:
        if each.role == "repair":
            responses[each.row].append(each.program)
    return tuple(destroys), tuple(map(tuple, responses))


def _start(
    record: Sequence[Mapping[str, str]],
    destroys: Sequence[Program],
    responses: Sequence[Sequence[Program]],
    table: PlayedPairs,
) -> Iterator[StartPair]:
    """The valid start pairs in their order, which is that of a row too. record: the manifest's."""
    rows = zip(destroys, responses, strict=True)
    left = {d.digest: (d, iter(row)) for d, row in rows if d.form == START}
    for each in record:
        if not math.isnan(table.utility_of((each["destroy"], each["repair"]))):
            destroy, repairs = left[each["destroy"]]
            yield StartPair(each["from"], Pair(destroy, next(repairs)))
