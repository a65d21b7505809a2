"""The page of learning: the update's numbers by round, its advantages, and one group of answers."""

import math
from collections import defaultdict
from typing import Any

import numpy as np

from spo_jax.program import ROLES
from spo_jax.runs.report.figures import Figures
from spo_jax.runs.report.text import number
from spo_jax.runs.run import Run

# metric: title. Others of the update follow in a table.
DRAWN = {
    "gradient_norm": "Norm of the gradient, before it is clipped",
    "ratio_mean": "Mean probability ratio",
    "ratio_std": "Standard deviation of the ratio",
    "drift_mean": "Drift of the sampler from the trainer, nats per token",
    "kl": "Divergence from the sampling policy",
    "entropy": "Entropy of the policy, nats per sampled token",
    "effective": "Effective share of samples, weighted by trainer over sampler",
    "clipped": "Share of clipped tokens",
}
WRITTEN = ("tokens", "prompt_tokens", "cost", "lost", "uncounted")  # not of the update


def page(run: Run, figures: Figures) -> dict[str, Any]:
    """Pictures of metrics, the spread of advantages, the other metrics, and groups of answers."""
    learned = {
        name: values
        for name, values in run.metrics.items()
        if np.isfinite(values).any() and name.rpartition("/")[2] not in WRITTEN
    }
    advantages = np.array([each.advantage for each in run.samples], float)
    if not learned and not np.isfinite(advantages).any():
        settings = run.config
        return {
            "missing": f"This run learns nothing: its update is {settings.learning.update} and "
            f"its programs come from the generator {settings.generator.name}."
        }
    rounds = np.arange(1, run.rounds + 1)
    by_metric: dict[str, dict[str, np.ndarray]] = defaultdict(dict)
    for name, values in learned.items():
        role, _, metric = name.rpartition("/")
        by_metric[metric][run.game.named(role) or metric] = values
    pictures = []
    for metric, title in DRAWN.items():
        if metric in by_metric and _moves(by_metric[metric]):
            series = list(by_metric.pop(metric).items())
            pictures.append((title, figures.lines(rounds, series, f"{title}, by round")))
    if (spread := _spread(run, rounds, figures)) is not None:
        pictures.append(("Advantages: size by round (mean of |A|)", spread))
    rows = [
        [f"{role}/{metric}" if role != metric else metric, *(_plain(v) for v in values[-8:])]
        for metric, roles in sorted(by_metric.items())
        for role, values in roles.items()
    ]
    heads = ["metric", *(f"round {k}" for k in rounds[-8:])]
    return {"pictures": pictures, "heads": heads, "rows": rows, "groups": groups(run)}


def groups(run: Run) -> list[dict[str, Any]]:
    """Of the last round, for each role the group whose credits differ most: what GRPO saw."""
    found: dict[tuple[str, int], list[Any]] = defaultdict(list)
    last = max((each.round for each in run.samples), default=0)
    for each in run.samples:
        if each.round == last:
            found[each.role, each.prompt].append(each)
    shown = []
    for role in ROLES:
        mine = {prompt: group for (of, prompt), group in found.items() if of == role}
        if not mine:
            continue
        prompt = max(mine, key=lambda key: (_range(mine[key]), -key))
        asked = next(
            (p for p in run.prompts if (p.round, p.role, p.number) == (last, role, prompt)), None
        )
        ordered = sorted(mine[prompt], key=lambda e: (_last(e.credit), e.place))
        answers = [
            (
                each,
                number(each.credit),
                number(each.advantage, 3),
                run[each.program].strategy if each.program in run.index else "",
            )
            for each in ordered
        ]
        form = asked.form if asked is not None else "unknown"
        shown.append({"role": run.game.named(role), "round": last, "prompt": prompt, "form": form,
                      "answers": answers})  # fmt: skip
    return shown


def _spread(run: Run, rounds: np.ndarray, figures: Figures) -> Any:
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    for each in run.samples:
        if math.isfinite(each.advantage):
            found[each.role, each.round].append(abs(each.advantage))
    roles = [role for role in ROLES if any(key[0] == role for key in found)]
    if not roles:
        return None
    series = [
        (run.game.named(role),
         np.array([np.mean(found[role, int(k)]) if found[role, int(k)] else math.nan
                   for k in rounds]))
        for role in roles
    ]  # fmt: skip
    return figures.lines(rounds, series, "Mean absolute advantage by round and role")


def _moves(roles: dict[str, np.ndarray]) -> bool:
    """Whether a picture says more than a number would."""
    known = np.concatenate([values[np.isfinite(values)] for values in roles.values()])
    return len(known) > 1 and bool(np.ptp(known) > 1e-9 * np.abs(known).max())


def _range(group: list[Any]) -> float:
    known = [each.credit for each in group if math.isfinite(each.credit)]
    return max(known) - min(known) if known else -1.0


def _last(credit: float) -> float:
    return math.inf if math.isnan(credit) else -credit


def _plain(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4g}".replace("-", "−")
