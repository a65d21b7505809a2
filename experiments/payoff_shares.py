"""What J of real programs is made of: leaders, followers, their interaction, noise.

    spo discover tsp --preset quick --generator grammar --kit lns --out runs/grammar
    python experiments/payoff_shares.py --run runs/grammar --programs 20

Each of N destroys of a round runs with each of N repairs of it, on fresh instances of each size
that the run trains on, and otherwise as the run evaluates: a complete table. Its variances, of
two-way random effects, place the run in the picture of the credit laboratory: gamma, noise and
spread are in the unit of its worlds, the standard deviation of leaders. Programs are drawn at
random from those of the valid pairs. Variances need a complete table: a pair that fails takes the
destroy or the repair with the most failures out of it, until none is left. "failed" is the share of
pairs that failed before that.

Writes into OUT: shares.csv, shares.md, and of each run and round NAME-ROUND.npz with the scores
[K, M, instances, seeds], NaN for what failed, and the programs' digests; a table that is there is
not made again.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from common import cli
from common.runs import again, fresh_instances
from common.tables import markdown, write_csv, write_text
from spo_jax.errors import InputError
from spo_jax.program import Pair
from spo_jax.runs.run import Run, load_run
from spo_jax.search.lab.measured.shares import jackknife, shares_of
from spo_jax.search.lab.measured.tables import complete
from spo_jax.search.utility import UTILITIES
from spo_jax.seeding import derive, numpy_rng

PARTS = ("leader", "follower", "interaction", "noise")


def run(args: argparse.Namespace) -> None:
    if args.programs < 3 or args.instances < 2:
        raise InputError("a table takes --programs of at least 3 and --instances of at least 2")
    rows = []
    for folder in args.run:
        found = load_run(folder)
        for number in args.rounds or (1, found.rounds):
            where = Path(args.out) / f"{found.path.name}-{number}.npz"
            scores = kept(where, args) if where.exists() else made(found, number, where, args)
            rows.append({"run": found.path.name, "round": number, **summary(scores)})
            print(f"{found.path.name} round {number}: {scores.shape[0]} destroys with "
                  f"{scores.shape[1]} repairs", flush=True)  # fmt: skip
    frame = pd.DataFrame(rows)
    text = shown(frame)
    print(f"\n{text}")
    write_csv(Path(args.out) / "shares.csv", frame)
    write_text(Path(args.out) / "shares.md", text)


def kept(where: Path, args: argparse.Namespace) -> np.ndarray:
    """The scores of an earlier call. Raises InputError for those of other settings."""
    with np.load(where) as known:
        if known["asked"].tolist() != [args.programs, args.instances]:
            raise InputError(f"{where} is of other --programs or --instances: use another --out")
        return np.asarray(known["scores"])


def made(found: Run, number: int, where: Path, args: argparse.Namespace) -> np.ndarray:
    """Evaluate a round's table and keep it: the scores [K, M, I, S]."""
    config = found.config
    if not 1 <= number <= found.rounds:
        raise InputError(f"{found.path} has rounds 1 to {found.rounds}, and no round {number}")
    valid = [p for p in found.pairs if p.round == number and p.kind == "response"]
    valid = [p for p in valid if p.status == "ok"]
    destroys = drawn([p.destroy for p in valid], args.programs, "destroys")
    repairs = drawn([p.repair for p in valid], args.programs, "repairs")
    programs = [[found[name].program for name in names] for names in (destroys, repairs)]
    instances = fresh_instances(found, args.instances, derive("payoff shares"))
    pairs = [Pair(destroy, repair) for destroy in programs[0] for repair in programs[1]]
    rollouts, _ = again(found, pairs, instances, workers=args.workers)
    flat = UTILITIES[config.evaluation.utility](rollouts, instances)
    scores = flat.reshape(len(destroys), len(repairs), *flat.shape[1:])
    where.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        where, scores=scores, asked=np.array([args.programs, args.instances]),
        destroys=np.array([program.digest for program in programs[0]]),
        repairs=np.array([program.digest for program in programs[1]]),
    )  # fmt: skip
    return scores


def drawn(names: Sequence[str], count: int, what: str) -> list[str]:
    """`count` of the names, or all; the same again. Raises InputError for fewer than three."""
    each = sorted(set(names))
    if len(each) < 3:
        raise InputError(f"the round has {len(each)} valid {what}: a table takes three")
    order = numpy_rng("payoff shares", what).permutation(len(each))
    return [each[i] for i in order[:count]]


def summary(scores: np.ndarray) -> dict[str, Any]:
    """Mean J, shares of its variance, and the parameters of the laboratory with their intervals."""
    table = scores.reshape(*scores.shape[:2], -1)
    fine = np.isfinite(table).all(axis=2)
    table = table[np.ix_(*complete(fine))]
    if min(table.shape[:2]) < 3:
        raise InputError("too many pairs failed: fewer than three programs of a role are left")
    found, ends = shares_of(table), jackknife(table)
    values: dict[str, Any] = {"destroys": table.shape[0], "repairs": table.shape[1]}
    values["failed"] = 1 - fine.mean()
    values |= {"mean": table.mean(), "deviation": table.mean(axis=2).std()}
    total = found.total or 1.0
    values |= {name: getattr(found, name) / total for name in PARTS}
    for name, value in (
        ("gamma", found.gamma), ("noise", found.noise_in_leaders), ("spread", found.spread),
    ):  # fmt: skip
        low, high = ends[name]
        values |= {f"lab_{name}": value, f"{name}_low": low, f"{name}_high": high}
    return values


def shown(frame: pd.DataFrame) -> str:
    heads = ["run", "round", "table", "failed", "mean J", "sd of J", *PARTS]
    heads += ["gamma", "noise ", "spread"]
    rows = []
    for _, each in frame.iterrows():
        parameters = [
            f"{each[f'lab_{name}']:.2f} ({each[f'{name}_low']:.2f} to {each[f'{name}_high']:.2f})"
            for name in ("gamma", "noise", "spread")
        ]
        rows.append([
            str(each.run), str(each["round"]), f"{each.destroys} x {each.repairs}",
            f"{each.failed:.0%}", f"{each['mean']:.4f}", f"{each.deviation:.4f}",
            *(f"{each[name]:.0%}" for name in PARTS), *parameters,
        ])  # fmt: skip
    return markdown(heads, rows) + "\n"


def main() -> int:
    parser = cli.plain_parser(__doc__)
    parser.add_argument("--run", nargs="+", required=True, metavar="FOLDER", help="finished runs")
    parser.add_argument("--rounds", nargs="+", type=int, metavar="N", help="default: first, last")
    parser.add_argument("--programs", type=int, default=20, metavar="N", help="of each role")
    parser.add_argument("--instances", type=int, default=6, metavar="N", help="of each size")
    parser.add_argument("--workers", type=int, help="worker processes (default: the run's)")
    parser.add_argument("--out", default="runs/payoff-shares", metavar="FOLDER")
    return cli.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
