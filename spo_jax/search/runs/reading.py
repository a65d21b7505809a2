"""Reads a run's state, best pairs and final measurements from its tables."""

import json
import math
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial

from spo_jax.envs.run.rollouts import Status
from spo_jax.program import Pair, Program
from spo_jax.search.population import Member, Population
from spo_jax.search.rounds import (
    CENSORED,
    Best,
    Digests,
    Individual,
    Played,
    Row,
    State,
    appended,
    stands,
)
from spo_jax.search.runs.budget import USED, Spent
from spo_jax.search.runs.gaps import Paid
from spo_jax.search.runs.tables import MISFITS, REMEASURED, program_id, remeasures, there
from spo_jax.search.start import START
from spo_jax.search.validation import Finals
from spo_jax.seeding import python_rng

PLAYED = (START, "response", "credit", "cross-play", "remeasure")  # stages of evaluations
MEMORY = "memory/"  # how metrics of memory begin


def read_program(db: sqlite3.Connection, identity: str) -> Program:
    """The program with this id."""
    role, source, strategy, parents, *rest = db.execute(
        "SELECT role, source, strategy, parents, form, condition, derivation FROM programs"
        " WHERE id = ?",
        (identity,),
    ).fetchone()
    return Program(role, source, strategy, tuple(json.loads(parents)), *rest)


def read_name(db: sqlite3.Connection, program: Program) -> str:
    """A program's name in the run, "" for one that is not in it."""
    row = db.execute("SELECT name FROM programs WHERE id = ?", (program_id(program),)).fetchone()
    return row[0] if row else ""


def read_metrics(db: sqlite3.Connection) -> list[dict[str, float]]:
    """[K] the metrics of each round; NaN for what is no number."""
    rows = db.execute("SELECT metrics FROM rounds ORDER BY round").fetchall()
    return [
        {n: math.nan if v is None else v for n, v in json.loads(text).items()} for (text,) in rows
    ]


def read_totals(db: sqlite3.Connection) -> dict[str, float]:
    """The sum of each metric over the rounds that have it."""
    totals: dict[str, float] = {}
    for metrics in read_metrics(db):
        for name, value in metrics.items():
            if not math.isnan(value):
                totals[name] = totals.get(name, 0.0) + value
    return totals


def read_spent(db: sqlite3.Connection) -> Spent:
    """What the finished rounds took, of the sessions that committed them."""
    found: dict[str, list[float]] = {}
    rows = db.execute("SELECT stage, seconds FROM timings ORDER BY round")
    for stage, seconds in rows:
        found.setdefault(stage, []).append(seconds)
    pairs = db.execute("SELECT COALESCE(SUM(pairs), 0) FROM rounds").fetchone()[0]
    playing = sum(sum(found.get(stage, ())) for stage in PLAYED)
    used = found.get(USED, [0.0])[-1]
    return Spent(tuple(found.get("all", ())), playing, pairs, used)


def read_peaks(db: sqlite3.Connection) -> dict[str, float]:
    """The highest value of each metric of memory over the rounds, GB by phase."""
    peaks: dict[str, float] = {}
    for metrics in read_metrics(db):
        for name, value in metrics.items():
            if name.startswith(MEMORY):
                phase = name.removeprefix(MEMORY)
                peaks[phase] = max(value, peaks.get(phase, value))
    return peaks


def read_best(db: sqlite3.Connection) -> Best | None:
    """The pair with the highest J so far."""
    row = db.execute(
        "SELECT best_utility, best_round, best_destroy, best_repair FROM rounds"
        " ORDER BY round DESC LIMIT 1"
    ).fetchone()
    if row is None or row[0] is None:
        return None
    utility, number, destroy, repair = row
    return Best(Pair(read_program(db, destroy), read_program(db, repair)), utility, number)


def candidates(db: sqlite3.Connection, count: int, best_from: str) -> list[Best]:
    """The `count` best pairs of a run by J, one per destroy; the run's best comes first.

    Of equals the earliest counts.
    """
    best = read_best(db)
    found = {} if best is None else {best.pair.destroy.digest: best}
    for destroy, repair, utility, number in _valid(db, best_from):
        if len(found) >= count:
            break
        if destroy not in found:
            found[destroy] = _named(db, destroy, repair, utility, number)
    return list(found.values())[:count]


def controls(
    db: sqlite3.Connection, count: int, best_from: str, seed: int, but: Sequence[Best]
) -> list[Best]:
    """`count` valid pairs of a run drawn whatever their J, or all there are; none of `but`.

    Those that races left out are among them, with their estimates.
    """
    out = {(each.pair.destroy.digest, each.pair.repair.digest) for each in but}
    rows = [row for row in _valid(db, best_from, estimates=True) if row[:2] not in out]
    drawn = python_rng(seed, "controls").sample(rows, min(count, len(rows)))
    return [_named(db, *row) for row in drawn]


def _valid(
    db: sqlite3.Connection, best_from: str, estimates: bool = False
) -> list[tuple[str, str, float, int]]:
    """Digests, J and round of the pairs that a run's best is chosen from, the highest J first.

    J is the mean over everything measured of a pair. estimates: also those of pairs that races left
    out.
    """
    kinds: tuple[str, ...] = ("response", START)
    if best_from != "responses":
        kinds += ("credit", "cross-play")
    rows = db.execute(
        "SELECT destroy, repair, utility, round, status FROM pairs WHERE status IN (?, ?)"
        f" AND kind IN ({','.join('?' * len(kinds))})",
        (Status.OK.label, CENSORED, *kinds),
    ).fetchall()
    again = read_again(db)
    valid = []
    for destroy, repair, utility, number, status in rows:
        first = Played(destroy, repair, "", status, utility)
        joined = first.joined(again.get((destroy, repair), ()))
        if math.isfinite(joined.utility) and (estimates or not joined.censored):
            valid.append((destroy, repair, joined.utility, number))
    return sorted(valid, key=lambda row: (-row[2], row[3], row[:2]))


def _named(db: sqlite3.Connection, destroy: str, repair: str, utility: float, number: int) -> Best:
    pair = Pair(_by_digest(db, "destroy", destroy), _by_digest(db, "repair", repair))
    return Best(pair, utility, number)


def _by_digest(db: sqlite3.Connection, role: str, digest: str) -> Program:
    identity = db.execute(
        "SELECT id FROM programs WHERE role = ? AND digest = ? ORDER BY round, id LIMIT 1",
        (role, digest),
    ).fetchone()[0]
    return read_program(db, identity)


def read_finals(db: sqlite3.Connection) -> Finals:
    """What was measured at a run's end; where a pair failed there is None."""
    rows = db.execute(
        "SELECT destroy, repair, utility, round, validation, fresh, kind FROM finalists"
        " ORDER BY rank"
    ).fetchall()
    found: dict[str, list[Best]] = {"finalist": [], "control": []}
    paid = read_costs(db, "validation")
    known = db.execute("SELECT * FROM misfits") if MISFITS in there(db) else ()
    misfits = {(destroy, repair): reason for _, destroy, repair, reason in known}
    for destroy, repair, *numbers, kind in rows:
        pair = Pair(read_program(db, destroy), read_program(db, repair))
        costs = paid.get((pair.destroy.digest, pair.repair.digest), ())
        each = replace(Best(pair, *numbers), misfit=misfits.get((destroy, repair), ""))
        found[kind].append(replace(each, costs=costs) if kind == "finalist" else each)
    return Finals(tuple(found["finalist"]), tuple(found["control"]))


def read_costs(db: sqlite3.Connection, kind: str) -> dict[Digests, tuple[float, ...]]:
    """What pairs paid in "training" or "validation"; empty for a run that did not keep it."""
    if "costs" not in there(db):
        return {}
    rows = db.execute("SELECT destroy, repair, costs FROM costs WHERE kind = ?", (kind,))
    return {(destroy, repair): tuple(json.loads(costs)) for destroy, repair, costs in rows}


def read_paid(db: sqlite3.Connection, before: int) -> list[Paid] | None:
    """What the pairs of the rounds before one cost, in their order; None where it was not kept."""
    if "costs" not in there(db):
        return None
    rows = db.execute(
        "SELECT costs.round, pairs.kind, destroy, repair, costs FROM costs"
        " JOIN pairs USING (destroy, repair)"
        " WHERE costs.kind = 'training' AND costs.round < ? ORDER BY 1, destroy, repair",
        (before,),
    ).fetchall()
    return [Paid(k, kind, (d, r), tuple(json.loads(costs))) for k, kind, d, r, costs in rows]


def last_round(db: sqlite3.Connection) -> int:
    """The last committed round, 0 without any."""
    return int(db.execute("SELECT COALESCE(MAX(round), 0) FROM rounds").fetchone()[0])


def read_state(db: sqlite3.Connection) -> State:
    """What the next round starts from."""
    number = last_round(db)
    note = db.execute("SELECT text FROM notes WHERE round = ?", (number,)).fetchone()
    return State(
        round=number,
        destroys=_population(db, number, "destroy"),
        repairs=_population(db, number, "repair"),
        best=read_best(db),
        payoffs={each.digests: each for each in _read_pairs(db) if stands(each)},
        individuals=_individuals(db),
        note=note[0] if note else "",
        again=read_again(db),
        responses=_responses(db, number) if remeasures(db) else {},
    )


def read_again(db: sqlite3.Connection) -> dict[Digests, tuple[Played, ...]]:
    """Further measurements by pair, the oldest first."""
    if REMEASURED not in there(db):
        return {}
    return appended({}, _read_pairs(db, REMEASURED, "round, destroy, repair"))


def _responses(db: sqlite3.Connection, number: int) -> dict[Row, tuple[Program, ...]]:
    """The repairs that were written for the destroys that survived round `number`."""
    found = {}
    rows = db.execute(
        "SELECT digest, born, row FROM members JOIN credits ON credits.round = born"
        " AND credits.role = 'destroy' AND credits.program = members.program"
        " JOIN programs ON id = members.program"
        " WHERE members.round = ? AND members.role = 'destroy' ORDER BY rank",
        (number,),
    ).fetchall()
    for digest, born, row in rows:
        repairs = db.execute(
            "SELECT program FROM credits WHERE round = ? AND role = 'repair' AND row = ?"
            " ORDER BY slot",
            (born, row),
        ).fetchall()
        found[digest, born] = tuple(read_program(db, identity) for (identity,) in repairs)
    return found


def _read_pairs(
    db: sqlite3.Connection, table: str = "pairs", order: str = "destroy, repair"
) -> list[Played]:
    rows = db.execute(
        "SELECT destroy, repair, kind, status, utility, reason, role, scores"
        f" FROM {table} ORDER BY {order}"
    )
    found = []
    paid = read_costs(db, "training") if table == "pairs" else {}
    for destroy, repair, kind, status, value, reason, role, scores in rows:
        value, each = math.nan if value is None else value, tuple(json.loads(scores))
        costs = paid.get((destroy, repair), ())
        found.append(Played(destroy, repair, kind, status, value, reason, role, each, costs))
    return found


def _individuals(db: sqlite3.Connection) -> tuple[Individual, ...]:
    program = cache(partial(read_program, db))
    rows = db.execute(
        "SELECT destroy, repair, utility, round, operator, place, scores FROM individuals"
        " ORDER BY round, number"
    ).fetchall()
    return tuple(
        Individual(*(Pair(program(destroy), program(repair)), *known, tuple(json.loads(scores))))
        for destroy, repair, *known, scores in rows
    )


def _population(db: sqlite3.Connection, number: int, role: str) -> Population:
    rows = db.execute(
        "SELECT program, score, born FROM members WHERE round = ? AND role = ? ORDER BY rank",
        (number, role),
    ).fetchall()
    return tuple(Member(read_program(db, identity), *known) for identity, *known in rows)
