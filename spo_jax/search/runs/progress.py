"""The display of a run: a live bar on a terminal, plain lines elsewhere and in the log.

It reads the clock, and nothing that it computes affects the run.
"""

import math
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from spo_jax.config import Settings
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.rollouts import Status
from spo_jax.program import ROLES, Program
from spo_jax.search.methods import rounds_of
from spo_jax.search.rounds import Best, Observer, Round
from spo_jax.search.runs.records import FailureRecord
from spo_jax.search.validation import Finals
from spo_jax.words import SPO

STAGES = {
    "destroy": "writing destroys",
    "repair": "writing and evaluating repairs",
    "cross-play": "cross-play",
    "reflection": "reflecting",
    "update": "updating",
    "validation": "validating",
    "fresh": "measuring on fresh instances",
}
NOT_MEASURED = Finals()
NO_TIME: Mapping[str, float] = {}
WRITTEN = (*ROLES, "reflection")
PLAYED = ("repair", "cross-play")  # the stages that take their time over pairs


# --- texts ----------------------------------------------------------------------------------------


def opening(config: Settings, preset: str, path: Path, first: int) -> str:
    """The first line of a run, or of one that goes on."""
    rounds = rounds_of(config)
    begin = "Discovering" if first == 1 else f"Going on from round {first} of {rounds}:"
    if first > rounds:
        begin = "Going on with the validation of"
    how = "" if config.search.method == SPO else f"method {config.search.method}, "
    return (
        f"{begin} destroy-repair pairs for {config.problem} "
        f"({how}preset {preset}, seed {config.seed}, workers {config.workers}) in {path}"
    )


def round_line(
    done: Round,
    rounds: int,
    left: float | None,
    spent: Mapping[str, float] = NO_TIME,
    names: str = "",
) -> str:
    """One finished round in a line. spent: its seconds by kind of work. names: the best pair's."""
    counts = done.counts
    answers = counts.destroy_answers + counts.repair_answers
    valid = counts.valid_destroys + counts.valid_repairs
    parts = [
        f"round {done.number:>{len(str(rounds))}}/{rounds}",
        f"pairs {counts.pairs:>4}",
        f"valid {valid / answers if answers else 0:>4.0%}",
        f"best J {utility(done.best.utility if done.best else None)}{names}",
        f"median J {utility(counts.median)}",
    ]
    tokens = _of_all(done.metrics, "tokens")
    if tokens and spent.get("sampling"):
        parts.append(f"{tokens / spent['sampling']:,.0f} tokens/s")
    lost, cost = (_of_all(done.metrics, name) for name in ("lost", "cost"))
    if lost:
        parts.append(f"lost {lost:.0f}")
    if cost:
        parts.append(f"cost {cost:,.4f}")
    if done.number < rounds and left is not None:
        parts.append(f"left {duration(left)}")
    return "   ".join(parts)


def spent_line(what: str, spent: Mapping[str, float]) -> str:
    """Seconds by kind of work, which may overlap."""
    known = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in spent.items())
    return f"{what} took: {known}"


def bill(totals: Mapping[str, float]) -> str:
    """The total cost of an endpoint's answers; "" for other generators."""
    if not any(f"{what}/prompt_tokens" in totals for what in WRITTEN):
        return ""
    prompt, completion, cost, lost, uncounted = (
        _of_all(totals, name) for name in ("prompt_tokens", "tokens", "cost", "lost", "uncounted")
    )
    line = f"Endpoint: {prompt:,.0f} prompt tokens, {completion:,.0f} completion tokens"
    line += f", cost {cost:,.4f}" if cost else ""
    line += f", {lost:,.0f} answers lost" if lost else ""
    return line + (f", {uncounted:,.0f} answers without a count" if uncounted else "")


def _of_all(metrics: Mapping[str, float], name: str) -> float:
    """A metric's sum over all that a model wrote."""
    return sum(metrics.get(f"{what}/{name}", 0.0) for what in WRITTEN)


def failure_line(done: Round) -> str:
    """What failed in a round, or ""."""
    tally = ", ".join(f"{count} {status}" for status, count in done.tally().items())
    return f"round {done.number} failures: {tally}" if tally else ""


def fault_line(done: Round) -> str:
    """The faults of this machine in a round, or ""."""
    faults = [f for f in done.failures if f.status == Status.HOST_FAULT.label]
    if not faults:
        return ""
    return (
        f"Warning: round {done.number}: {len(faults)} programs or pairs could not be judged, "
        f"by a fault of this machine ({faults[0].reason}); they count neither for nor against"
    )


def commonest(failures: Sequence[FailureRecord]) -> str:
    """The most frequent reason of some failures."""
    tally = Counter((each.status, each.reason) for each in failures)
    [((status, reason), count)] = tally.most_common(1)
    return f"The most frequent reason, {count} of {len(failures)}: {status}: {reason}"


def closing(
    best: Best | None, config: Settings, path: Path, pair: Path | str, finals: Finals = NOT_MEASURED
) -> list[str]:
    """The result of a run, and what to do next. pair: its file, or why there is none."""
    if best is None:
        return [f"No valid pair was found; the failures table of {path}/spo.sqlite says why."]
    suffix = next(iter(get_problem(config.problem).suffixes), "")
    validated = config.search.select == "validation" and best.validation is not None
    how = "Validated best," if validated else "Best"
    on = "--on " + (shlex.join(config.evaluation.on) or f"uniform:{config.evaluation.size}x8")
    known = get_problem(config.problem)
    baseline = next((name for name in ("alns", *known.baselines) if name in known.baselines), None)
    classical = f"  spo baseline {baseline} --problem {config.problem} {on}"
    return [
        f"{how} J {utility(best.utility)} (round {best.round}): {pair}",
        *choice(best, finals),
        "J is the share of a random start's cost that the search saves. How far the pair is from "
        "the best known costs, and from classical operators, on the same instances:",
        f"  spo evaluate {path} {on}",
        *([] if baseline is None else [classical]),
        "To solve an instance with it:",
        f"  spo solve FILE{suffix} --pair {path}",
    ]


def choice(best: Best, finals: Finals) -> list[str]:
    """The chosen pair and the one with the highest J, and how much the latter over-promised."""
    highest = finals.highest
    if highest is None:
        return []
    rows = {"chosen": best} if best == highest else {"chosen": best, "highest J": highest}
    lines = [f"{'':13}{'J found':>9}{'J fresh':>9}{'validated':>11}"]
    for name, each in rows.items():
        numbers = f"{utility(each.fresh):>9}{utility(each.validation):>11}"
        lines.append(f"  {name:<11}{utility(each.utility):>9}{numbers}")
    if finals.over_promise is not None and finals.drift is not None:
        many = len(finals.controls)
        lines.append(
            f"From discovery's instances to fresh ones the highest J moves by "
            f"{-finals.over_promise - finals.drift:+.4f}, {many} pair{'s' * (many > 1)} drawn at "
            f"random by {-finals.drift:+.4f} (median): it over-promised {finals.over_promise:.4f}."
        )
    return lines


def stopped(config: Settings, path: Path, rounds: int) -> str:
    """After Ctrl-C."""
    return (
        f"Stopped. {rounds} of {rounds_of(config)} rounds are kept; go on with:\n"
        f"  spo discover {config.problem} --resume {path}"
    )


def utility(value: float | None) -> str:
    return "none" if value is None or math.isnan(value) else f"{value:.4f}"


def duration(seconds: float) -> str:
    """1:05:09, or 5:09 below an hour."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


# --- time left ------------------------------------------------------------------------------------


class Clock:
    """Time left, from the pairs played in this session; `now` returns seconds."""

    def __init__(self, rounds: int, now: Callable[[], float] = time.monotonic):
        self._rounds = rounds
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

    def finished(self) -> None:
        self._finished.append(self._played + self._total)
        self._played = self._total = self._done = 0

    def left(self) -> float | None:
        """Seconds; None before the first pair."""
        played = sum(self._finished) + self._played + self._done
        if not played:
            return None
        here = self._played + self._total
        usual = sum(self._finished) / len(self._finished) if self._finished else here
        running = 0.0 if not here else max(usual - self._played - self._done, 0.0)
        to_come = self._rounds - self._round
        return (self._now() - self._start) / played * (running + to_come * usual)


# --- the display ----------------------------------------------------------------------------------


class Display(Observer):
    """Shows a run on a console and writes its lines to a log; a context manager."""

    def __init__(
        self,
        config: Settings,
        log: Callable[[str], None],
        console: Console | None = None,
        named: Callable[[Program], str] = lambda program: "",
    ):
        """named: the names of programs in the run."""
        self._rounds = rounds_of(config)
        self._log = log
        self._named = named
        self._console = console or Console(highlight=False, soft_wrap=True)
        self._clock = Clock(self._rounds)
        self._stage = ""
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._spent: dict[str, float] = {}
        self._spent_in_all: dict[str, float] = {}
        self._began = time.monotonic()

    def __enter__(self) -> "Display":
        if self._console.is_terminal and not self._console.quiet:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=30),
                TextColumn("{task.completed:.0f}/{task.total:.0f}"),
                TextColumn("{task.fields[left]}"),
                console=self._console,
                transient=True,
            )
            self._task = self._bar.add_task("starting", total=1, left="")
            self._bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def say(self, line: str) -> None:
        """A line for the person and the log."""
        self._console.print(line, markup=False)
        self.note(line)

    def note(self, line: str) -> None:
        """A line for the log."""
        self._log(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}")

    def stage(self, number: int, name: str, total: int) -> None:
        self._stage = name
        self._clock.stage(number, total if name in PLAYED else 0)
        self._show(
            description=f"round {number}/{self._rounds}  {STAGES.get(name, name)}",
            total=max(total, 1),
            completed=0,
            left=self._left(),
        )
        self.note(f"round {number} {STAGES.get(name, name)} {total or ''}".rstrip())

    def advance(self, done: int) -> None:
        if self._stage in PLAYED:
            self._clock.advance(done)
        self._show(completed=done, left=self._left())

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
        names = "".join(f" {name}" for name in map(self._named, pair) if name)
        self.say(round_line(done, self._rounds, self._clock.left(), self._spent, names))
        spent = self.seconds()
        now = time.monotonic()
        self.note(spent_line(f"round {done.number}", spent))
        for name, seconds in spent.items():
            self._spent_in_all[name] = self._spent_in_all.get(name, 0.0) + seconds
        self._began, self._spent = now, {}
        if line := failure_line(done):
            self.note(line)
        if line := fault_line(done):
            self.say(line)

    def seconds(self) -> dict[str, float]:
        """Wall-clock seconds of the running round by kind of work, and in all."""
        return {"all": time.monotonic() - self._began, **self._spent}

    def ended(self) -> None:
        """Log where the time of this session's rounds went."""
        if self._spent_in_all:
            self.note(spent_line("these rounds", self._spent_in_all))

    def _left(self) -> str:
        left = self._clock.left()
        return "" if left is None else f"left {duration(left)}"

    def _show(self, **fields: object) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, **fields)  # type: ignore[arg-type]
