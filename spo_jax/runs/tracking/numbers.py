"""The metrics that trackers get of a run, from its tables."""

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from spo_jax import __version__
from spo_jax.runs.run import Run
from spo_jax.search.rounds import RESPONSE

LAST = ("validation", "fresh")  # the stages behind the last round


def numbers(run: Run) -> list[dict[str, float]]:
    """[K] the numbers of each round by name, without those that are not known.

    utility/: J. gap/: per cent. valid/: shares of answers. count/, failures/: of the round. total/:
    of all rounds so far. seconds/: wall-clock, by kind of work. The others are `Run.metrics`.
    """
    utilities: dict[int, list[float]] = defaultdict(list)
    for pair in run.pairs:
        if pair.kind == RESPONSE and not math.isnan(pair.utility):
            utilities[pair.round].append(pair.utility)
    failed: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for failure in run.failures:
        failed[failure.round][failure.status] += 1
    seconds: dict[int, dict[str, float]] = defaultdict(dict)
    for timing in run.timings:
        if timing.stage not in LAST:
            seconds[timing.round][timing.stage] = timing.seconds
    found = []
    for counts, best, gap in zip(run.counts, run.best_by_round, run.gaps, strict=True):
        k = counts.round
        answers = counts.destroy_answers + counts.repair_answers
        metrics = {
            "round": k,
            "utility/best": best.utility,
            "utility/top": counts.top,
            "utility/decile": np.quantile(utilities[k], 0.9) if utilities[k] else math.nan,
            "utility/median": counts.median,
            "gap/best": gap.best,
            "gap/top": gap.top,
            "gap/decile": gap.decile,
            "gap/median": gap.median,
            "valid/destroys": _share(counts.valid_destroys, counts.destroy_answers),
            "valid/repairs": _share(counts.valid_repairs, counts.repair_answers),
            "valid/all": _share(counts.valid_destroys + counts.valid_repairs, answers),
            "count/answers": answers,
            "count/pairs": counts.pairs,
            "count/known_pairs": counts.reused,
            "total/answers": best.answers,
            "total/pairs": best.evaluations,
            "total/seconds": best.seconds,
            "failures/all": sum(failed[k].values()),
            **{f"failures/{status}": many for status, many in sorted(failed[k].items())},
            **{f"seconds/{stage}": spent for stage, spent in seconds[k].items()},
            **{name: values[k - 1] for name, values in run.metrics.items()},
        }
        found.append(_known(metrics.items()))
    return found


def finals(run: Run) -> dict[str, float]:
    """The numbers of the run's pair when the run is over, without those that are not known."""
    best = run.best
    if best is None:
        return {}
    spent = {t.stage: t.seconds for t in run.timings if t.stage in LAST}
    metrics = {
        "final/utility": best.utility,
        "final/gap": run.gap(best.pair),
        "final/validated_utility": best.validation,
        "final/validated_gap": run.validated_gap(best),
        "final/fresh_utility": best.fresh,
        "final/over_promise": run.finals.over_promise,
        **{f"seconds/{stage}": seconds for stage, seconds in spent.items()},
    }
    return _known(metrics.items())


def settings(run: Run) -> dict[str, Any]:
    """The run's settings by their flat names, with its preset and the version of this package."""
    return {"spo_jax": __version__, "preset": run.preset, **run.config.flat()}


def _known(items: Iterable[tuple[str, Any]]) -> dict[str, float]:
    numbers = ((name, math.nan if value is None else float(value)) for name, value in items)
    return {name: value for name, value in numbers if math.isfinite(value)}


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan
