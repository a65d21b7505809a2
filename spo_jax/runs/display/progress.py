"""The display of a run: a live bar on a terminal, plain lines elsewhere and in the log.

It reads the clock, and nothing that it computes affects the run.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Lock

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from spo_jax.config import Settings
from spo_jax.envs.problems import get_problem
from spo_jax.program import Completion, Program
from spo_jax.runs.budget import Budget
from spo_jax.runs.display.lines import (
    NO_GAPS,
    ceiling_line,
    duration,
    failure_line,
    fault_line,
    last_failure,
    quality,
    round_line,
    spark,
    spent_line,
)
from spo_jax.runs.gaps import RoundGaps
from spo_jax.runs.report.text import visible
from spo_jax.search.method import rounds_of
from spo_jax.search.rounds import Observer, Round

STAGES = {
    "start": "evaluating start pairs",
    "destroy": "writing destroys",
    "repair": "writing and evaluating repairs",
    "credit": "evaluating what the credit asks for",
    "cross-play": "cross-play",
    "reflection": "reflecting",
    "update": "updating",
    "validation": "validating",
    "fresh": "measuring on fresh instances",
}
EVERY = 30.0  # seconds between lines on the answers that have come
SILENCE = 10.0  # seconds without a token that are shown
# The stages that take their time over pairs.
PLAYED = ("start", "repair", "credit", "cross-play")


# --- time left ------------------------------------------------------------------------------------


class Clock:
    """Time left, from the pairs played in this session; `now` returns seconds.

    answers: of all rounds, from which it is judged before the first pair is played.
    """

    def __init__(self, rounds: int, now: Callable[[], float] = time.monotonic, answers: int = 0):
        self._rounds, self._answers, self._answered = rounds, answers, 0
        self._now = now
        self._start = now()
        self._round = 0
        self._finished: list[int] = []  # pairs of each finished round
        self._played = 0  # pairs of the running round, finished stages
        self._total = 0  # pairs of the running stage
        self._done = 0

    def stage(self, number: int, total: int) -> None:
        self._round = number
        self._played += self._total
        self._total, self._done = total, 0

    def advance(self, done: int) -> None:
        self._done = done

    def answered(self) -> None:
        self._answered += 1

    def finished(self) -> None:
        self._finished.append(self._played + self._total)
        self._played = self._total = self._done = 0

    def left(self) -> float | None:
        """Seconds; None before the first pair and the first answer."""
        played, passed = sum(self._finished) + self._played + self._done, self._now() - self._start
        if not played:
            here = self._rounds - self._round + 1  # a run that goes on has rounds behind it
            to_write = self._answers * here / max(self._rounds, 1) - self._answered
            return passed / self._answered * to_write if self._answered and to_write > 0 else None
        here = self._played + self._total
        usual = sum(self._finished) / len(self._finished) if self._finished else here
        running = 0.0 if not here else max(usual - self._played - self._done, 0.0)
        to_come = self._rounds - self._round
        return passed / played * (running + to_come * usual)


class Written:
    """The answers of a stage as they come; `now` returns seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic):
        self._now = now
        self.begin()

    def begin(self) -> None:
        """A stage begins."""
        self._began = self._last = self._now()
        self._first = math.nan
        self._count = self._tokens = self._heard = self._cut = 0

    def add(self, completion: Completion) -> None:
        """A whole answer has come."""
        self._comes()
        self._count += 1
        usage = completion.usage
        self._tokens += len(completion.tokens)
        if usage is not None:
            self._tokens += usage.completion_tokens or 0
            self._cut += usage.cut

    def hear(self, tokens: int) -> None:
        """So many tokens of unfinished answers have come."""
        self._comes()
        self._heard += tokens

    def _comes(self) -> None:
        self._last = self._now()
        if math.isnan(self._first):
            self._first = self._last - self._began

    def __str__(self) -> str:
        """As "4 answers, 31 tokens/s, the first after 0:09, 1 cut"; empty before the first."""
        if math.isnan(self._first):
            return ""
        parts = [f"{self._count} answer{'s' * (self._count != 1)}"]
        tokens, seconds = max(self._tokens, self._heard), self._last - self._began
        if tokens and seconds > 0:
            parts.append(f"{tokens / seconds:.0f} tokens/s")
        parts.append(f"the first after {duration(self._first)}")
        silence = self._now() - self._last
        if self._heard > self._tokens and silence >= SILENCE:  # some answers are unfinished
            parts.append(f"nothing for {duration(silence)}")
        if self._cut:
            parts.append(f"{self._cut} cut at --max-new-tokens")
        return ", ".join(parts)


# --- the display ----------------------------------------------------------------------------------


class Display(Observer):
    """Shows a run on a console and writes its lines to a log; a context manager."""

    def __init__(
        self,
        config: Settings,
        log: Callable[[str], None],
        console: Console | None = None,
        named: Callable[[Program], str] = lambda program: "",
        gaps: Callable[[Round], RoundGaps] = lambda done: NO_GAPS,
        shares: Callable[[], str] = lambda: "",
        copies: Callable[[Round], tuple[int, int]] | None = None,
    ):
        """named: the names of programs in the run. gaps: after each round, in their order.
        shares: which machine did how much, where there are several. copies: how many
        programs of a round repeat earlier ones, and of how many.

        The time left is that of `budget`, where one is set, else judged by the rounds.
        """
        self.budget: Budget | None = None
        self._rounds = rounds_of(config)
        self._game = get_problem(config.problem).interface.game
        self._log = log
        self._named = named
        self._gaps = gaps
        self._shares, self._copies = shares, copies
        self._console = console or Console(highlight=False, soft_wrap=True)
        self._clock = Clock(self._rounds or 0, answers=2 * config.search.nominal_pairs)
        self._stage = ""
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._spent: dict[str, float] = {}
        self._spent_in_all: dict[str, float] = {}
        self._began = time.monotonic()
        self._written, self._writing = Written(), Lock()
        self._reported_at = 0.0  # when a line on answers was last written

    def __enter__(self) -> "Display":
        if self._console.is_terminal and not self._console.quiet:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=30),
                TextColumn("{task.completed:.0f}/{task.total:.0f}"),
                TextColumn("{task.fields[left]}"),
                TextColumn("{task.fields[written]}", style="dim", markup=False),
                TextColumn("{task.fields[shares]}", style="dim", markup=False),
                TextColumn("{task.fields[failure]}", style="dim", markup=False),
                console=self._console,
                transient=True,
            )
            # `written` is a text anew at every refresh, so that silence shows.
            self._task = self._bar.add_task(
                "starting", total=1, left="", written=self._written, shares="", failure=""
            )
            self._bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def say(self, line: str) -> None:
        """A line for the person and the log."""
        self._console.print(visible(line), markup=False)
        self.note(line)

    def note(self, line: str) -> None:
        """A line for the log. What a program or a file is called can change no terminal."""
        self._log(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {visible(line)}")

    def stage(self, number: int, name: str, total: int) -> None:
        self._stage = name
        with self._writing:
            self._written.begin()
            self._reported_at = time.monotonic()
        self._clock.stage(number, total if name in PLAYED else 0)
        self._show(
            description=f"round {number}{self._of}  {self._named_stage(name)}",
            total=max(total, 1),
            completed=0,
            left=self._left(),
        )
        self.note(f"round {number} {self._named_stage(name)} {total or ''}".rstrip())

    def advance(self, done: int) -> None:
        if self._stage in PLAYED:
            self._clock.advance(done)
        self._show(completed=done, left=self._left(), shares=self._shares())

    def answered(self, completion: Completion) -> None:
        """An answer has come, from any thread. Without a bar, a line now and then says so."""
        with self._writing:
            self._written.add(completion)
            self._clock.answered()
            self._show(left=self._left())
            self._tell_written()

    def heard(self, tokens: int) -> None:
        """Likewise tokens of answers that are being written."""
        with self._writing:
            self._written.hear(tokens)
            self._tell_written()

    def _tell_written(self) -> None:
        now = time.monotonic()
        if self._bar is None and now - self._reported_at >= EVERY:
            self._reported_at = now
            left = f", {self._left()}" if self._left() else ""
            self.say(f"{self._named_stage(self._stage)}: {self._written}{left}")

    @contextmanager
    def working(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:  # no two threads do work of one name
            self._spent[name] = self._spent.get(name, 0.0) + time.monotonic() - began

    def remark(self, line: str) -> None:
        self.say(line)

    def finished(self, done: Round) -> None:
        self._clock.finished()
        pair = () if done.best is None else (done.best.pair.destroy, done.best.pair.repair)
        names = " ".join(filter(None, map(self._named, pair)))
        gaps = self._gaps(done)
        if gaps.basis:
            self.say(gaps.basis)
        render = partial(
            round_line, done, self._rounds, self._seconds_left(), self._spent, names, gaps,
            copies=self._copies(done) if self._copies else (0, 0),
        )  # fmt: skip
        drawn = render(f"{spark(gaps.medians):<{self._rounds or 0}}")
        self.say(drawn if self._fits(drawn) else render())
        if not math.isnan(gaps.best):
            self.note(f"round {done.number} {quality(done)}")
        spent = self.seconds()
        now = time.monotonic()
        self.note(spent_line(f"round {done.number}", spent))
        for name, seconds in spent.items():
            self._spent_in_all[name] = self._spent_in_all.get(name, 0.0) + seconds
        self._began, self._spent = now, {}
        if line := self._shares():
            self.say(f"round {done.number} nodes so far: {line}")
        if line := failure_line(done):
            self.note(line)
        self._show(failure=last_failure(done, game=self._game))
        for line in filter(None, (fault_line(done), ceiling_line(done))):
            self.say(line)

    def seconds(self) -> dict[str, float]:
        """Wall-clock seconds of the running round by kind of work, and in all."""
        return {"all": time.monotonic() - self._began, **self._spent}

    def ended(self) -> None:
        """Log where the time of this session's rounds went."""
        if self._spent_in_all:
            self.note(spent_line("these rounds", self._spent_in_all))

    def _fits(self, line: str) -> bool:
        """Whether a line with bars can be shown."""
        bars = self._console.encoding.lower().startswith("utf")
        return bars and (not self._console.is_terminal or len(line) <= self._console.width)

    def _named_stage(self, name: str) -> str:
        return self._game.words(STAGES.get(name, name))

    @property
    def _of(self) -> str:
        return "" if self._rounds is None else f"/{self._rounds}"

    def _seconds_left(self) -> float | None:
        return self._clock.left() if self.budget is None else self.budget.left

    def _left(self) -> str:
        left = self._seconds_left()
        return "" if left is None else f"left {duration(left)}"

    def _show(self, **fields: object) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, **fields)  # type: ignore[arg-type]
