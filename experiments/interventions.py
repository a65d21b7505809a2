"""Figure 2 (b1): the loss of a pair when it is shown another LNS state than the true one.

    python experiments/interventions.py
    python experiments/interventions.py --pair docs/pairs/tsp-standard.py --group uniform-100

Only the signal is changed (Appendix E): it is fixed at 0, 5 or 10; shuffled, a permutation of the
sequence that the same rollout saw unmodified; or inverted, 30 below ten and 0 from ten on. A pair
that is shown another state than the paper's (--state) sees always the first, the middle or the last
value that the same rollout saw unmodified; all of them shuffled; or all from the last to the first.
Instances, starts and random streams stay the same, so differences are per rollout: the change of
the final gap in percentage points, as the mean over instances of their means over rollouts, with a
95% interval over instances. (The paper resamples instance-seed pairs, as if rollouts of one
instance were independent.) Above zero: the pair is worse without the true state.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common import cli, figures
from common.contenders import SPO
from common.evaluated import Evaluated, evaluate_pair, load_group, mean_of_known, pairs_of
from common.tables import interval
from spo_jax.envs.problem import Instance
from spo_jax.envs.run.observation import INVERTED, Showing, fixed, given, shown_with
from spo_jax.envs.run.rollouts import values_of
from spo_jax.envs.run.states import HIDDEN_STATE, STAGNATION
from spo_jax.errors import InputError
from spo_jax.runs.pairs import resolve
from spo_jax.seeding import numpy_rng

FIXED = (0, 5, 10)


@dataclass(frozen=True, eq=False)
class Effect:
    """An intervention. differences: [I, S] percentage points, NaN where either rollout failed."""

    name: str
    differences: np.ndarray

    def interval(self) -> tuple[int, float, float, float]:
        """Instances with a difference, the mean of their means, and its interval over instances."""
        return interval(mean_of_known(self.differences))


def run(args: argparse.Namespace) -> None:
    context = cli.context(args)
    instances = load_group(context, args.group)
    if args.pair:
        name, (_, pair, config) = Path(args.pair).stem, resolve(args.pair, context.problem)
    else:
        name, pair, config = pairs_of(SPO, context)[0]
    state = config.generator.state
    if state == HIDDEN_STATE:
        raise InputError(f"{name} was discovered without the LNS state: there is none to change")

    def evaluated(what: str, shown: Showing) -> Evaluated:
        who = f"{name}, {what}"
        return evaluate_pair(pair, config, context, instances, who=who, shown=shown)

    base = evaluated("unmodified", shown_with(state))
    changed = (
        interventions(instances, base.state)
        if state == STAGNATION
        else interventions_on(state, instances, base.shown)
    )
    effects = [
        Effect(what, evaluated(what, shown).gaps - base.gaps) for what, shown in changed.items()
    ]
    rows = [
        (each.name, instances[i].name, s, base.gaps[i, s], each.differences[i, s])
        for each in effects
        for i, s in np.ndindex(each.differences.shape)
    ]
    columns = ("intervention", "instance", "seed", "unmodified_gap_percent", "difference_pp")
    means = [
        "{0} {2:+.3f} ({3:+.3f} to {4:+.3f})".format(each.name, *each.interval())
        for each in effects
    ]
    _, mean, low, high = interval(base.by_instance)
    lost = [f"{e.name} {np.isnan(e.differences).sum()}" for e in effects]
    caption = (
        f"State interventions on the pair {name}: mean paired increase of the final gap in "
        f"percentage points on {len(instances)} instances ({args.problem} {args.group}), with 95% "
        f"intervals over instances; dots are rollouts. Unmodified: {mean:.3f}% ({low:.3f} to "
        f"{high:.3f}). {'; '.join(means)}. Failed: {', '.join(lost)}. {context.summary}"
    )
    stem = f"{context.out}/interventions-{args.problem}-{args.group}-{name}"
    figures.publish(draw(effects), stem, caption, rows, columns)


def interventions(instances: Sequence[Instance], state: np.ndarray) -> Mapping[str, Showing]:
    """What is shown in each, in the order of Appendix E. state: [I, S, T], as it was observed."""
    shuffled = {
        (instance.digest, s): given(permuted(state[i, s], instance.digest, s))
        for i, instance in enumerate(instances)
        for s in range(state.shape[1])
    }
    found: dict[str, Showing] = {f"fixed {k}": fixed(k) for k in FIXED}
    return {**found, "shuffled": shuffled, "inverted": INVERTED}


def interventions_on(
    state: str, instances: Sequence[Instance], shown: np.ndarray
) -> Mapping[str, Showing]:
    """Those on another state than z_t. shown: [I, S, T, K], its parts as they were observed."""
    steps = shown.shape[2]
    orders: Mapping[str, Callable[[str, int], np.ndarray]] = {
        "first": lambda digest, s: np.zeros(steps, int),
        "middle": lambda digest, s: np.full(steps, steps // 2),
        "last": lambda digest, s: np.full(steps, steps - 1),
        "shuffled": lambda digest, s: order_of(steps, digest, s),
        "reversed": lambda digest, s: np.arange(steps)[::-1],
    }
    known = np.nan_to_num(shown)  # a failed rollout is left out anyway
    return {
        what: {
            (each.digest, s): given(values_of(known[i, s, order(each.digest, s)]), state)
            for i, each in enumerate(instances)
            for s in range(shown.shape[1])
        }
        for what, order in orders.items()
    }


def order_of(steps: int, digest: str, seed: int) -> np.ndarray:
    """A permutation of a rollout's steps, its own for every instance and seed."""
    return numpy_rng("shuffled states", digest, seed).permutation(steps)


def permuted(states: np.ndarray, digest: str, seed: int) -> list[int]:
    """A permutation of a rollout's states, its own for every instance and seed; zeros for a failed
    rollout, which is left out anyway.
    """
    return np.maximum(states, 0)[order_of(len(states), digest, seed)].tolist()


def draw(effects: Sequence[Effect]) -> Any:
    figure, panels = figures.new(figures.COLUMN, 2.4)
    axes = panels[0, 0]
    axes.axhline(0, color=figures.MUTED, linewidth=0.8, zorder=1.5)
    for k, each in enumerate(effects):
        _, mean, low, high = each.interval()
        values = each.differences[np.isfinite(each.differences)]
        aside = k + 0.36 * (numpy_rng("jitter", k).random(values.size) - 0.5)
        axes.scatter(aside, values, s=5, color="#93A1AD", linewidths=0, zorder=2)
        axes.bar(k, mean, width=0.62, color=SPO.colour, alpha=0.25, linewidth=0, zorder=1)
        axes.plot([k, k], [low, high], color=SPO.colour, linewidth=1.8, zorder=3)
        axes.plot(k, mean, "o", color=SPO.colour, markersize=4.5, zorder=4)
    names = [f"{each.name}\n{each.interval()[1]:+.2f}" for each in effects]
    axes.set_xticks(range(len(effects)), [name.replace("-", "\u2212") for name in names])
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="x", visible=False)
    axes.set_ylabel("increase of the final gap (pp)")
    return figure


def main() -> int:
    parser = cli.parser(__doc__, group="uniform-100")
    parser.add_argument("--pair", metavar="PATH", help="a pair file or a run folder")
    return cli.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
