"""A run, read from its folder for analysis: records and arrays, without SQL.

Programs go by their names in the run: D3.07 is the seventh destroy that round 3 added, R3.112 a
repair. A table is a tuple of records; `column` makes an array of one of its fields, `to_pandas` a
data frame of it. Missing numbers are NaN.
"""

import contextlib
import json
import math
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from spo_jax.config import Settings
from spo_jax.errors import InputError
from spo_jax.program import ROLES, Pair, Program, Role
from spo_jax.search.methods import rounds_of
from spo_jax.search.racing import NONE
from spo_jax.search.rounds import RESPONSE, Best
from spo_jax.search.runs.answer_rows import unpacked
from spo_jax.search.runs.folders import DATABASE, locked, read_manifest, storage
from spo_jax.search.runs.gaps import Measured, middle
from spo_jax.search.runs.intact import REMEDY
from spo_jax.search.runs.reading import (
    candidates,
    read_costs,
    read_finals,
    read_metrics,
    read_name,
    read_program,
)
from spo_jax.search.runs.records import (
    BestRecord,
    CountsRecord,
    CrossPlay,
    FailureRecord,
    GapRecord,
    MemberRecord,
    MendRecord,
    PairRecord,
    ProgramRecord,
    PromptRecord,
    Records,
    ReferenceRecord,
    RoundScores,
    SampleRecord,
    Timing,
)
from spo_jax.search.runs.references import kept
from spo_jax.search.runs.store import best_of, open_database
from spo_jax.search.runs.tables import MENDS, REMEASURED, connect, there
from spo_jax.search.validation import Finals


@dataclass(frozen=True, eq=False)
class Run:
    """A run. Its tables are read when they are asked for.

    path: its folder. config: its settings. best: the pair that `select` chooses, else the one with
    the highest J, or None. finals: what was measured when the rounds were over. evaluated: pairs
    so far. status: "finished", "running" (another process has it) or "interrupted". rounds:
    committed; planned: how many it is to have, None where `minutes` decides and they go on.
    """

    path: Path
    config: Settings
    preset: str
    manifest: Mapping[str, Any]
    best: Best | None
    finals: Finals
    rounds: int
    evaluated: int
    status: str
    planned: int | None

    @property
    def progress(self) -> str:
        """Its rounds so far, and of how many, where that is known: "3 of 10"."""
        return str(self.rounds) if self.planned is None else f"{self.rounds} of {self.planned}"

    # --- tables -----------------------------------------------------------------------------------

    @cached_property
    def programs(self) -> Records[ProgramRecord]:
        """Every program that passed the gate, in the order of their names."""
        earned: dict[str, float] = {}
        for key, credit in self._rows("program, credit", "credits", "round, row, slot"):
            earned.setdefault(key, _number(credit))
        first = {digest: name for (_, digest), name in self._by_digest.items()}
        mended: dict[tuple[str, str], str] = {}
        for role, digest, wrong, status in self._mends("role, digest, wrong, status"):
            if status == "ok":
                mended.setdefault((role, digest), wrong)
        found = []
        for row in self._rows(
            "id, name, role, round, digest, strategy, source, form, parents, condition, derivation",
            "programs",
            "role, round, LENGTH(name), name",
        ):
            key, name, role, number, digest, strategy, source, form, parents, *more = row
            digests = tuple(json.loads(parents))
            program = Program(role, source, strategy, digests, form, *more)
            found.append(
                ProgramRecord(
                    name, role, number, digest, strategy, source, form,
                    tuple(first.get(each, each) for each in digests), more[0], more[1],
                    earned.get(key, math.nan), program, mended.get((role, digest), ""),
                )
            )  # fmt: skip
        return Records(ProgramRecord, found)

    @cached_property
    def pairs(self) -> Records[PairRecord]:
        """Every pair that was evaluated, by round, with its first J."""
        return self._pairs("pairs")

    @cached_property
    def remeasured(self) -> Records[PairRecord]:
        """Every further measurement of a pair, by round; none unless `remeasure` or `racing` is
        set. Those of a pair that a race left out take the place of its estimate.
        """
        search = self.config.search
        return self._pairs(REMEASURED if search.remeasure or search.racing != NONE else "")

    def _pairs(self, table: str) -> Records[PairRecord]:
        what = "destroy, repair, round, kind, status, utility, reason, role"
        rows = self._rows(what, table, "round, destroy, repair") if table else []
        return Records(
            PairRecord,
            (
                PairRecord(self._called("destroy", d), self._called("repair", r), number, kind,
                           status, _number(utility), reason, failed, self._measured.gap((d, r)))
                for d, r, number, kind, status, utility, reason, failed in rows
            ),
        )  # fmt: skip

    @cached_property
    def references(self) -> Records[ReferenceRecord]:
        """[I] what the gaps on the training instances are measured from.

        Empty in a run that did not keep what its pairs cost, as older ones.
        """
        return Records(ReferenceRecord, self._measured.references)

    @cached_property
    def gaps(self) -> Records[GapRecord]:
        """[K] the gaps after each round."""
        new: dict[int, list[float]] = {}
        for pair in self.pairs:
            if pair.kind == RESPONSE and not math.isnan(pair.gap):
                new.setdefault(pair.round, []).append(pair.gap)
        found = []
        for each in self.best_by_round:
            gaps = new.get(each.round, [])
            tenth = float(np.quantile(gaps, 0.1)) if gaps else math.nan
            best, top = self.gap(each.pair), min(gaps, default=math.nan)
            found.append(GapRecord(each.round, best, top, tenth, middle(gaps)))
        return Records(GapRecord, found)

    @cached_property
    def populations(self) -> Mapping[tuple[int, Role], Records[MemberRecord]]:
        """P^(k+1) by (round k, role)."""
        found: dict[tuple[int, Role], list[MemberRecord]] = {
            (k, role): [] for k in range(1, self.rounds + 1) for role in ("destroy", "repair")
        }
        rows = self._rows("round, role, program, rank, score, born", "members", "rank")
        for number, role, key, *known in rows:
            found[number, role].append(MemberRecord(self._by_id[key], *known))
        return _Populations({key: Records(MemberRecord, members) for key, members in found.items()})

    @cached_property
    def failures(self) -> Records[FailureRecord]:
        """Every answer and pair that failed, and why."""
        what = "round, subject, status, reason, destroy, repair, text"
        rows = self._rows(what, "failures", "round, number")
        return Records(
            FailureRecord,
            (
                FailureRecord(
                    *(*known, self._called("destroy", d), self._called("repair", r), text)
                )
                for *known, d, r, text in rows
            ),
        )

    @cached_property
    def prompts(self) -> Records[PromptRecord]:
        """Every prompt. Raises InputError for a text that was damaged."""
        what = "round, role, number, form, parents, destroy, shortened, text"
        found = []
        first: dict[str, str] = {}  # of the round, by role
        for *known, parents, destroy, shortened, text in self._rows(what, "prompts", "1, 2, 3"):
            role, number = known[1:3]
            shown = tuple(self._by_id.get(key, key) for key in json.loads(parents))
            try:
                words = unpacked(text, first.get(role, "") if number else "")
            except (zlib.error, UnicodeDecodeError):
                raise InputError(
                    f"{self.path / DATABASE}: the table prompts has a text that cannot be read: "
                    f"{REMEDY}"
                ) from None
            if not number:
                first[role] = words
            answered = self._by_id.get(destroy, destroy)
            found.append(PromptRecord(*(*known, shown, answered, shortened, words)))
        return Records(PromptRecord, found)

    @cached_property
    def samples(self) -> Records[SampleRecord]:
        """Every answer to a prompt, with its credit and its advantage in the update."""
        what = "round, role, prompt, place, digest, credit, advantage"
        rows = self._rows(what, "samples", "1, 2, 3, 4")
        return Records(
            SampleRecord,
            (
                SampleRecord(*(*row[:4], self._called(row[1], row[4]), *map(_number, row[5:])))
                for row in rows
            ),
        )

    @cached_property
    def mends(self) -> Records[MendRecord]:
        """Every answer that was sent back to be mended; none in runs from before there was that."""
        rows = self._mends("round, role, prompt, place, number, wrong, message, status, digest")
        return Records(
            MendRecord, (MendRecord(*(*row[:8], self._called(row[1], row[8]))) for row in rows)
        )

    def _mends(self, columns: str) -> list[Any]:
        with self._database() as db:
            order = "round, role, prompt, place, number"
            return _select(db, columns, MENDS, order) if MENDS in there(db) else []

    @cached_property
    def timings(self) -> Records[Timing]:
        """Wall-clock seconds by round and stage."""
        rows = self._rows("round, stage, seconds", "timings", "1, 2")
        return Records(Timing, (Timing(*row) for row in rows))

    @cached_property
    def counts(self) -> Records[CountsRecord]:
        """[K] what each round did, in numbers."""
        what = ", ".join(field.name for field in fields(CountsRecord))
        rows = self._rows(what, "rounds", "round")
        return Records(CountsRecord, (CountsRecord(*row) for row in rows))

    @cached_property
    def metrics(self) -> Mapping[str, np.ndarray]:
        """[K] float64 of each metric, NaN in rounds that have none of the name."""
        with self._database() as db:
            rows = read_metrics(db)
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: np.array([row.get(name, math.nan) for row in rows]) for name in names}

    @cached_property
    def best_by_round(self) -> Records[BestRecord]:
        """[K] the best pair after each round, and what it took so far."""
        took = {each.round: each.seconds for each in self.timings if each.stage == "all"}
        programs = {}
        found, pairs, answers, seconds = [], 0, 0, 0.0
        asked = "destroy_answers + repair_answers"
        what = f"round, pairs, {asked}, best_utility, best_destroy, best_repair"
        with self._database() as db:
            for number, evaluated, sampled, utility, *keys in _select(db, what, "rounds", "1"):
                pairs, answers = pairs + evaluated, answers + sampled
                seconds += took.get(number, math.nan)
                for key in keys:
                    if key is not None and key not in programs:
                        programs[key] = read_program(db, key)
                pair = None if utility is None else Pair(*(programs[key] for key in keys))
                found.append(BestRecord(number, pairs, answers, seconds, _number(utility), pair))
        return Records(BestRecord, found)

    # --- of one round -----------------------------------------------------------------------------

    def credits(self, number: int) -> RoundScores:
        """The payoff of a round and what its programs earned, by role.

        Raises InputError for a round that is not there, and for a method without credits.
        """
        self._require(number)
        rows = self._rows(
            "role, row, slot, program, utility, credit, selection", "credits", "role, row, slot",
            f"round = {number}",
        )  # fmt: skip
        if not rows and self.config.search.method != "spo":
            raise InputError(f"{self.path}: the method {self.config.search.method} has no credits")
        leaders = [row for row in rows if row[0] == "destroy"]
        followers = [row for row in rows if row[0] == "repair"]
        shape = (len(leaders), max((row[2] + 1 for row in followers), default=0))
        names = np.full(shape, "", dtype=object)
        values = np.full((3, *shape), np.nan)
        for _, i, j, key, *numbers in followers:
            names[i, j] = self._by_id[key]
            values[:, i, j] = [_number(each) for each in numbers]
        own = np.array([[_number(each) for each in row[5:]] for row in leaders]).reshape(-1, 2)
        destroys = np.array([self._by_id[row[3]] for row in leaders], dtype=object)
        return RoundScores(destroys, names, values[0], own[:, 0], values[1], own[:, 1], values[2])

    payoff = credits  # the same record: `utility` is the payoff

    def cross_play(self, number: int) -> CrossPlay:
        """The cross-play of a round; without a panel M and R are 0. Raises InputError."""
        self._require(number)
        what = "row, slot, destroy, repair, utility, score"
        rows = self._rows(what, "cross_play", "row, slot", f"round = {number}")
        leaders = {row[0]: self._by_id[row[2]] for row in rows}
        repairs = {row[1]: self._by_id[row[3]] for row in rows}
        scores = {row[1]: _number(row[5]) for row in rows}
        values = np.array([_number(row[4]) for row in rows]).reshape(len(leaders), len(repairs))
        names = [np.array(list(each.values()), dtype=object) for each in (leaders, repairs)]
        return CrossPlay(names[0], names[1], values, np.array(list(scores.values())))

    def best_pairs(self, count: int) -> list[Best]:
        """The `count` best pairs by J, one per destroy."""
        with self._database() as db:
            return candidates(db, count, self.config.search.best_from)

    def gap(self, pair: Pair | None) -> float:
        """The gap of an evaluated pair, see `PairRecord`; NaN for another one and for None."""
        if pair is None:
            return math.nan
        return self._measured.gap((pair.destroy.digest, pair.repair.digest))

    def validated_gap(self, best: Best) -> float:
        """The gap of a finalist on the validation instances, NaN unless each has a reference."""
        return self._measured.validated(best.costs)

    def pair(self, destroy: str, repair: str) -> Pair:
        """The pair of two names. Raises InputError where they are none."""
        return Pair(self[destroy].program, self[repair].program)

    def names(self, pair: Pair) -> tuple[str, str]:
        """The names of a pair's programs, "" for one that is not of the run."""
        with self._database() as db:
            return read_name(db, pair.destroy), read_name(db, pair.repair)

    @property
    def started(self) -> list[str]:
        """Where each of the start pairs came from, and the names of its programs in the run."""
        found = self.manifest.get("start_pairs") or ()
        names = [[self._called(role, each[role]) for role in ROLES] for each in found]
        return [
            f"{each['from']} ({destroy} with {repair})" if self.rounds else each["from"]
            for each, (destroy, repair) in zip(found, names, strict=True)
        ]

    def __getitem__(self, name: str) -> ProgramRecord:
        """The program of a name. Raises InputError where there is none."""
        if name not in self.index:
            raise InputError(f"{self.path} has no program {name}")
        return self.index[name]

    # --- how it is read ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        with storage(self.path), contextlib.closing(connect(self.path / DATABASE)) as db:
            yield db

    def _rows(self, columns: str, table: str, order: str, where: str = "1") -> list[Any]:
        with self._database() as db:
            return _select(db, columns, table, order, where)

    @cached_property
    def _measured(self) -> Measured:
        training: dict[tuple[str, str], tuple[float, ...]] = {}
        if not self.config.evaluation.fresh_instances:  # only round 1 has costs that compare
            with self._database() as db:
                training = read_costs(db, "training")
        return Measured(self.manifest, kept(self.path), training)

    @cached_property
    def index(self) -> Mapping[str, ProgramRecord]:
        """The programs by name."""
        return {each.name: each for each in self.programs}

    @cached_property
    def _names(self) -> list[Any]:
        return self._rows("id, role, digest, name", "programs", "round, LENGTH(name), name")

    @cached_property
    def _by_id(self) -> dict[str, str]:
        return {key: name for key, _, _, name in self._names}

    @cached_property
    def _by_digest(self) -> dict[tuple[str, str], str]:
        found: dict[tuple[str, str], str] = {}
        for _, role, digest, name in self._names:
            found.setdefault((role, digest), name)
        return found

    def _called(self, role: str, digest: str) -> str:
        return self._by_digest.get((role, digest), digest)

    def _require(self, number: int) -> None:
        if not (isinstance(number, int) and 1 <= number <= self.rounds):
            raise InputError(f"{self.path} has rounds 1 to {self.rounds}, and no round {number!r}")


class _Populations(dict[tuple[int, Role], Records[MemberRecord]]):
    def __missing__(self, key: object) -> Records[MemberRecord]:
        raise InputError(f"no population {key!r}: use [round, role], of {len(self) // 2} rounds")


def load_run(path: str | Path) -> Run:
    """Read a run folder without changing it. Raises InputError if there is no run in it."""
    manifest = read_manifest(path)
    path = Path(path)
    config = Settings.make(**manifest["config"])
    with storage(path), contextlib.closing(open_database(path, manifest, config)) as db:
        db.execute("BEGIN")  # what is read is of one moment
        finals, best = read_finals(db), best_of(db, config)
        rounds, pairs = db.execute(
            "SELECT COUNT(*), COALESCE(SUM(pairs), 0) FROM rounds"
        ).fetchone()
    planned = manifest.get("rounds") or rounds_of(config)
    over = planned is not None and rounds >= planned
    if over and (finals.finalists or not config.search.finalists or best is None):
        status = "finished"
    else:
        status = "running" if locked(path) else "interrupted"
    preset = str(manifest.get("preset", ""))
    return Run(path, config, preset, manifest, best, finals, rounds, pairs, status, planned)


def _select(
    db: sqlite3.Connection, columns: str, table: str, order: str, where: str = "1"
) -> list[Any]:
    return db.execute(f"SELECT {columns} FROM {table} WHERE {where} ORDER BY {order}").fetchall()


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
