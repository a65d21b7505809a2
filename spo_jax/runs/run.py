"""A run, read from its folder for analysis: records and arrays, without SQL.

Programs go by their names in the run: D3.07 is the seventh destroy that round 3 added, R3.112 a
repair. A table is a tuple of records; `column` makes an array of one of its fields, `to_pandas` a
data frame of it. Missing numbers are NaN.
"""

import contextlib
import math
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from spo_jax.config import Settings
from spo_jax.constants import SPO
from spo_jax.errors import InputError
from spo_jax.program import ROLES, Game, Pair, Role
from spo_jax.runs.database import payoffs, reading, tables
from spo_jax.runs.database.store import best_of, open_database
from spo_jax.runs.database.table import Table
from spo_jax.runs.folders import DATABASE, config_of, locked, read_manifest, storage
from spo_jax.runs.gaps import Measured, middle
from spo_jax.runs.manifest import shape_of
from spo_jax.runs.probes import ProbeRecord, read_probes
from spo_jax.runs.records import (
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
from spo_jax.runs.references import kept
from spo_jax.search.credit.types import Payoff
from spo_jax.search.method import rounds_of
from spo_jax.search.rounds import RESPONSE, Best
from spo_jax.search.utility import meaning
from spo_jax.search.validation import Finals

T = TypeVar("T")
OfProgram = TypeVar("OfProgram", SampleRecord, MendRecord)
OfPair = TypeVar("OfPair", PairRecord, FailureRecord)


@dataclass(frozen=True, eq=False)
class Run:
    """A run. Its tables are read when they are asked for.

    Attributes:
        path: Its folder.
        config: Its settings; `rounds` is `planned` where that is known, for SPO.
        preset: The preset that it began with.
        manifest: What manifest.json says.
        best: The pair that `select` chooses, else the one with the highest J, or None.
        finals: What was measured when the rounds were over.
        rounds: How many are committed.
        evaluated: How many pairs so far.
        status: "finished", "running" (another process has it) or "interrupted".
        planned: How many rounds it is to have, None where `minutes` decides and they go on.
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

    def __repr__(self) -> str:
        best = "no valid pair" if self.best is None else f"best J {self.best.utility:.4f}"
        return (
            f"Run({str(self.path)!r}: {self.config.problem}, rounds {self.progress}, "
            f"{self.status}, {best})"
        )

    @property
    def maximise(self) -> bool:
        """Whether its problem maximises; then costs in its database are negatives."""
        return bool(self.manifest.get("maximise"))

    @cached_property
    def game(self) -> Game:
        """Who leads and who follows in it, and what they are called."""
        return Game.of_json(self.manifest.get("game"))

    @property
    def meaning(self) -> str:
        """What its J is, in words."""
        terms = self.config.evaluation
        return meaning(terms.utility, terms.start, self.maximise)

    @property
    def progress(self) -> str:
        """Its rounds so far, and of how many, where that is known: "3 of 10"."""
        return str(self.rounds) if self.planned is None else f"{self.rounds} of {self.planned}"

    # --- tables -----------------------------------------------------------------------------------

    @cached_property
    def programs(self) -> Records[ProgramRecord]:
        """Every program that passed the gate, in the order of their names."""
        earned: dict[str, float] = {}
        for paid in self._rows(tables.CREDITS):
            earned.setdefault(paid.program, paid.credit)
        mended: dict[tuple[str, str], str] = {}
        for each in self._rows(tables.MENDS, "status = 'ok'"):
            mended.setdefault((each.role, each.program), each.wrong)
        first = {digest: name for (_, digest), name in self._by_digest.items()}
        found = []
        for row in self._stored:
            p = row.program
            parents = tuple(first.get(each, each) for each in p.parents)
            credit, wrong = earned.get(row.id, math.nan), mended.get((p.role, row.digest), "")
            found.append(
                ProgramRecord(
                    row.name, p.role, row.round, row.digest, p.strategy, p.source, p.form, parents,
                    p.condition, p.derivation, credit, p, wrong,
                )
            )  # fmt: skip
        return Records(ProgramRecord, found)

    @cached_property
    def pairs(self) -> Records[PairRecord]:
        """Every pair that was evaluated, by round, with its first J."""
        gap, shape = self._measured.gap, shape_of(self.manifest, self.config)
        unknown = np.full(shape, np.nan)
        found = []
        for each in self._rows(tables.PAIRS.of(PairRecord), order="round, destroy, repair"):
            scores = np.reshape(each.scores, shape) if each.scores else unknown
            rows = tuple(map(tuple, scores.tolist()))
            record = replace(each, scores=rows, gap=gap((each.destroy, each.repair)))
            found.append(self._pair_named(record))
        return Records(PairRecord, found)

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
        found, members = _Populations(), tables.MEMBERS.of(MemberRecord)
        with self._database() as db:
            for key in product(range(1, self.rounds + 1), ROLES):
                rows = members.select(db, "round = ? AND role = ?", *key)
                named = (replace(each, name=self._by_id[each.name]) for each in rows)
                found[key] = Records(MemberRecord, named)
        return found

    @cached_property
    def failures(self) -> Records[FailureRecord]:
        """Every answer and pair that failed, and why."""
        rows = self._rows(tables.FAILURES)
        return Records(FailureRecord, map(self._pair_named, rows))

    @cached_property
    def prompts(self) -> Records[PromptRecord]:
        """Every prompt."""
        named = self._by_id
        found = []
        for each in self._rows(tables.PROMPTS):
            parents = tuple(named.get(key, key) for key in each.parents)
            found.append(
                replace(each, parents=parents, destroy=named.get(each.destroy, each.destroy))
            )
        return Records(PromptRecord, found)

    @cached_property
    def samples(self) -> Records[SampleRecord]:
        """Every answer to a prompt, with its credit and its advantage in the update."""
        return Records(SampleRecord, map(self._named, self._rows(tables.SAMPLES)))

    @cached_property
    def mends(self) -> Records[MendRecord]:
        """Every answer that was sent back to be mended; none in runs from before there was that."""
        return Records(MendRecord, map(self._named, self._rows(tables.MENDS)))

    @cached_property
    def timings(self) -> Records[Timing]:
        """Wall-clock seconds by round and stage."""
        return Records(Timing, self._rows(tables.TIMINGS))

    @cached_property
    def counts(self) -> Records[CountsRecord]:
        """[K] what each round did, in numbers."""
        return Records(CountsRecord, self._rows(tables.ROUNDS.of(CountsRecord)))

    @cached_property
    def metrics(self) -> Mapping[str, np.ndarray]:
        """[K] float64 of each metric, NaN in rounds that have none of the name."""
        with self._database() as db:
            rows = reading.read_metrics(db)
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: np.array([row.get(name, math.nan) for row in rows]) for name in names}

    @cached_property
    def probes(self) -> Records[ProbeRecord]:
        """What its policies were found to be worth (`experiments/policy_probe.py`), if at all."""
        return Records(ProbeRecord, read_probes(self.path))

    @cached_property
    def best_by_round(self) -> Records[BestRecord]:
        """[K] the best pair after each round, and what it took so far."""
        took = {each.round: each.seconds for each in self.timings if each.stage == "all"}
        found, pairs, answers, seconds = [], 0, 0, 0.0
        with self._database() as db:
            for row in tables.ROUNDS.select(db):
                pairs, answers = (
                    pairs + row.pairs,
                    answers + row.destroy_answers + row.repair_answers,
                )
                seconds += took.get(row.round, math.nan)
                best = reading.best_in(db, row)
                utility, pair = (math.nan, None) if best is None else (best.utility, best.pair)
                found.append(BestRecord(row.round, pairs, answers, seconds, utility, pair))
        return Records(BestRecord, found)

    # --- of one round -----------------------------------------------------------------------------

    def credits(self, number: int) -> RoundScores:
        """What the programs of a round earned, by name, in the places that they have in `payoff`.

        Raises:
            InputError: The round is not there, or the method has no credits.
        """
        slots = self.config.search.repairs_per_destroy
        return payoffs.scores_of(self._credited(number), self._by_id, slots)

    def payoff(self, number: int) -> Payoff:
        """What the credit scheme of a round was given: any scheme can be called on it.

        Raises:
            InputError: The round is not there, the method has no credits, or the run is of an
                earlier version that did not keep all of it.
        """
        self._credited(number)
        with self._database() as db:
            try:
                return payoffs.read_payoff(db, number, self.config, self.manifest)
            except InputError as error:
                raise InputError(f"{self.path}: {error}") from None

    def reasons(self, number: int) -> np.ndarray:
        """Say why pairs of a round have no utility.

        Returns:
            [D, R] texts as "status: reason", "" where there is a utility or no program. Of a pair
            that `payoff(number)` does not call failed it is a fault of the host.

        Raises:
            InputError: As `payoff`.
        """
        payoff = self.payoff(number)
        with self._database() as db:
            return payoffs.read_reasons(db, number, payoff)

    def cross_play(self, number: int) -> CrossPlay:
        """The cross-play of a round; without a panel M and R are 0.

        Raises:
            InputError: The round is not there.
        """
        self._require(number)
        rows = self._rows(tables.CROSS_PLAY, "round = ?", number)
        return payoffs.crossed_of(rows, self._by_id)

    def best_pairs(self, count: int) -> list[Best]:
        """The `count` best pairs by J, one per destroy."""
        with self._database() as db:
            return reading.candidates(db, count, self.config.search.best_from)

    def gap(self, pair: Pair | None) -> float:
        """The gap of an evaluated pair, see `PairRecord`; NaN for another one and for None."""
        if pair is None:
            return math.nan
        return self._measured.gap((pair.destroy.digest, pair.repair.digest))

    def validated_gap(self, best: Best) -> float:
        """The gap of a finalist on the validation instances, NaN unless each has a reference."""
        return self._measured.validated(best.costs)

    def pair(self, destroy: str, repair: str) -> Pair:
        """The pair of two names.

        Raises:
            InputError: The run has no program of a name.
        """
        return Pair(self[destroy].program, self[repair].program)

    def names(self, pair: Pair) -> tuple[str, str]:
        """The names of a pair's programs, "" for one that is not of the run."""
        with self._database() as db:
            return reading.read_name(db, pair.destroy), reading.read_name(db, pair.repair)

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
        with storage(self.path), contextlib.closing(tables.connect(self.path / DATABASE)) as db:
            yield db

    def _rows(self, table: Table[T], where: str = "", *given: Any, order: str = "") -> list[T]:
        with self._database() as db:
            return table.select(db, where, *given, order=order)

    @cached_property
    def _measured(self) -> Measured:
        with self._database() as db:
            training = reading.read_costs(db, "training")
        return Measured(self.manifest, kept(self.path), training)

    @cached_property
    def index(self) -> Mapping[str, ProgramRecord]:
        """The programs by name."""
        return {each.name: each for each in self.programs}

    @cached_property
    def _stored(self) -> list[tables.ProgramRow]:
        """The programs in the order of their names."""
        return self._rows(tables.PROGRAMS, order="role, round, LENGTH(name), name")

    @cached_property
    def _by_id(self) -> dict[str, str]:
        return {row.id: row.name for row in self._stored}

    @cached_property
    def _by_digest(self) -> dict[tuple[str, str], str]:
        found: dict[tuple[str, str], str] = {}
        for row in self._stored:
            found.setdefault((row.program.role, row.digest), row.name)
        return found

    def _called(self, role: str, digest: str) -> str:
        return self._by_digest.get((role, digest), digest)

    def _named(self, each: OfProgram) -> OfProgram:
        """A record with the name of its program in place of the digest."""
        return replace(each, program=self._called(each.role, each.program))

    def _pair_named(self, each: OfPair) -> OfPair:
        """A record with the names of a pair in place of digests."""
        destroy, repair = (self._called(role, getattr(each, role)) for role in ROLES)
        return replace(each, destroy=destroy, repair=repair)

    def _require(self, number: int) -> None:
        if not (isinstance(number, int) and 1 <= number <= self.rounds):
            raise InputError(f"{self.path} has rounds 1 to {self.rounds}, and no round {number!r}")

    def _credited(self, number: int) -> list[tables.CreditRow]:
        self._require(number)
        rows = self._rows(tables.CREDITS, "round = ?", number)
        if not rows and self.config.search.method != SPO:
            raise InputError(f"{self.path}: the method {self.config.search.method} has no credits")
        return rows


class _Populations(dict[tuple[int, Role], Records[MemberRecord]]):
    def __missing__(self, key: object) -> Records[MemberRecord]:
        raise InputError(f"no population {key!r}: use [round, role], of {len(self) // 2} rounds")


def load_run(path: str | Path) -> Run:
    """Read a run folder without changing it.

    Raises:
        InputError: There is no run in it.
    """
    manifest, path = read_manifest(path), Path(path)
    config = config_of(path, manifest)
    with storage(path), contextlib.closing(open_database(path, manifest, config)) as db:
        db.execute("BEGIN")  # what is read is of one moment
        finals, best = reading.read_finals(db), best_of(db, config)
        rounds, pairs = db.execute(
            "SELECT COUNT(*), COALESCE(SUM(pairs), 0) FROM rounds"
        ).fetchone()
    planned = manifest.get("rounds") or rounds_of(config)
    if planned and config.search.method == SPO:  # more than it began with, or as many as fitted
        config = config.replace(rounds=planned)
    over = planned is not None and rounds >= planned
    if over and (finals.finalists or not config.search.finalists or best is None):
        status = "finished"
    else:
        status = "running" if locked(path) else "interrupted"
    preset = str(manifest.get("preset", ""))
    return Run(path, config, preset, manifest, best, finals, rounds, pairs, status, planned)
