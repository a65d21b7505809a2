"""The lines of a run: what is printed of it, and written to its log."""

import math
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from spo_jax.config import Settings
from spo_jax.constants import SPO
from spo_jax.envs.files.reading import Reading
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.evaluator import RAY
from spo_jax.envs.run.rollouts import Status
from spo_jax.program import DESTROY_REPAIR, ROLES, Game, Pair
from spo_jax.runs.gaps import SEEN, RoundGaps
from spo_jax.runs.records import FailureRecord
from spo_jax.runs.report.text import visible
from spo_jax.runs.run import Run
from spo_jax.search.method import rounds_of
from spo_jax.search.rounds import Best, Round
from spo_jax.search.utility import meaning
from spo_jax.search.validation import Finals

NOT_MEASURED = Finals()
NO_GAPS = RoundGaps()
BARS = "▁▂▃▄▅▆▇█"
NO_TIME: Mapping[str, float] = {}
WRITTEN = (*ROLES, "reflection")
MANY, MOST_LEVEL = 10, 0.9  # pairs of a round, and the share of them at its highest J


def opening(config: Settings, preset: str, path: Path, first: int) -> str:
    """The first line of a run, or of one that goes on."""
    rounds = rounds_of(config)
    of = "" if rounds is None else f" of {rounds}"
    begin = "Discovering" if first == 1 else f"Going on from round {first}{of}:"
    if rounds is not None and first > rounds:
        begin = "Going on with the validation of"
    how = "" if config.search.method == SPO else f"method {config.search.method}, "
    ray = config.evaluation.evaluator == RAY  # whose nodes say how many workers they have
    who = "evaluator ray" if ray else f"workers {config.workers}"
    game = get_problem(config.problem).interface.game
    kind = f"{game.leader.noun}-{game.follower.noun}"
    return (
        f"{begin} {kind} pairs for {config.problem} "
        f"({how}preset {preset}, seed {config.seed}, {who}) in {path}"
    )


def budget(minutes: float) -> str:
    """What a run with a budget of time says first."""
    return (
        f"As many rounds as fit into {minutes:g} minutes, with the validation: how many these are, "
        "and so the result, depends on the speed of this machine and what else it does"
    )


def timed(utility: str) -> str:
    """What a run says first whose utility reads how long programs took."""
    return (
        f"The utility {utility} reads seconds, which differ from run to run, so this run cannot be "
        "repeated; --work, which ends rollouts after equal work, and a utility of costs or counts "
        "of steps give a run that can"
    )


def budgeted(rounds: int, used: float, held: float) -> str:
    """What it says when its rounds are over. used: seconds so far. held: for the validation."""
    return (
        f"{rounds} round{'s' * (rounds != 1)} in {duration(used)}, about {duration(held)} for the "
        f"validation; --rounds {rounds} in place of --minutes makes the same run again"
    )


def round_line(
    done: Round,
    rounds: int | None,
    left: float | None,
    spent: Mapping[str, float] = NO_TIME,
    names: str = "",
    gaps: RoundGaps = NO_GAPS,
    drawn: str = "",
    copies: tuple[int, int] = (0, 0),
) -> str:
    """One finished round in a line.

    rounds: of the run, None where that is not known. spent: its seconds by kind of work. names: the
    best pair's. gaps: the gaps after it; without any the line tells J. drawn: a picture of the
    medians. copies: how many programs repeat earlier ones of the run, and of how many.
    """
    counts = done.counts
    answers = counts.destroy_answers + counts.repair_answers
    valid = counts.valid_destroys + counts.valid_repairs
    parts = [
        f"round {done.number}"
        if rounds is None
        else f"round {done.number:>{len(str(rounds))}}/{rounds}",
        quality(done, gaps, drawn),
        f"pairs {counts.pairs:>4}",
        f"valid {valid / answers if answers else 0:>4.0%}",
        *([f"copies {copies[0] / copies[1]:.0%}"] if copies[0] else []),
        *([names] if names else []),
    ]
    tokens = _of_all(done.metrics, "tokens")
    if tokens and spent.get("sampling"):
        parts.append(f"{tokens / spent['sampling']:,.0f} tokens/s")
    if asked := _of_mends(done.metrics, "mend_asked"):
        parts.append(f"mended {_of_mends(done.metrics, 'mended'):.0f}/{asked:.0f}")
    lost, cost = (_of_all(done.metrics, name) for name in ("lost", "cost"))
    if lost:
        parts.append(f"lost {lost:.0f}")
    if cost:
        parts.append(f"cost {cost:,.4f}")
    if left is not None and (rounds is None or done.number < rounds):
        parts.append(f"left {duration(left)}")
    return "   ".join(parts)


def quality(done: Round, gaps: RoundGaps = NO_GAPS, drawn: str = "") -> str:
    """How good the best pair so far is and the median new pair: by their gaps, else by J."""
    if math.isnan(gaps.best) and math.isnan(gaps.median):
        best = utility(done.best.utility if done.best else None)
        return f"best J {best}   median J {utility(done.counts.median)}"
    best, middle = (f"{percent(value):>6}" for value in (gaps.best, gaps.median))
    return f"gap of the best {best}  median {middle}" + (f" {drawn}" if drawn else "")


def spark(values: Sequence[float]) -> str:
    """Values as bars, the highest of them full; a blank for NaN."""
    most = max((value for value in values if not math.isnan(value)), default=0.0)
    heights = [value / most if most > 0 else 0.0 for value in values]
    top = len(BARS) - 1
    return "".join(
        " " if math.isnan(value) else BARS[round(max(height, 0.0) * top)]
        for value, height in zip(values, heights, strict=True)
    )


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
    if asked := _of_mends(totals, "mend_asked"):
        done, tokens, cost = (
            _of_mends(totals, name) for name in ("mended", "mend_tokens", "mend_cost")
        )
        line += f"; of these {tokens:,.0f} completion tokens"
        line += f" and a cost of {cost:,.4f}" if cost else ""
        line += f" to mend {done:,.0f} of {asked:,.0f} answers"
    return line + (f", {uncounted:,.0f} answers without a count" if uncounted else "")


def _of_all(metrics: Mapping[str, float], name: str) -> float:
    """A metric's sum over all that a model wrote, to mend answers too."""
    first = sum(metrics.get(f"{what}/{name}", 0.0) for what in WRITTEN)
    return first + _of_mends(metrics, f"mend_{name}")


def _of_mends(metrics: Mapping[str, float], name: str) -> float:
    """A metric's sum over the roles whose answers go back."""
    return sum(metrics.get(f"{role}/{name}", 0.0) for role in ROLES)


def failure_line(done: Round) -> str:
    """What failed in a round, or ""."""
    tally = ", ".join(f"{count} {status}" for status, count in done.tally().items())
    return f"round {done.number} failures: {tally}" if tally else ""


def last_failure(done: Round, most: int = 60, game: Game = DESTROY_REPAIR) -> str:
    """The last failure of a round in at most `most` characters that can be seen, or "".

    game: of its programs.
    """
    if not done.failures:
        return ""
    last = done.failures[-1]
    text = visible(
        f"last failure: {game.named(last.subject)}, {last.status}: {game.told(last.reason)}"
    )
    return text if len(text) <= most else f"{text[: most - 1]}…"


def fault_line(done: Round) -> str:
    """The faults of this machine in a round, or ""."""
    faults = [f for f in done.failures if f.status == Status.HOST_FAULT.label]
    if not faults:
        return ""
    return (
        f"Warning: round {done.number}: {len(faults)} programs or pairs could not be judged, "
        f"by a fault of this machine ({faults[0].reason}); they count neither for nor against"
    )


def ceiling_line(done: Round) -> str:
    """That most pairs of a round have the highest J of it, which then teaches nothing; or ""."""
    known = [each.utility for each in done.pairs if not math.isnan(each.utility)]
    level = sum(math.isclose(each, max(known), abs_tol=1e-12) for each in known)
    if len(known) < MANY or level < MOST_LEVEL * len(known):
        return ""
    return (
        f"Warning: round {done.number}: {level} of {len(known)} pairs have the same J, the highest,"
        " so J hardly tells them apart: use larger instances (--size or --on)"
    )


def commonest(failures: Sequence[FailureRecord], game: Game = DESTROY_REPAIR) -> str:
    """The most frequent reason of some failures. game: of their programs."""
    tally = Counter((each.status, game.told(each.reason)) for each in failures)
    [((status, reason), count)] = tally.most_common(1)
    return visible(f"The most frequent reason, {count} of {len(failures)}: {status}: {reason}")


def closing(
    best: Best | None,
    config: Settings,
    path: Path,
    pair: Path | str,
    finals: Finals = NOT_MEASURED,
    gap: str = "",
    validated_gap: Callable[[Best], float] = lambda each: math.nan,
    names: Callable[[Pair], Sequence[str]] = lambda pair: (),
    importable: bool = True,
    failed: bool = True,
    maximise: bool = False,
) -> list[str]:
    """The result of a run, and what to do next.

    pair: its file, or why there is none. gap: its gap in training, in words. validated_gap: of a
    finalist, in validation. names: of a pair's programs in the run. importable: whether commands
    find the problem. failed: whether a program or pair did. maximise: as `Problem.maximise`.
    """
    if best is None:
        why = f"; the failures table of {path}/spo.sqlite says why" if failed else ""
        return [f"No valid pair was found{why}."]
    validated = config.search.select == "validation" and best.validation is not None
    how = "Validated best," if validated else "Best"
    return [
        f"{how} J {utility(best.utility)} (round {best.round}){gap and f', {gap}'}: {pair}",
        *choice(best, finals, validated_gap),
        *refused(finals, config.search.select, names),
        f"J is {meaning(config.evaluation.utility, config.evaluation.start, maximise)}.",
        *(following(config, path) if importable else []),
    ]


def following(config: Settings, path: Path) -> list[str]:
    """What to do with the pair of a run: commands that its problem has."""
    problem, run = get_problem(config.problem), shlex.quote(str(path))
    on = "--on " + (shlex.join(config.evaluation.on) or f"uniform:{config.evaluation.size}x8")
    read_as = reading_options(config)
    on += read_as
    usable = [name for name, each in problem.baselines.items() if not each.needs]
    baseline = next((name for name in ("alns", *usable) if name in usable), None)
    classical = "" if baseline is None else ", and from classical operators,"
    measured = problem.references or problem.offers("solve_reference") or config.evaluation.on
    far = "How far the pair is from the best known costs" if measured else "What the pair costs"
    lines = [
        f"{far}{classical if measured else ''} on the same instances:",
        f"  spo evaluate {run} {on}",
    ]
    if baseline is not None:
        lines.append(f"  spo baseline {baseline} --problem {config.problem} {on}")
    if problem.suffixes:
        tables = config.evaluation.capacity is not None  # which CSV files need, and no others take
        suffix = ".csv" if tables else problem.suffixes[0]
        lines += [
            "To solve an instance with it:",
            f"  spo solve FILE{suffix} --pair {run}{read_as}",
        ]
    return lines


def refused(
    finals: Finals, select: str, names: Callable[[Pair], Sequence[str]] = lambda pair: ()
) -> list[str]:
    """Which pair cannot be the run's, and why. names: of its programs.

    Of several the one with the highest J; how many more is said.
    """
    found = finals.refused(select)
    if not found:
        return []
    first, reason = found[0]
    who = " with ".join(filter(None, names(first.pair))) or f"of round {first.round}"
    more = len(found) - 1
    others = f"; and {more} more finalist{'s' * (more > 1)}" if more else ""
    return [f"The pair {who} (J {utility(first.utility)}) is refused: {reason}{others}."]


def reading_options(config: Settings) -> str:
    """How a run reads instance files, as options of a command; "" for as they are."""
    evaluation = config.evaluation
    given = Reading(evaluation.distances, evaluation.capacity, evaluation.vehicles).given
    return "".join(f" --{name} {str(value).removesuffix('.0')}" for name, value in given.items())


def gap_in_words(run: Run) -> str:
    """The gap of a run's pair in training and validation, as far as they are known."""
    if run.best is None or math.isnan(gap := run.gap(run.best.pair)):
        return ""
    own = [each.source == SEEN for each in run.references]
    how = "" if all(own) else "partly "
    to = f" {how}to the best costs of this run" if any(own) else ""
    there = run.validated_gap(run.best)
    validated = "" if math.isnan(there) else f", {percent(there)} in validation"
    return f"gap {percent(gap)}{to}{validated}"


def choice(
    best: Best, finals: Finals, validated_gap: Callable[[Best], float] = lambda each: math.nan
) -> list[str]:
    """The chosen pair and the one with the highest J, and how much the latter over-promised.

    validated_gap: of a finalist, in validation.
    """
    highest = finals.highest
    if highest is None:
        return []
    rows = {"chosen": best} if best == highest else {"chosen": best, "highest J": highest}
    gaps = {name: validated_gap(each) for name, each in rows.items()}
    known = not all(map(math.isnan, gaps.values()))
    lines = [f"{'':13}{'J found':>9}{'J fresh':>9}{'validated':>11}{'gap' if known else '':>8}"]
    lines = [line.rstrip() for line in lines]
    for name, each in rows.items():
        numbers = f"{utility(each.fresh):>9}{utility(each.validation):>11}"
        numbers += f"{percent(gaps[name]):>8}" if known else ""
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
    planned = rounds_of(config)
    of = "" if planned is None else f" of {planned}"
    return (
        f"Stopped. {rounds}{of} rounds are kept; go on with:\n"
        f"  spo discover {config.problem} --resume {shlex.quote(str(path))}"
    )


def utility(value: float | None) -> str:
    return "none" if value is None or math.isnan(value) else f"{value:.4f}"


def percent(gap: float) -> str:
    return "none" if math.isnan(gap) else f"{gap:.2f}%"


def duration(seconds: float) -> str:
    """1:05:09, or 5:09 below an hour."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
