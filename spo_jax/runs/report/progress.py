"""The page on how the run went, round by round."""

import math
from collections import Counter, defaultdict
from typing import Any

import numpy as np
from markupsafe import Markup

from spo_jax.envs.run.rollouts import Status
from spo_jax.program import ROLES
from spo_jax.runs.display.lines import refused
from spo_jax.runs.report.figures import Figures
from spo_jax.runs.report.text import number
from spo_jax.runs.run import Run

# What `timings` has besides the whole round. They overlap.
STAGES = (
    "start", "sampling", "mending", "trial", "response", "credit", "cross-play",
    "update", "validation", "fresh",
)  # fmt: skip
WRITTEN = (*ROLES, "reflection")


def page(run: Run, figures: Figures) -> dict[str, Any]:
    """Pictures and the table of rounds; `missing`: a sentence for each part that is not there."""
    if not run.rounds:
        return {"missing": ["No round of this run is over yet."]}
    rounds = np.arange(1, run.rounds + 1)
    missing: list[str] = []
    best = run.best_by_round.column("utility").astype(float)
    median = np.array([_nan(each.median) for each in run.counts])
    top = np.array([_nan(each.top) for each in run.counts])
    tenth = _deciles(run)
    gaps = {
        name: run.gaps.column(field).astype(float)
        for name, field in (("best so far", "best"), ("best of the round", "top"),
                            ("top decile", "decile"), ("median", "median"))
    }  # fmt: skip
    pictures = []
    if np.isfinite(gaps["median"]).any():
        pictures.append(
            ("Gap in per cent, a mean over the training instances",
             figures.lines(rounds, list(gaps.items()), "Gap by round: best so far and new pairs"))
        )  # fmt: skip
    else:
        missing.append("There is no curve of gaps, because it is not known what the pairs cost.")
    if np.isfinite(best).any():
        series = [("best so far", best), ("best of the round", top), ("top decile", tenth),
                  ("median", median)]  # fmt: skip
        pictures.append(
            (f"J, {run.meaning}",
             figures.lines(rounds, series, "J by round: best so far, top decile and median"))
        )  # fmt: skip
    else:
        missing.append("There is no curve of J, because no pair has been valid.")
    leads, follows = run.game.leader.plural, run.game.follower.plural
    share = {
        role: np.array([_share(valid, asked) for valid, asked in counted])
        for role, counted in (
            (leads, [(c.valid_destroys, c.destroy_answers) for c in run.counts]),
            (follows, [(c.valid_repairs, c.repair_answers) for c in run.counts]),
        )
    }
    about = f"Share of valid answers by round, for {leads} and {follows}"
    series = list(share.items())
    pictures.append(("Valid answers", figures.lines(rounds, series, about, percent=True)))
    if run.probes:
        pictures.append(("What the policies write is worth (J, by a probe)", _probed(run, figures)))
    seconds = _seconds(run)
    parts = {name: seconds[name] for name in STAGES if np.nansum(seconds.get(name, 0.0)) > 0}
    if parts:
        drawn = figures.bars(rounds, parts, "Seconds by round and kind of work", "seconds")
        pictures.append(("Where the time went (kinds of work overlap)", drawn))
    else:
        missing.append("There is no picture of time, because the run kept no timings.")
    tokens, cost = (_written(run, what) for what in ("tokens", "cost"))
    if tokens:
        drawn = figures.bars(rounds, tokens, "Tokens written by round and role", "tokens")
        pictures.append(("Tokens that the model wrote", drawn))
    else:
        missing.append(
            f"There are no tokens to count, because the generator is {run.config.generator.name}."
        )
    if any(np.nansum(each) > 0 for each in cost.values()):
        drawn = figures.bars(rounds, cost, "Cost of the answers by round and role", "cost")
        pictures.append(("What the endpoint charged", drawn))
    rows = []
    for k, counts in enumerate(run.counts):
        spent = sum(float(np.nan_to_num(each[k])) for each in tokens.values())
        rows.append(
            [
                str(k + 1), *(number(gaps[name][k], 2) for name in ("best so far", "median")),
                number(best[k]), number(tenth[k]), number(median[k]),
                *(_percent(share[role][k]) for role in share), f"{counts.pairs:,}",
                f"{counts.reused:,}", number(seconds.get("all", np.full(len(rounds), math.nan))[k],
                1), f"{spent:,.0f}" if spent else "–",
            ]
        )  # fmt: skip
    heads = ("round", "gap, best", "gap, median", "best J", "top decile", "median",
             f"valid {leads}", f"valid {follows}", "pairs", "known before", "seconds",
             "tokens")  # fmt: skip
    return {
        "pictures": pictures,
        "missing": missing,
        "mends": _mends(run),
        "references": _references(run),
        "heads": heads,
        "rows": rows,
        "finals": _finals(run),
        "refused": refused(run.finals, run.config.search.select, run.names),
    }


def _probed(run: Run, figures: Figures) -> Markup:
    """Of destroys with their best response among frozen repairs, and of repairs; round 0 is before
    the first update.
    """
    rounds = sorted({each.round for each in run.probes})
    worth = {(each.round, each.role): each.worth for each in run.probes}
    series = [
        (run.game.side(role).plural, np.array([worth.get((k, role), math.nan) for k in rounds]))
        for role in ROLES
    ]
    return figures.lines(np.array(rounds), series, "Worth of the policies' programs by round")


def _deciles(run: Run) -> np.ndarray:
    """[K] the utility that a tenth of a round's valid responses reach."""
    found: dict[int, list[float]] = defaultdict(list)
    for pair in run.pairs:
        if pair.kind == "response" and not math.isnan(pair.utility):
            found[pair.round].append(pair.utility)
    rounds = range(1, run.rounds + 1)
    return np.array([np.quantile(found[k], 0.9) if found[k] else math.nan for k in rounds])


def _seconds(run: Run) -> dict[str, np.ndarray]:
    """[K] by stage, NaN where it is not known."""
    found = {each.stage: np.full(run.rounds, math.nan) for each in run.timings}
    for each in run.timings:
        if each.round <= run.rounds:
            found[each.stage][each.round - 1] = each.seconds
    return found


def _written(run: Run, what: str) -> dict[str, np.ndarray]:
    """[K] a metric of what a model wrote, by role; roles without it are left out."""
    names = {run.game.named(role): f"{role}/{what}" for role in WRITTEN}
    names |= {f"{run.game.named(role)}, mending": f"{role}/mend_{what}" for role in ROLES}
    return {role: run.metrics[name] for role, name in names.items() if name in run.metrics}


def _mends(run: Run) -> list[str]:
    """A sentence on the answers that were sent back, if any were."""
    if not run.mends:
        return []
    wrong = Counter(each.wrong for each in run.mends)
    good = Counter(each.wrong for each in run.mends if each.status == Status.OK.label)
    kinds = ", ".join(f"{name} {good[name]:,} of {wrong[name]:,}" for name in sorted(wrong))
    return [
        f"Answers that were nearly right went back to the model, and {good.total():,} of "
        f"{wrong.total():,} further answers took their places ({kinds})."
    ]


def _references(run: Run) -> list[list[str]]:
    """What gaps are measured from: instance, size, cost, whether it is proven, source."""
    return [
        [each.name, str(each.size), number(each.cost), "yes" if each.certified else "", each.source]
        for each in run.references
    ]


def _finals(run: Run) -> list[list[str]]:
    """The measured pairs: names, J, J on fresh instances, validation, gap there, what became of it.

    Of the controls the run's pair, where no finalist is it.
    """
    chosen = None if run.best is None else run.best.pair.digest
    out = {f.pair.digest for f, _ in run.finals.refused(run.config.search.select)}
    others = [each for each in run.finals.controls if each.pair.digest == chosen]
    rows = []
    for each in (*run.finals.finalists, *others):
        names, digest = run.names(each.pair), each.pair.digest
        measured = [number(each.utility), number(each.fresh), number(each.validation),
                    number(run.validated_gap(each), 2)]  # fmt: skip
        status = "the run's pair" if digest == chosen else "refused" if digest in out else ""
        rows.append([*names, str(each.round), *measured, status])
    return rows


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def _percent(share: float) -> str:
    return "–" if math.isnan(share) else f"{share:.0%}"


def _nan(value: float | None) -> float:
    return math.nan if value is None else value
