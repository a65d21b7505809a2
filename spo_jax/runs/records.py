"""What the tables of a run hold, as records and arrays. See `spo_jax.runs.run.Run`."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

import numpy as np

from spo_jax.errors import MissingExtra
from spo_jax.program import Pair, Program, Role
from spo_jax.search.rounds import Counts, Failure
from spo_jax.search.rounds import CrossPlay as CrossPlay  # a round has them as a run does
from spo_jax.search.rounds import RoundScores as RoundScores

Record = TypeVar("Record")


class Records(tuple[Record, ...], Generic[Record]):
    """A table: dataclasses of one kind, in order. An empty one knows its kind too."""

    kind: type[Record]

    def __new__(cls, kind: type[Record], records: Iterable[Record]) -> "Records[Record]":
        found = super().__new__(cls, records)
        found.kind = kind
        return found

    def __getnewargs__(self) -> tuple[type[Record], tuple[Record, ...]]:
        return self.kind, tuple(self)

    def column(self, name: str) -> np.ndarray:
        """[N] one field of all records.

        Args:
            name: The field.
        """
        return np.array([getattr(each, name) for each in self])

    def to_pandas(self) -> Any:
        """A DataFrame with a column for each field.

        Raises:
            MissingExtra: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise MissingExtra("pandas", "study") from None
        names = [field.name for field in fields(self.kind)]  # type: ignore[arg-type]
        rows = [[getattr(each, name) for name in names] for each in self]
        return pandas.DataFrame(rows, columns=names)


@dataclass(frozen=True)
class ProgramRecord:
    """A program of a run.

    Attributes:
        name: As "D3.10": its role, its round and its number there.
        role: Its role.
        round: That added it.
        digest: Of its normalised source.
        strategy: As `Program` has it.
        source: Likewise.
        form: Likewise.
        parents: Names of the programs in its prompt.
        condition: As `Program` has it.
        derivation: Likewise.
        credit: What it earned in that round (a repair: with the destroy that it was written for),
            NaN without any.
        program: Itself.
        mended: What was wrong with the answer before it, as `MendRecord.wrong`; "" for a program of
            a first answer.
    """

    name: str
    role: Role
    round: int
    digest: str
    strategy: str
    source: str
    form: str
    parents: tuple[str, ...]
    condition: str
    derivation: str
    credit: float
    program: Program
    mended: str = ""


@dataclass(frozen=True)
class PairRecord:
    """A pair that was evaluated.

    Attributes:
        destroy: The destroy's name.
        repair: The repair's name.
        round: That evaluated it first.
        kind: "response", "credit", "cross-play" or "start"; in `Run.remeasured` "elite" or
            "control", or as before of a pair that a race had left out.
        status: "ok", or what went wrong.
        utility: J, NaN unless the status is "ok"; of a pair that a race left out, which is
            "censored", an estimate.
        reason: What went wrong, in words.
        failed: The role of the program that failed, or "".
        scores: [I, S] by training instance and seed, whose mean is J; NaN unless the status is
            "ok". So the column is an array [N, I, S].
        gap: The mean over the training instances and their rollouts of how many per cent its costs
            are above `Run.references`; NaN for a pair without costs, as in runs that did not keep
            them.
    """

    destroy: str
    repair: str
    round: int
    kind: str
    status: str
    utility: float
    reason: str
    failed: str
    scores: tuple[tuple[float, ...], ...] = ()
    gap: float = math.nan


@dataclass(frozen=True)
class MemberRecord:
    """A member of a population.

    Attributes:
        name: The program's name.
        rank: From 0, in the order of selection.
        score: That it was selected by.
        born: The round that added it.
    """

    name: str
    rank: int
    score: float
    born: int


@dataclass(frozen=True)
class PromptRecord:
    """A prompt.

    Attributes:
        round: The round that asked it.
        role: Of the program that it asks for.
        number: From 0, by round and role.
        form: As `Prompt` has it.
        parents: Names of the programs that it shows.
        destroy: Name of the destroy that a repair is to answer, or "".
        shortened: As `Prompt` has it.
        text: Likewise.
    """

    round: int
    role: Role
    number: int
    form: str
    parents: tuple[str, ...]
    destroy: str
    shortened: str
    text: str


@dataclass(frozen=True)
class SampleRecord:
    """An answer to a prompt.

    Attributes:
        round: The round that sampled it.
        role: Of the program that was asked for.
        prompt: The number of the prompt.
        place: From 0, among the answers to it.
        program: Its name, "" where it holds none that passed the gate.
        credit: As the update had it; NaN where it had none.
        advantage: Likewise.
    """

    round: int
    role: Role
    prompt: int
    place: int
    program: str
    credit: float
    advantage: float


@dataclass(frozen=True)
class MendRecord:
    """An answer that was sent back, and the further answer to that.

    Attributes:
        round: The round that sampled it.
        role: Of the program that was asked for.
        prompt: The number of the sample's prompt.
        place: The sample's place among the answers to it.
        number: 1 for the first time that it was sent back.
        wrong: What was wrong with the answer before: "unparsable", a program's status ("rejected",
            "crash", ...), or "copy" for a parent's program.
        message: What the model was told.
        status: Of the further answer, likewise; "ok" where its program took the sample's place.
        program: Its name, or a digest where it is not of the run, "" without one.
    """

    round: int
    role: Role
    prompt: int
    place: int
    number: int
    wrong: str
    message: str
    status: str
    program: str


@dataclass(frozen=True)
class Timing:
    """Wall-clock seconds of one kind of work of a round, of the attempt that was committed.

    Attributes:
        round: The round.
        stage: "all", or one of "start", "sampling", "response", "credit", "cross-play",
            "remeasure", "mending", "trial" (of what may be mended) and "update", which overlap; of
            the last round also "validation" and "fresh". With `minutes` also "used": the run's
            seconds up to the end of the round.
        seconds: How many.
    """

    round: int
    stage: str
    seconds: float


@dataclass(frozen=True)
class _Numbered:
    round: int


@dataclass(frozen=True)
class FailureRecord(Failure, _Numbered):
    """An answer or a pair that earned nothing.

    Attributes:
        round: The round.
        subject: As `spo_jax.search.rounds.Failure` has it.
        status: Likewise.
        reason: Likewise.
        destroy: The destroy's name, or its digest where the gate refused it.
        repair: The repair's, likewise.
        text: As `spo_jax.search.rounds.Failure` has it.
    """


@dataclass(frozen=True)
class CountsRecord(Counts, _Numbered):
    """The `Counts` of a round, and before them its number."""


@dataclass(frozen=True)
class BestRecord:
    """The pair with the highest J so far when a round was over.

    Attributes:
        round: The round.
        evaluations: Pairs evaluated so far, cross-play included.
        answers: Sampled so far.
        seconds: Wall-clock of the rounds so far, NaN where one is not known.
        utility: J, NaN while there is no pair.
        pair: None while there is none.
    """

    round: int
    evaluations: int
    answers: int
    seconds: float
    utility: float
    pair: Pair | None


@dataclass(frozen=True)
class ReferenceRecord:
    """What gaps on an instance are measured from.

    Attributes:
        name: The instance's.
        size: Likewise.
        cost: NaN where nothing is known.
        certified: Whether it is proven optimal.
        source: Who found it; the best cost that the run has seen is one, where nothing else is
            known.
    """

    name: str
    size: int
    cost: float
    certified: bool
    source: str


@dataclass(frozen=True)
class GapRecord:
    """Gaps in per cent when a round was over, as `PairRecord` has them, NaN where there is none.

    Attributes:
        round: The round.
        best: Of the best pair so far.
        top: The least of the round's new responses.
        decile: What a tenth of them reach.
        median: What half of them reach.
    """

    round: int
    best: float
    top: float
    decile: float
    median: float
