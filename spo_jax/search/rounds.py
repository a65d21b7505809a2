"""The record of a round, the state of the next one, and the base classes Updater and Observer."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.program import Completion, Group, Pair, Program, Prompt, Role
from spo_jax.search.population import Population
from spo_jax.search.sampling.mends import Mend

Digests = tuple[str, str]  # a destroy's and a repair's

UNPARSABLE = "unparsable"  # an answer without a program; a program's own statuses are Status labels
RESPONSE = "response"  # the kind of a pair whose repair was written for its destroy
ASKED = "credit"  # the kind of a pair that a credit scheme asked for


@dataclass(frozen=True, eq=False)
class Answers:
    """The samples of one context.

    Attributes:
        prompt: The context.
        completions: The samples.
        programs: One per completion, None where it was refused or failed its trial, and that of a
            mended answer in the place of the original's.
        unjudged: The indices of those that were not refused, but lost by a fault on our side.
        mended: One per completion, None where it was not to be mended; empty if none was.
    """

    prompt: Prompt
    completions: tuple[Completion, ...]
    programs: tuple[Program | None, ...]
    unjudged: frozenset[int] = frozenset()
    mended: tuple[Mend | None, ...] = ()

    @property
    def mends(self) -> list[Mend]:
        """Those that there are."""
        return [mend for mend in self.mended if mend is not None]


@dataclass(frozen=True)
class Failure:
    """An answer or a pair without a utility.

    Attributes:
        subject: "destroy" or "repair" for an answer that never ran, "pair" for failed rollouts.
        status: "unparsable", or the label of a Status.
        reason: What went wrong, in words.
        destroy: Digest, where it is known.
        repair: Likewise.
        text: The answer as it was sampled.
    """

    subject: str
    status: str
    reason: str
    destroy: str = ""
    repair: str = ""
    text: str = ""


@dataclass(frozen=True)
class Played:
    """One evaluated pair.

    Attributes:
        destroy: Digest.
        repair: Likewise.
        kind: "response" for a repair with the destroy it answers, "credit" for what a credit scheme
            asked for, "cross-play" for the panel's, "start" for a pair that the run began with.
        status: The label of a Status.
        utility: J (eq:pair-performance), NaN unless the status is "ok".
        reason: What went wrong, in words.
        role: Of the program that failed; empty where none did or where that is not known.
        scores: [I * S], by training instance and seed, the seeds of an instance side by side; their
            mean is `utility`. Empty unless the status is "ok".
        costs: [I * S], of the best solutions, likewise; for gaps, which decide nothing. Empty for a
            pair of a run from before they were kept.
    """

    destroy: str
    repair: str
    kind: str
    status: str
    utility: float
    reason: str = ""
    role: str = ""
    scores: tuple[float, ...] = ()
    costs: tuple[float, ...] = ()

    @property
    def digests(self) -> Digests:
        return (self.destroy, self.repair)

    @property
    def host_fault(self) -> bool:
        """Whether the host failed and not the pair: no verdict, and evaluated again."""
        return self.status == Status.HOST_FAULT.label


@dataclass(frozen=True)
class Best:
    """A pair with its discovery utility J and the round that evaluated it first.

    Attributes:
        pair: The pair.
        utility: J.
        round: The round.
        validation: Its utility on the validation instances; None where it was not validated, or not
            on all of them, because successive halving left it out before.
        fresh: Its J on instances that discovery has not seen; None where it was not measured.
        costs: [I * S], of its best solutions in validation, as `Played` has them; empty without
            any.
        misfit: Where and how it failed on a size that it was not trained on; empty if it did not.
    """

    pair: Pair
    utility: float
    round: int
    validation: float | None = None
    fresh: float | None = None
    costs: tuple[float, ...] = ()
    misfit: str = ""


@dataclass(frozen=True)
class Individual:
    """A valid pair of a method whose individuals are pairs.

    Attributes:
        pair: The pair.
        utility: J.
        round: When it was created.
        operator: Of the method, which created it.
        place: The island, for a method with islands.
        scores: Its utility on each training instance.
    """

    pair: Pair
    utility: float
    round: int
    operator: str
    place: int = 0
    scores: tuple[float, ...] = ()


@dataclass(frozen=True)
class Counts:
    """What a round did, in numbers.

    Attributes:
        destroy_answers: Sampled.
        destroys: Distinct programs among these that passed the gate.
        valid_destroys: Destroy answers that passed the gate.
        repair_answers: Sampled.
        repairs: Distinct programs among these that passed the gate, counted once for each destroy
            that they answer.
        valid_repairs: Repair answers whose pair has a utility.
        pairs: Evaluated in this round, cross-play included.
        reused: Pairs that an earlier round had evaluated.
        top: The highest utility of the round's responses; None without a finite one.
        median: Likewise.
    """

    destroy_answers: int
    destroys: int
    valid_destroys: int
    repair_answers: int
    repairs: int
    valid_repairs: int
    pairs: int
    reused: int
    top: float | None
    median: float | None


@dataclass(frozen=True, eq=False)
class RoundScores:
    """What the pairs and programs of a round were worth.

    Destroys and repairs are arrays of objects: programs in a `Round`, their names in a `Run`.

    Attributes:
        destroys: [D].
        repairs: [D, R], "" for an empty slot: row i was written for destroy i.
        utility: [D, R] float64, J, NaN where there is none.
        leader: [D] float64, credits that the update learns from.
        follower: [D, R] float64, likewise.
        leader_selection: [D] float64, credits that programs are selected by.
        follower_selection: [D, R] float64, likewise.
    """

    destroys: np.ndarray
    repairs: np.ndarray
    utility: np.ndarray
    leader: np.ndarray
    follower: np.ndarray
    leader_selection: np.ndarray
    follower_selection: np.ndarray


@dataclass(frozen=True, eq=False)
class CrossPlay:
    """A round's cross-play.

    Destroys and repairs are arrays of objects, as those of `RoundScores`.

    Attributes:
        destroys: [M], the panel.
        repairs: [R], the candidates.
        utility: [M, R] float64, J, NaN for a pair that failed.
        scores: [R] float64, C_R^pop.
    """

    destroys: np.ndarray
    repairs: np.ndarray
    utility: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True, eq=False)
class Round:
    """Everything that one round adds, committed as one transaction.

    Attributes:
        number: From 1.
        programs: Candidates that passed the gate, and the panel.
        pairs: Evaluated in this round.
        failures: Of answers and pairs.
        destroys: The population P_D^(k+1).
        repairs: The population P_R^(k+1).
        best: The pair with the highest J so far; None while there is none.
        counts: What it did, in numbers.
        metrics: What the model wrote, and the updater's own numbers.
        individuals: The new pairs of a method other than SPO.
        note: What that method keeps of the round for the next one, in a format of its own.
        answers: All that were sampled, with their prompts, in that order.
        groups: What the update was given, by role in the order of the answers.
        scored: None for a method without credits.
        crossed: Likewise.
        classical: The problem's destroys that the credit scheme was shown.
        asked: The further pairs that it was shown.
    """

    number: int
    programs: tuple[Program, ...]
    pairs: tuple[Played, ...]
    failures: tuple[Failure, ...]
    destroys: Population
    repairs: Population
    best: Best | None
    counts: Counts
    metrics: Mapping[str, float] = field(default_factory=dict)
    individuals: tuple[Individual, ...] = ()
    note: str = ""
    answers: tuple[Answers, ...] = ()
    groups: Mapping[Role, Sequence[Group]] = field(default_factory=dict)
    scored: RoundScores | None = None
    crossed: CrossPlay | None = None
    classical: tuple[Program, ...] = ()
    asked: tuple[Pair, ...] = ()

    def tally(self) -> dict[str, int]:
        """How many failures of each status, most frequent first."""
        tally = Counter(failure.status for failure in self.failures)
        return dict(sorted(tally.items(), key=lambda item: (-item[1], item[0])))


@dataclass(frozen=True, eq=False)
class State:
    """What round k+1 depends on besides the config.

    Attributes:
        round: The last finished one, k.
        destroys: P_D^(k+1).
        repairs: P_R^(k+1).
        best: The pair with the highest J so far; None while there is none.
        payoffs: Every pair evaluated so far, but for host faults, which are no verdicts.
        individuals: Those of all rounds, the oldest first.
        note: That of round k.
    """

    round: int = 0
    destroys: Population = ()
    repairs: Population = ()
    best: Best | None = None
    payoffs: Mapping[Digests, Played] = field(default_factory=dict)
    individuals: tuple[Individual, ...] = ()
    note: str = ""

    def after(self, done: Round) -> "State":
        """The state that follows a round.

        Args:
            done: The round.
        """
        new = {played.digests: played for played in done.pairs if not played.host_fault}
        return replace(
            self,
            round=done.number,
            destroys=done.destroys,
            repairs=done.repairs,
            best=done.best,
            payoffs={**self.payoffs, **new},
            individuals=(*self.individuals, *done.individuals),
            note=done.note,
        )


# --- updaters and observers -------------------------------------------------------------------


@runtime_checkable
class Updater(Protocol):
    """Learns from a round's groups.

    A run is killed and resumed at any moment, so `save` is called before a round is committed, and
    `restore` must bring back the save of exactly that round, ignoring later ones. `update` is
    called in a thread of its own while pairs are being evaluated, the others are not.
    """

    def update(self, groups: Mapping[Role, Sequence[Group]]) -> dict[str, float]:
        """Make one step (eq:grpo).

        Args:
            groups: Of each role. Credits are NaN for samples that must be left out.

        Returns:
            Metrics for the record, which must not depend on the clock.
        """
        ...

    def save(self, folder: Path, number: int) -> None:
        """Keep what a round ended with; on the disk when this returns.

        Args:
            folder: Where.
            number: The round's.
        """
        return None

    def restore(self, folder: Path, number: int) -> None:
        """Go back to what a round ended with.

        Args:
            folder: Where `save` kept it.
            number: The round's.
        """
        return None


def metrics_of(
    name: str, updater: Updater, groups: Mapping[Role, Sequence[Group]]
) -> dict[str, float]:
    """What an update returns.

    Args:
        name: The option, for the message.
        updater: Learns.
        groups: As `Updater.update` takes them.

    Raises:
        InputError: It returned something other than numbers by name.
    """
    found = updater.update(groups)
    known = isinstance(found, Mapping) and all(
        isinstance(key, str) and isinstance(value, Real) for key, value in found.items()
    )
    if not known:
        raise InputError(
            f"update {name!r} returned {found!r:.80}: it must return metrics, numbers by their name"
        )
    return {key: float(value) for key, value in found.items()}


class NoUpdate(Updater):
    """Learns nothing."""

    def update(self, groups: Mapping[Role, Sequence[Group]]) -> dict[str, float]:
        return {}


class Observer:
    """Watches a run; this one does nothing. Nothing that it does may change the run.

    `working` is called from several threads, the rest from the run's own.
    """

    def stage(self, number: int, name: str, total: int) -> None:
        """Round `number` begins a stage.

        Args:
            number: The round's.
            name: The stage's.
            total: Answers to settle or pairs to evaluate.
        """

    def advance(self, done: int) -> None:
        """Some of the stage's answers or pairs are settled.

        Args:
            done: How many.
        """

    def working(self, name: str) -> AbstractContextManager[None]:
        """Wrap long work.

        Args:
            name: "sampling", "response", "credit", "cross-play" or "update".
        """
        return nullcontext()

    def remark(self, line: str) -> None:
        """Something that a person should know.

        Args:
            line: It.
        """

    def finished(self, done: Round) -> None:
        """A round is over and committed.

        Args:
            done: The round.
        """
