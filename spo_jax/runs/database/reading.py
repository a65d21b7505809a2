"""Reads a run's state, best pairs and final measurements from its tables."""

import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from spo_jax.envs.run.rollouts import Status
from spo_jax.program import Pair, Program, Role
from spo_jax.runs.budget import USED, Spent
from spo_jax.runs.database import tables
from spo_jax.runs.database.tables import program_id, read_program
from spo_jax.runs.records import PairRecord
from spo_jax.search.population import Population
from spo_jax.search.rounds import ASKED, RESPONSE, Best, Digests, Played, State
from spo_jax.search.sampling.start import START
from spo_jax.search.validation import Finals
from spo_jax.seeding import python_rng

PLAYED = (START, RESPONSE, ASKED, "cross-play")  # stages of evaluations
MEMORY = "memory/"  # how metrics of memory begin


def read_name(db: sqlite3.Connection, program: Program) -> str:
    """A program's name in the run, "" for one that is not in it."""
    return "".join(row.name for row in tables.PROGRAMS.select(db, "id = ?", program_id(program)))


def read_sources(db: sqlite3.Connection, before: int) -> list[tuple[Role, str]]:
    """The roles and sources of the programs of the rounds before one."""
    return db.execute("SELECT role, source FROM programs WHERE round < ?", (before,)).fetchall()


def read_metrics(db: sqlite3.Connection) -> list[Mapping[str, float]]:
    """[K] the metrics of each round; NaN for what is no number."""
    return [row.metrics for row in tables.ROUNDS.select(db)]


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
    for each in tables.TIMINGS.select(db):
        found.setdefault(each.stage, []).append(each.seconds)
    pairs = sum(row.pairs for row in tables.ROUNDS.select(db))
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
    for row in tables.ROUNDS.select(db, "round = ?", last_round(db)):
        return best_in(db, row)
    return None


def best_in(db: sqlite3.Connection, row: tables.RoundRow) -> Best | None:
    """The pair with the highest J when a round was over."""
    if row.best_utility is None or row.best_destroy is None or row.best_repair is None:
        return None
    pair = Pair(read_program(db, row.best_destroy), read_program(db, row.best_repair))
    return Best(pair, row.best_utility, row.best_round or 0)


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
    """`count` valid pairs of a run drawn whatever their J, or all there are; none of `but`."""
    out = {(each.pair.destroy.digest, each.pair.repair.digest) for each in but}
    rows = [row for row in _valid(db, best_from) if row[:2] not in out]
    drawn = python_rng(seed, "controls").sample(rows, min(count, len(rows)))
    return [_named(db, *row) for row in drawn]


def _valid(db: sqlite3.Connection, best_from: str) -> list[tuple[str, str, float, int]]:
    """Digests, J and round of the pairs that a run's best is chosen from, the highest J first."""
    kinds: tuple[str, ...] = (RESPONSE, START)
    if best_from != "responses":
        kinds += (ASKED, "cross-play")
    pairs = tables.PAIRS.of(PairRecord).select(db, "status = ?", Status.OK.label)
    rows = [(p.destroy, p.repair, p.utility, p.round) for p in pairs if p.kind in kinds]
    return sorted(rows, key=lambda row: (-row[2], row[3], row[:2]))


def _named(db: sqlite3.Connection, destroy: str, repair: str, utility: float, number: int) -> Best:
    pair = Pair(_by_digest(db, "destroy", destroy), _by_digest(db, "repair", repair))
    return Best(pair, utility, number)


def _by_digest(db: sqlite3.Connection, role: str, digest: str) -> Program:
    same = "role = ? AND digest = ?"
    return tables.PROGRAMS.select(db, same, role, digest, order="round, id LIMIT 1")[0].program


def read_finals(db: sqlite3.Connection) -> Finals:
    """What was measured at a run's end; where a pair failed there is None."""
    paid = read_costs(db, "validation")
    misfits = {(row.destroy, row.repair): row.reason for row in tables.MISFITS.select(db)}

    def measured(kind: str) -> Iterator[Best]:
        for best in tables.FINALISTS.select(db, "kind = ?", kind):
            pair = best.pair
            misfit = misfits.get((program_id(pair.destroy), program_id(pair.repair)), "")
            costs = paid.get((pair.destroy.digest, pair.repair.digest), ())
            yield replace(best, misfit=misfit, costs=costs if kind == "finalist" else ())

    return Finals(tuple(measured("finalist")), tuple(measured("control")))


def read_costs(db: sqlite3.Connection, kind: str) -> dict[Digests, tuple[float, ...]]:
    """What pairs paid in "training" or "validation"; empty for a run that did not keep it."""
    rows = tables.COSTS.select(db, "kind = ?", kind)
    return {(row.destroy, row.repair): row.costs for row in rows}


def read_paid(db: sqlite3.Connection, before: int) -> dict[int, list[Played]] | None:
    """The pairs with costs of each of the rounds before one; None where these were not kept."""
    if not tables.COSTS.exists(db):
        return None
    played = {each.digests: each for each in read_pairs(db)}
    found: dict[int, list[Played]] = {k: [] for k in range(1, before)}
    where = "kind = 'training' AND round < ?"
    for row in tables.COSTS.select(db, where, before, order="round, destroy, repair"):
        found[row.round].append(played[row.destroy, row.repair])
    return found


def last_round(db: sqlite3.Connection) -> int:
    """The last committed round, 0 without any."""
    return int(db.execute("SELECT COALESCE(MAX(round), 0) FROM rounds").fetchone()[0])


def read_population(db: sqlite3.Connection, number: int, role: Role) -> Population:
    """P^(k+1) of a round k."""
    return tuple(tables.MEMBERS.select(db, "round = ? AND role = ?", number, role))


def read_state(db: sqlite3.Connection) -> State:
    """What the next round starts from."""
    number = last_round(db)
    return State(
        round=number,
        destroys=read_population(db, number, "destroy"),
        repairs=read_population(db, number, "repair"),
        best=read_best(db),
        payoffs={each.digests: each for each in read_pairs(db) if not each.host_fault},
        individuals=tuple(tables.INDIVIDUALS.select(db)),
        note="".join(row.text for row in tables.NOTES.select(db, "round = ?", number)),
    )


def read_pairs(db: sqlite3.Connection) -> list[Played]:
    """Every pair, with its costs where they were kept."""
    paid = read_costs(db, "training")
    pairs = tables.PAIRS.select(db)
    return [replace(each, costs=paid.get(each.digests, ())) for each in pairs]
