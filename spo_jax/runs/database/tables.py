"""The tables of a run, and how rounds become rows. `spo_jax.runs.database.reading` reads them.

Each table is declared once, from the dataclass of its rows: that of the search or of `load_run`
where there is one.
"""

import os
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from spo_jax.config import FIELDS, Settings
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.program import Program, Role
from spo_jax.runs.database.table import Stored, Table, as_bytes, stored
from spo_jax.runs.records import (
    CountsRecord,
    FailureRecord,
    MendRecord,
    PromptRecord,
    SampleRecord,
    Timing,
)
from spo_jax.search.population import Member
from spo_jax.search.rounds import Answers, Best, CrossPlay, Individual, Played, Round, RoundScores
from spo_jax.search.validation import Finals
from spo_jax.seeding import derive

SCHEMA_VERSION = 5
FINAL_STAGES = ("validation", "fresh")  # what `timings` has besides the stages of rounds
Advantages = Mapping[Role, Sequence[np.ndarray]]  # of each group, [B] float64


# --- rows that only the database has --------------------------------------------------------------


@dataclass(frozen=True)
class ProgramRow:
    """A program. id: a hash of all of it, so that a row is one Program object exactly; other
    columns that name a program hold it. digest: of its normalised source, by which payoffs know it:
    destroy and repair of pairs and costs are digests.
    """

    id: str
    round: int
    digest: str
    program: Program
    name: str


@dataclass(frozen=True)
class RoundRow(CountsRecord):
    """A round. best_*: the best pair so far, as `Best`; None without one."""

    best_utility: float | None
    best_round: int | None
    best_destroy: str | None
    best_repair: str | None
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class CreditRow:
    """A program in the payoff of a round, as `RoundScores`. row: of its destroy. slot: of a repair
    in that; 0 for the destroy itself.
    """

    round: int
    role: Role
    row: int
    slot: int
    program: str
    utility: float
    credit: float
    selection: float


@dataclass(frozen=True)
class CrossPlayRow:
    """A leader of the panel (row) with a candidate (slot), as `CrossPlay`."""

    round: int
    row: int
    slot: int
    destroy: str
    repair: str
    utility: float
    score: float


@dataclass(frozen=True)
class ClassicalRow:
    """A classical destroy that the credit scheme was shown, as `Round.classical`."""

    round: int
    number: int
    program: Program


@dataclass(frozen=True)
class AskedRow:
    """A pair that the credit scheme asked for, as `Round.asked`; J is that of `pairs`."""

    round: int
    number: int
    destroy: str
    repair: str


@dataclass(frozen=True)
class CostRow:
    """What a pair paid, as `Played.costs`. kind: "training" or "validation"."""

    round: int
    kind: str
    destroy: str
    repair: str
    costs: tuple[float, ...]


@dataclass(frozen=True)
class MisfitRow:
    """Where and how a pair failed on a size that it was not trained on, as `Best.misfit`."""

    round: int
    destroy: str
    repair: str
    reason: str


@dataclass(frozen=True)
class NoteRow:
    """The `note` of a round."""

    round: int
    text: str


@dataclass(frozen=True)
class Setting:
    """A setting that the results depend on."""

    name: str
    value: Any


@dataclass(frozen=True)
class Digest:
    """What `digests` says of all rows of a round; of round 0, of the settings."""

    round: int
    digest: str


class PromptTable(Table[PromptRecord]):
    """Prompts, their texts compressed. Those of a round and role differ by their programs alone, so
    with the first of them as dictionary the others take a tenth of it.
    """

    def packed(self, rows: list[list[Any]]) -> list[list[Any]]:
        first: dict[Any, bytes] = {}
        found = []
        for *others, text in rows:
            group, plain = tuple(others[:2]), as_bytes(text)
            press = zlib.compressobj(zdict=first.get(group, b" "))
            found.append([*others, press.compress(plain) + press.flush()])
            first.setdefault(group, plain or b" ")
        return found

    def unpacked(self, rows: list[Any]) -> Iterator[Any]:
        first: dict[Any, bytes] = {}
        for *others, data in rows:
            group = tuple(others[:2])
            press = zlib.decompressobj(zdict=first.get(group, b" "))
            plain = b""
            with suppress(zlib.error):
                plain = press.decompress(data)
            if not press.eof:
                raise ValueError("it is no compressed text, or not all of one")
            first.setdefault(group, plain or b" ")
            yield [*others, plain.decode()]


# --- the tables -----------------------------------------------------------------------------------


_PARTS = {name: stored(hint).write for name, hint in get_type_hints(Program).items()}


def program_id(program: Program) -> str:
    """A hash of everything in a program, as it is stored."""
    parts = (write(getattr(program, name)) for name, write in _PARTS.items())
    return f"{derive('program', *parts):016x}"


def read_program(db: sqlite3.Connection, identity: str) -> Program:
    """The program with this id."""
    for row in PROGRAMS.select(db, "id = ?", identity):
        return row.program
    raise sqlite3.DataError(f"the table programs lacks a program ({identity:.20})")


_BY_ID: dict[type, Stored] = {Program: Stored("TEXT", program_id, read_program, refers=True)}

PROGRAMS = Table(
    "programs", ProgramRow, "id",
    "id round role digest condition form parents strategy source derivation name",
    rowid=True, index="digest",
)  # fmt: skip
PAIRS = Table(
    "pairs", Played, "destroy repair",
    "destroy repair round kind status utility reason role scores",
    types={"round": int}, called={"failed": "role"},
)  # fmt: skip
ROUNDS = Table("rounds", RoundRow, "round", rowid=True)
MEMBERS = Table(
    "members", Member, "round role rank", "round role rank program score born",
    types={"round": int, "role": str, "rank": int}, called={"round": "born", "name": "program"},
    refers=_BY_ID, finite="score",
)  # fmt: skip
CREDITS = Table("credits", CreditRow, "round role row slot", refers=_BY_ID)
CROSS_PLAY = Table("cross_play", CrossPlayRow, "round row slot")
PROMPTS = PromptTable(
    "prompts", PromptRecord, "round role number", types={"text": bytes}, rowid=True
)
SAMPLES = Table("samples", SampleRecord, "round role prompt place", called={"program": "digest"})
MENDS = Table(
    "mends", MendRecord, "round role prompt place number", called={"program": "digest"}, later=True
)
FAILURES = Table(
    "failures", FailureRecord, "round number",
    "round number subject status reason destroy repair text", types={"number": int},
)  # fmt: skip
FINALISTS = Table(
    "finalists", Best, "rank", "rank round utility destroy repair validation fresh kind",
    types={"rank": int, "kind": str}, refers=_BY_ID, finite="utility", rowid=True,
)  # fmt: skip
INDIVIDUALS = Table(
    "individuals", Individual, "round number",
    "round number destroy repair utility operator place scores",
    types={"number": int}, refers=_BY_ID, finite="utility",
)  # fmt: skip
COSTS = Table("costs", CostRow, "kind destroy repair", later=True)
MISFITS = Table("misfits", MisfitRow, "destroy repair", later=True)
CLASSICAL = Table("classical", ClassicalRow, "round number", refers=_BY_ID, later=True)
ASKED_PAIRS = Table("asked", AskedRow, "round number", later=True)
NOTES = Table("notes", NoteRow, "round", rowid=True)
CONFIG = Table("config", Setting, "name")
TIMINGS = Table("timings", Timing, "round stage", finite="seconds")
DIGESTS = Table("digests", Digest, "round", rowid=True, later=True)

# Equal runs have equal TABLES, and their own timings. Digests follow from the rest.
TABLES: tuple[Table[Any], ...] = (
    PROGRAMS, PAIRS, ROUNDS, MEMBERS, CREDITS, CROSS_PLAY, PROMPTS, SAMPLES, MENDS, FAILURES,
    FINALISTS, INDIVIDUALS, COSTS, MISFITS, CLASSICAL, ASKED_PAIRS, NOTES, CONFIG,
)  # fmt: skip
SCHEMA = "\n".join(table.ddl for table in (*TABLES, TIMINGS, DIGESTS))


def connect(path: Path, create: bool = False) -> sqlite3.Connection:
    """A connection in autocommit mode: the caller begins transactions. `create` makes the tables.

    The rollback journal with full synchronisation: what is committed survives a power cut, and a
    killed writer's journal is rolled back by the next reader, who needs to write for that.
    Raises InputError for a database of another format.
    """
    mode = "rwc" if create else "rw" if os.access(path, os.W_OK) else "ro&immutable=1"
    uri = f"{path.resolve().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA synchronous = FULL")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if create:
            connection.executescript(
                f"BEGIN; {SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
            )
        elif version != SCHEMA_VERSION:
            raise InputError(
                f"{path} has format {version}, and this spo-jax reads {SCHEMA_VERSION}: it is of "
                "another version, or no run database"
            )
    except BaseException:
        connection.close()
        raise
    return connection


# --- writing: the caller opens and commits the transaction ----------------------------------------
# What returns a set returns the rounds that it changed, for their digests.


def write_config(db: sqlite3.Connection, config: Settings) -> set[int]:
    """Keep the settings that make a run what it is: all but the volatile ones."""
    kept = (Setting(n, v) for n, v in config.flat().items() if not FIELDS[n].volatile)
    CONFIG.insert(db, kept)
    return {0}


def write_round(
    db: sqlite3.Connection,
    done: Round,
    advantages: Advantages | None = None,
    seconds: Mapping[str, float] | None = None,
) -> set[int]:
    """Insert everything that a round adds.

    advantages: what the update computed of each group. seconds: wall-clock by stage.
    """
    k = done.number
    PROGRAMS.insert(db, _new_programs(db, done))
    # A pair that failed by a fault of the host is evaluated again, and its verdict replaced.
    changed = {k, *(each.round for each in done.individuals)}
    changed |= PAIRS.insert(db, done.pairs, round=k, replace=True)
    paid = [played for played in done.pairs if played.costs]
    changed |= COSTS.insert(db, paid, round=k, kind="training", replace=True)
    for role, population in (("destroy", done.destroys), ("repair", done.repairs)):
        MEMBERS.insert(db, population, round=k, role=role)
    if done.scored is not None:
        CREDITS.insert(db, _credits(done.scored, k))
    if done.crossed is not None:
        CROSS_PLAY.insert(db, _crossed(done.crossed, k))
    CLASSICAL.insert(db, (ClassicalRow(k, n, each) for n, each in enumerate(done.classical)))
    asked = ((each.destroy.digest, each.repair.digest) for each in done.asked)
    ASKED_PAIRS.insert(db, (AskedRow(k, n, *pair) for n, pair in enumerate(asked)))
    _write_answers(db, done, advantages or {})
    FAILURES.insert(db, done.failures, round=k)
    INDIVIDUALS.insert(db, done.individuals)
    NOTES.insert(db, [NoteRow(k, done.note)] if done.note else [])
    best = done.best
    ROUNDS.insert(
        db,
        [done.counts],
        round=k,
        best_utility=None if best is None else best.utility,
        best_round=None if best is None else best.round,
        best_destroy=None if best is None else program_id(best.pair.destroy),
        best_repair=None if best is None else program_id(best.pair.repair),
        metrics=done.metrics,
    )
    write_seconds(db, k, seconds or {})
    return changed


def write_finals(db: sqlite3.Connection, finals: Finals, number: int) -> set[int]:
    """Insert what was measured at a run's end. number: its last round."""
    everyone = (*finals.finalists, *finals.controls)
    for rank, each in enumerate(everyone):
        kind = "finalist" if rank < len(finals.finalists) else "control"
        FINALISTS.insert(db, [each], rank=rank, kind=kind)
    paid = [
        CostRow(number, "validation", f.pair.destroy.digest, f.pair.repair.digest, f.costs)
        for f in finals.finalists
        if f.costs
    ]
    COSTS.insert(db, paid, replace=True)
    ids = [(program_id(f.pair.destroy), program_id(f.pair.repair)) for f in everyone]
    misfits = {pair: f.misfit for pair, f in zip(ids, everyone, strict=True) if f.misfit}
    MISFITS.insert(db, (MisfitRow(number, *pair, why) for pair, why in misfits.items()))
    return {number, *(each.round for each in everyone)}


def write_seconds(db: sqlite3.Connection, number: int, seconds: Mapping[str, float]) -> None:
    """Insert the wall-clock seconds of some stages of a round."""
    timings = (Timing(number, stage, float(value)) for stage, value in seconds.items())
    TIMINGS.insert(db, timings, replace=True)


def forget_after(db: sqlite3.Connection, number: int) -> set[int]:
    """Delete what came after a round, and what was measured when the rounds were over."""
    changed: set[int] = set()
    after = f"round > {number:d}"
    gone = [(table, after) for table in (*TABLES, TIMINGS) if table is not CONFIG]
    gone += [(FINALISTS, "1"), (COSTS, "kind = 'validation'"), (MISFITS, "1")]
    gone += [(TIMINGS, f"stage IN {FINAL_STAGES}")]
    for table, where in gone:
        if table.exists(db):
            rounds = db.execute(f"SELECT DISTINCT round FROM {table.name} WHERE {where}")
            changed |= {k for (k,) in rounds}
            db.execute(f"DELETE FROM {table.name} WHERE {where}")
    return changed


def _new_programs(db: sqlite3.Connection, done: Round) -> Iterator[ProgramRow]:
    """Those that no earlier round wrote, each with its name: D3.07, R3.112."""
    best = () if done.best is None else (done.best.pair.destroy, done.best.pair.repair)
    known = {key for (key,) in db.execute("SELECT id FROM programs")}
    count: Counter[str] = Counter()
    for p in (*done.programs, *best):
        key = program_id(p)
        if key not in known:
            known.add(key)
            count[p.role] += 1
            name = f"{p.role[0].upper()}{done.number}.{count[p.role]:02}"
            yield ProgramRow(key, done.number, p.digest, p, name)


def _credits(scored: RoundScores, k: int) -> Iterator[CreditRow]:
    for i, destroy in enumerate(scored.destroys):
        own = (scored.leader[i], scored.leader_selection[i])
        yield CreditRow(k, "destroy", i, 0, program_id(destroy), np.nan, *own)
    for i, j in np.argwhere(scored.repairs).tolist():
        values = (scored.utility, scored.follower, scored.follower_selection)
        name = program_id(scored.repairs[i, j])
        yield CreditRow(k, "repair", i, j, name, *(each[i, j] for each in values))


def _crossed(crossed: CrossPlay, k: int) -> Iterator[CrossPlayRow]:
    repairs = list(map(program_id, crossed.repairs))
    for i, destroy in enumerate(map(program_id, crossed.destroys)):
        for j, repair in enumerate(repairs):
            yield CrossPlayRow(k, i, j, destroy, repair, crossed.utility[i, j], crossed.scores[j])


def _write_answers(db: sqlite3.Connection, done: Round, advantages: Advantages) -> None:
    """Every prompt of a round, and what became of the answers to it."""
    number: Counter[Role] = Counter()
    prompts, samples = [], []
    mends: list[MendRecord] = []
    for answers in done.answers:
        prompt = answers.prompt
        role, n = prompt.role, number[prompt.role]
        number[role] += 1
        parents = tuple(map(program_id, prompt.parents))
        destroy = "" if prompt.destroy is None else program_id(prompt.destroy)
        prompts.append(
            PromptRecord(
                done.number, role, n, prompt.form, parents, destroy, prompt.shortened, prompt.whole
            )
        )
        groups, moves = done.groups.get(role, ()), advantages.get(role, ())
        earned = groups[n].credits if n < len(groups) else None
        moved = moves[n] if n < len(moves) else None
        for place, program in enumerate(answers.programs):
            values = (np.nan if each is None else float(each[place]) for each in (earned, moved))
            samples.append(SampleRecord(done.number, role, n, place, _digest(program), *values))
        mends += _mends(answers, done.number, n)
    PROMPTS.insert(db, prompts)
    SAMPLES.insert(db, samples)
    MENDS.insert(db, mends)


def _mends(answers: Answers, k: int, n: int) -> Iterator[MendRecord]:
    """The further answers to a prompt, its n-th of a round and role."""
    for place, mend in enumerate(answers.mended):
        wrong = "" if mend is None else mend.status
        for number, attempt in enumerate(mend.attempts if mend else (), 1):
            message, status = attempt.prompt.turns[-1][1], attempt.status or Status.OK.label
            found = (wrong, message, status, _digest(attempt.program))
            yield MendRecord(k, answers.prompt.role, n, place, number, *found)
            wrong = attempt.status


def _digest(program: Program | None) -> str:
    return "" if program is None else program.digest
