"""A study whose arms, conditions and predictions were written down before it ran.

    python experiments/registered.py experiments/registered/credit.toml --condition spoilt
    python experiments/registered.py experiments/registered/credit.toml --condition spoilt \
        --arms shared --seeds 1 --again --out runs/again

Each arm of the file discovers once with each seed; only what the arm names differs. Then the policy
of the last round is probed (experiments/policy_probe.py): what its destroys are worth with their
best response among frozen repairs, and what its repairs are worth. Finished runs and probes are
kept, so the same command goes on; machines share a study by --first-seed.

The rows of runs are added to FILE-CONDITION.csv beside the registered file, where those of
others are: so an arm of one's own, or more seeds, are seen with all others. --out keeps the runs
themselves. A row that is there is not run again; with --again it is, in an --out without that run,
and must come out equal but for CPU seconds. Rows of other settings are refused.

Printed: each arm minus the first one, paired by seed, on the registered outcome, with its 95%
Student t interval, the interquartile mean with a bootstrap interval, p after Holm's correction over
all arms of the condition, the least difference that as many seeds see in 80 of 100 studies, p of an
equivalence test, and what was predicted. FILE-CONDITION.png shows both, and the
performance profile of each arm.
"""

import argparse
import io
import json
import math
import sys
import tomllib
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import policy_probe
from common import cli, figures
from common.runs import discover_counted, spent_by
from common.tables import markdown, write_csv
from spo_jax import presets
from spo_jax.config import Settings
from spo_jax.envs.files.textfiles import write_atomically
from spo_jax.errors import InputError
from spo_jax.runs.run import Run
from spo_jax.search.lab.power import detectable, holm, interval, p_of
from spo_jax.seeding import numpy_rng

KEYS = ["arm", "seed"]
RESAMPLED = 10_000


@dataclass(frozen=True)
class Plan:
    """What was registered.

    arms, conditions: the settings that each changes, by name. outcome: the column that the
    prediction is of. predicted: by condition and arm, the least and the highest difference from the
    first arm. equivalence: a smaller difference is none. probe: of `policy_probe`.
    """

    preset: str
    problem: str
    seeds: int
    outcome: str
    equivalence: float
    settings: Mapping[str, Any]
    probe: Mapping[str, int]
    arms: Mapping[str, Mapping[str, Any]]
    conditions: Mapping[str, Mapping[str, Any]]
    predicted: Mapping[str, Mapping[str, tuple[float, float]]]

    @classmethod
    def read(cls, path: Path) -> "Plan":
        """Raises InputError for a file that is none."""
        try:
            found = tomllib.loads(path.read_text("utf-8"))
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path} is no registered study: {error}") from None
        names = [each.name for each in fields(cls)]
        if lacking := [name for name in names if name not in found]:
            raise InputError(f"{path} is no registered study: it lacks {', '.join(lacking)}")
        preset = str(path.parent / str(found["preset"]))  # named relative to the file
        return cls(**{name: found[name] for name in names} | {"preset": preset})


def own_settings(plan: Plan, condition: str, arm: str) -> dict[str, Any]:
    """Of an arm, above the preset's."""
    return {**plan.settings, **plan.conditions[condition], **plan.arms[arm]}


def terms_of(plan: Plan, condition: str, arm: str) -> str:
    """A digest of all that a row of an arm depends on, but for the seed.

    A setting that has its default is left out, so that rows outlive new settings; that of the
    workers is the machine's.
    """
    own = {**own_settings(plan, condition, arm), "seed": 0, "workers": 1}
    default = {**Settings().flat(), "workers": None}
    found = presets.settings(plan.problem, plan.preset, **own).flat()
    flat = {name: value for name, value in found.items() if value != default[name]}
    probe = {**plan.probe, "table": policy_probe.digest(table_of(plan).read_bytes())}
    return policy_probe.digest(json.dumps([flat, probe], sort_keys=True, default=str).encode())[:12]


def table_of(plan: Plan) -> Path:
    """The data set of the frozen partners."""
    return policy_probe.DATA / f"{plan.problem}-rounds-v1.npz"


def measured(run: Run, plan: Plan, terms: str, out: Path, workers: int | None) -> dict[str, Any]:
    """What a run came to: the worth of its last policies, its failures and what it found."""
    args = Namespace(**plan.probe, workers=workers)
    asked = {**plan.probe, "terms": terms, "run": run.path.name, "round": run.rounds}
    where = out / "probes" / f"{run.path.name}.json"
    kit = run.config.generator.kit != "none"
    frozen = policy_probe.frozen_of(table_of(plan), args.partners, kit)
    probes = policy_probe.probed_once(where, asked, run, run.rounds, frozen, args)
    row: dict[str, Any] = {}
    for each in probes:
        found = each.summary()
        row |= {f"{each.role}_{name}": found[name] for name in ("worth", "valid_ones", "failed")}
    asked_pairs = [pair for pair in run.pairs if pair.kind == "response"]
    row["pairs"] = len(asked_pairs)
    row["pairs_failed"] = float(np.mean([pair.status != "ok" for pair in asked_pairs]))
    row["best"] = run.best.utility if run.best else float("nan")
    return row


def differences(frame: pd.DataFrame, plan: Plan) -> dict[str, np.ndarray]:
    """The outcome of each arm minus that of the first one, of the seeds that both have: two, at
    least.
    """
    table = frame.pivot(index="seed", columns="arm", values=plan.outcome)
    first, *others = plan.arms
    both = [arm for arm in others if {first, arm} <= set(table)]
    found = {arm: (table[arm] - table[first]).dropna().to_numpy(float) for arm in both}
    return {arm: values for arm, values in found.items() if len(values) > 1}


def middle_half(values: np.ndarray) -> tuple[float, float, float]:
    """The interquartile mean with its 95% percentile bootstrap interval (Agarwal et al., 2021).

    The runs of one problem are one stratum. Fewer than eight are few for a bootstrap.
    """
    rng = numpy_rng("interquartile mean", len(values))
    drawn = values[rng.integers(len(values), size=(RESAMPLED, len(values)))]
    low, high = np.quantile(stats.trim_mean(drawn, 0.25, axis=1), (0.025, 0.975))
    return float(stats.trim_mean(values, 0.25)), float(low), float(high)


def profile(values: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """[T] the share of outcomes [N] that are at least so good as each of [T]; NaN never is."""
    return np.mean(values[:, None] >= thresholds, axis=0)


def not_equivalent(values: np.ndarray, bound: float) -> float:
    """p of two one-sided t tests that the mean is not within +-bound (Schuirmann, 1987)."""
    above = stats.ttest_1samp(values, -bound, alternative="greater").pvalue
    below = stats.ttest_1samp(values, bound, alternative="less").pvalue
    return float(max(above, below))


def compared(frame: pd.DataFrame, plan: Plan, condition: str) -> str:
    """Means by arm; then each arm minus the first one, beside its prediction."""
    found = differences(frame, plan)
    values_of_p = [p_of(d.mean(), d.std(ddof=1), len(d)) for d in found.values()]
    missing = [1.0] * (len(plan.arms) - 1 - len(found))  # tests of the family that are not done yet
    tested = holm([*values_of_p, *missing])[: len(found)]
    rows = []
    for (arm, values), p in zip(found.items(), tested, strict=True):
        mean, low, high = interval(values)
        middle, *ends = middle_half(values)
        predicted = plan.predicted.get(condition, {}).get(arm)
        within = predicted is not None and predicted[0] <= mean <= predicted[1]
        rows.append([
            arm, str(len(values)), f"{mean:+.4f} ({low:+.4f} to {high:+.4f})",
            f"{middle:+.4f} ({ends[0]:+.4f} to {ends[1]:+.4f})", f"{p:.3f}",
            f"{detectable(float(values.std(ddof=1)), len(values)):.4f}",
            f"{not_equivalent(values, plan.equivalence):.3f}",
            f"{predicted[0]:+.4f} to {predicted[1]:+.4f}" if predicted else "-",
            "yes" if within else "no" if predicted else "-",
        ])  # fmt: skip
    heads = ["arm", "seeds", f"{plan.outcome} - {next(iter(plan.arms))}", "interquartile mean",
             "p (Holm)", "least seen in 80 of 100", f"p of no more than {plan.equivalence:g}",
             "predicted", "mean within"]  # fmt: skip
    means = frame.groupby("arm", sort=False).mean(numeric_only=True).drop(columns="seed")
    lines = [[str(arm), *(f"{value:.4f}" for value in row)] for arm, row in means.iterrows()]
    return f"{markdown(['arm', *means.columns], lines)}\n\n{markdown(heads, rows)}\n"


def picture(frame: pd.DataFrame, plan: Plan, condition: str) -> bytes:
    """A PNG: what was predicted of each arm as a bar, and on it what was measured; below, which
    share of the runs of each arm reaches an outcome (a performance profile, Agarwal et al., 2021).
    """
    found = differences(frame, plan)
    figure, axes = figures.new(figures.WIDTH, 2.2 + 0.3 * len(plan.arms), 2)
    (panel,), (profiles,) = axes
    arms = list(plan.arms)[1:]
    outcomes = frame.groupby("arm")[plan.outcome]
    thresholds = np.linspace(frame[plan.outcome].min(), frame[plan.outcome].max(), 400)
    for arm in (arm for arm in plan.arms if arm in outcomes.groups):
        share = profile(outcomes.get_group(arm).to_numpy(float), thresholds)
        profiles.step(thresholds, share, label=arm)
    profiles.set(xlabel=plan.outcome, ylabel="share of runs\nat least so good", ylim=(0, 1.02))
    profiles.legend(loc="upper left", bbox_to_anchor=(1, 1))
    for k, arm in enumerate(arms):
        least, highest = plan.predicted.get(condition, {}).get(arm, (np.nan, np.nan))
        panel.barh(k, highest - least, left=least, height=0.6, color=figures.PALE)
        if arm in found:
            mean, low, high = interval(found[arm])
            panel.errorbar(mean, k, xerr=[[mean - low], [high - mean]], fmt="o", color=figures.INK)
            panel.plot(found[arm], [k] * len(found[arm]), "|", color=figures.MUTED)
    panel.axvline(0, color=figures.MUTED, linewidth=0.6)
    panel.set(yticks=range(len(arms)), yticklabels=arms, ylim=(len(arms) - 0.5, -0.5))
    panel.set_xlabel(f"{plan.outcome} - {next(iter(plan.arms))}: predicted (bars), measured")
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=200, metadata={"Software": None})  # equal pictures, equal files
    return buffer.getvalue()


def run(args: argparse.Namespace) -> None:
    path = Path(args.plan)
    plan = Plan.read(path)
    if args.condition not in plan.conditions:
        raise InputError(f"--condition: {path} has {', '.join(plan.conditions)}")
    arms = args.arms or list(plan.arms)
    if unknown := [arm for arm in arms if arm not in plan.arms]:
        raise InputError(f"--arms {unknown[0]}: {path} has {', '.join(plan.arms)}")
    count = plan.seeds if args.seeds is None else args.seeds
    if count < 1 or args.first_seed < 0:
        raise InputError("--seeds is at least 1, and --first-seed at least 0")
    kept = path.with_name(f"{path.stem}-{args.condition}.csv")
    terms = {arm: terms_of(plan, args.condition, arm) for arm in plan.arms}
    frame = rows_of(kept, terms)
    out = Path(args.out) / f"{path.stem}-{args.condition}"
    for seed in range(args.first_seed, args.first_seed + count):
        for arm in arms:
            known = frame[(frame.arm == arm) & (frame.seed == seed)]
            if len(known) and not args.again:
                continue
            name = f"{arm}-seed{seed}"
            if len(known) and (out / name).exists():
                raise InputError(f"--again: {out / name} is there; give another --out")
            own = {**own_settings(plan, args.condition, arm), "seed": seed, "workers": args.workers}
            found = discover_counted(plan.problem, plan.preset, own, out / name, out)
            row = {"arm": arm, "seed": seed, "terms": terms[arm]}
            row |= measured(found, plan, terms[arm], out, args.workers)
            for _, old in known.iterrows():
                require_equal(old, row, kept)
            row["cpu_seconds"] = spent_by(name, out)
            frame = with_row(rows_of(kept, terms), row, list(plan.arms))  # others may add some
            write_csv(kept, frame)
            print(f"{arm}, seed {seed}: {plan.outcome} {row[plan.outcome]:.4f}", flush=True)
    write_atomically(kept.with_suffix(".png"), picture(frame, plan, args.condition))
    print(f"\n{compared(frame, plan, args.condition)}\n{kept}, {kept.with_suffix('.png')}")


def with_row(frame: pd.DataFrame, row: Mapping[str, Any], arms: list[str]) -> pd.DataFrame:
    """The rows with one more, in place of that of the same run; by arm and seed."""
    others = frame[(frame.arm != row["arm"]) | (frame.seed != row["seed"])]
    frame = pd.concat([others, pd.DataFrame([row])], ignore_index=True).sort_values("seed")
    return frame.sort_values("arm", key=lambda names: names.map(arms.index), kind="stable")


def rows_of(kept: Path, terms: Mapping[str, str]) -> pd.DataFrame:
    """The rows of a file; none where there is no file. terms: of each arm, see `terms_of`.

    Raises InputError for rows of other settings, and for two of a run.
    """
    if not kept.exists():
        return pd.DataFrame({"arm": pd.Series(dtype=str), "seed": pd.Series(dtype=int)})
    frame = pd.read_csv(kept)
    if frame.duplicated(KEYS).any():
        arm, seed = frame[frame.duplicated(KEYS)].iloc[0][KEYS]
        raise InputError(f"{kept} has two rows of {arm}, seed {seed}: leave one out")
    for arm, own in frame[["arm", "terms"]].drop_duplicates().itertuples(index=False):
        if terms.get(arm) != own:
            raise InputError(f"{kept}: its rows of {arm} are of other settings; move it away")
    return frame


def require_equal(old: pd.Series, row: Mapping[str, Any], kept: Path) -> None:
    """Raises InputError where a run that was measured again came out otherwise."""
    for name, value in row.items():
        same = value == old[name] or (pd.isna(value) and pd.isna(old[name]))
        if isinstance(value, float) and not same:
            same = math.isclose(value, old[name], rel_tol=1e-12)  # what a file may round
        if not same:
            raise InputError(
                f"{row['arm']}, seed {row['seed']}: {name} is {value}, and {old[name]} in {kept}: "
                "another version, or another machine"
            )


def main() -> int:
    parser = cli.plain_parser(__doc__)
    parser.add_argument("plan", metavar="FILE.toml", help="the registered study")
    parser.add_argument("--condition", required=True)
    parser.add_argument("--arms", nargs="+", metavar="ARM", help="default: all")
    parser.add_argument("--seeds", type=int, metavar="N", help="default: the registered number")
    parser.add_argument("--first-seed", type=int, default=0, metavar="N")
    parser.add_argument("--again", action="store_true", help="also what the table has already")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", default="runs/registered", metavar="FOLDER", help="of the runs")
    return cli.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
