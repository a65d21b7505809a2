"""What became of a run's answers: how many hold a program, pass the gate, are new, and run."""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from spo_jax.program import DESTROY_REPAIR, ROLES, Game, Role
from spo_jax.program.equivalence import canonical
from spo_jax.runs.records import FailureRecord
from spo_jax.runs.run import Run
from spo_jax.search.rounds import RESPONSE, UNPARSABLE, Failure, Round
from spo_jax.search.sampling.mends import AGAIN
from spo_jax.search.sampling.start import START

_FURTHER = re.compile(AGAIN.format(r"\d+"))
MOST = 2000  # programs of a run whose forms are compared: 1.4 ms each; of more, their sources are


@dataclass(frozen=True)
class FunnelRow:
    """The answers to one role's prompts in one round.

    parsed: answers that hold a program. passed: those that the gate lets through, a mended answer
    in the place of the first one. new: programs
    among these that no earlier program of the run equals but for names, comments and layout (in a
    run of more than MOST programs: in the same source); the other answers are copies.
    valid: of the new programs, those with a pair that has a utility.
    """

    round: int
    role: Role
    answers: int
    parsed: int
    passed: int
    new: int
    valid: int

    @property
    def copies(self) -> int:
        return self.passed - self.new


class Forms:
    """Programs as (role, source), equal if they are but for names, comments and layout.

    close: False compares sources as they are, which is fast.
    """

    def __init__(self, close: bool = True, game: Game = DESTROY_REPAIR) -> None:
        self._game = game
        self._seen: set[object] = set()
        self._close = close
        self._known: dict[tuple[Role, str], object] = {}  # a form takes a millisecond

    def add(self, programs: Iterable[tuple[Role, str]]) -> set[object]:
        """Take notice of programs; returns the forms among them that are new."""
        new = {self.of(role, source) for role, source in programs} - self._seen
        self._seen |= new
        return new

    def of(self, role: Role, source: str) -> object:
        """The form of a program."""
        if (role, source) not in self._known:
            form = canonical(source, self._game.side(role).function) if self._close else None
            self._known[role, source] = role, form or source
        return self._known[role, source]


class Copies:
    """Counts the copies of each round of a run, for its display.

    earlier: the (role, source) of the programs of the rounds before one. game: theirs.
    """

    def __init__(
        self,
        earlier: Callable[[int], Iterable[tuple[Role, str]]],
        game: Game = DESTROY_REPAIR,
    ) -> None:
        self._earlier, self._game = earlier, game
        self._forms: Forms | None = None

    def __call__(self, done: Round) -> tuple[int, int]:
        """How many answers of a round that passed the gate are copies, and how many passed."""
        if self._forms is None:
            self._forms = Forms(game=self._game)
            self._forms.add(self._earlier(done.number))
        programs = [
            (each.role, each.source)
            for group in done.answers
            for each in group.programs
            if each is not None
        ]
        return len(programs) - len(self._forms.add(programs)), len(programs)


def unparsable(failures: Iterable[Failure | FailureRecord], role: Role) -> int:
    """How many first answers of a role hold no program; further answers are those of mends."""
    return sum(
        each.subject == role and each.status == UNPARSABLE and not _FURTHER.match(each.reason)
        for each in failures
    )


def funnel(run: Run) -> list[FunnelRow]:
    """A row for each round and role."""
    forms = Forms(len(run.programs) <= MOST, run.game)
    forms.add((each.role, each.source) for each in run.programs if each.form == START)
    failures: dict[int, list[FailureRecord]] = defaultdict(list)
    for failure in run.failures:
        failures[failure.round].append(failure)
    sampled: dict[tuple[int, Role], list[str]] = defaultdict(list)
    for each in run.samples:
        if each.program:
            sampled[each.round, each.role].append(each.program)
    works = {name for pair in run.pairs if pair.kind == RESPONSE and not math.isnan(pair.utility)
             for name in (pair.destroy, pair.repair)}  # fmt: skip
    rows = []
    for k, counts in enumerate(run.counts, 1):
        for role in ROLES:
            answers = counts.destroy_answers if role == "destroy" else counts.repair_answers
            passed = sampled[k, role]
            own = [run[name] for name in dict.fromkeys(passed)]
            new = forms.add((role, each.source) for each in own)
            valid = {forms.of(role, each.source) for each in own if each.name in works}
            rows.append(
                FunnelRow(
                    k, role, answers,
                    max(answers - unparsable(failures[k], role), len(passed)), len(passed),
                    len(new), len(new & valid),
                )
            )  # fmt: skip
    return rows
