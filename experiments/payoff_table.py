"""Every destroy with every repair: a complete payoff table of real programs.

    python experiments/payoff_table.py --problem tsp      # 128 x 128 x 8 rollouts, 70 CPU minutes
    python experiments/payoff_table.py --problem cvrp     # 65
    python -m spo_jax.search.lab --table runs/payoff-table/tsp.npz

A model writes destroys as in a first round, and for each a repair that was shown it. Repair i is
the answer to destroy i; every repair runs with every destroy, and all pairs on the same instances
with the same seeds. Programs that the gates refuse or that are there already are left out; what
fails when it runs is in the table, with its status.

The table is made in blocks of 16 x 16 pairs, from the first programs on: killed anywhere, the same
command goes on with the next block, and with more --programs a finished table grows. Writes into
OUT: PROBLEM.npz, the arrays that `spo_jax.search.lab.replay.load_table` describes; PROBLEM.json,
the programs and the settings; and a folder of the blocks.
"""

import argparse
import hashlib
import io
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from common import cli
from embedded_quality import Writer
from spo_jax.envs.problem import Problem
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.textfiles import load_json, write_atomically
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program, normalise
from spo_jax.rl.policy import model_folder
from spo_jax.seeding import derive
from spo_jax.words import EMBEDDED
from writers import SAMPLED, by_model

SIDE = 16  # of a block
CHUNK = 32  # prompts that are answered together
AT = (10, 20, 50, 100, 200, 500)  # steps after which the best cost is kept, and the last one
FEWEST = 8  # new programs of a chunk of CHUNK: with fewer the writer has run dry


@dataclass(frozen=True)
class Asked:
    """What decides a block. at: steps whose best costs are kept, the last of them the last step."""

    problem: str
    model: str
    kit: str
    size: int
    instances: int
    rollouts: int
    at: tuple[int, ...]
    seed: int


def run(args: argparse.Namespace) -> None:
    if args.programs < 2 or args.instances < 1 or args.rollouts < 1 or args.steps < 1:
        raise InputError(
            "a table takes --programs of at least 2, and --instances, --rollouts and --steps of 1"
        )
    at = (*(step for step in AT if step < args.steps), args.steps)
    asked = Asked(args.problem, args.model, args.kit, args.size, args.instances, args.rollouts,
                  at, args.seed)  # fmt: skip
    out, problem = Path(args.out), get_problem(args.problem)
    with LocalEvaluator(problem, args.workers, seed=args.seed, kit=args.kit != "none") as evaluator:
        destroys, repairs = programs_of(asked, args.programs, out, evaluator)
        instances = problem.sample(args.size, args.instances, derive("payoff table", args.seed))
        folder = out / args.problem / mark(asked)
        folder.mkdir(parents=True, exist_ok=True)
        blocks = list(places(args.programs))
        for number, (i, j) in enumerate(blocks, 1):
            where = (
                folder / f"{i}-{j}-{len(destroys[i : i + SIDE])}-{len(repairs[j : j + SIDE])}.npz"
            )
            if not where.exists():
                pairs = [Pair(*each) for each in product(destroys[i : i + SIDE],
                                                         repairs[j : j + SIDE])]  # fmt: skip
                rollouts = evaluator.run(
                    pairs, instances, range(args.rollouts), args.steps, fail_fast=False
                )
                shape = len(destroys[i : i + SIDE]), len(repairs[j : j + SIDE])
                block = {
                    "cost": rollouts.best_cost[..., at].astype(np.float32),
                    "start": rollouts.best_cost[..., 0],
                    "status": rollouts.status,
                    "seconds": np.nansum(rollouts.seconds, axis=(1, 2)).astype(np.float32),
                }
                save(where, {name: each.reshape(*shape, *each.shape[1:])
                             for name, each in block.items()})  # fmt: skip
            print(f"{where}: {number} of {len(blocks)}", flush=True)
    table = packed(folder, args.programs)
    table["at"] = np.array(at)
    table["destroys"] = np.array([each.digest for each in destroys])
    table["repairs"] = np.array([each.digest for each in repairs])
    save(out / f"{args.problem}.npz", table)
    failed = (table["status"] != 0).any(axis=(2, 3)).mean()
    print(f"{out / args.problem}.npz: {len(destroys)} x {len(repairs)} pairs, {failed:.1%} failed, "
          f"{table['seconds'].sum() / 60:.0f} CPU minutes in rollouts")  # fmt: skip


def mark(asked: Asked) -> str:
    """A name of the settings: blocks of others are not mixed."""
    return hashlib.sha256(repr(asked).encode()).hexdigest()[:12]


def places(programs: int) -> Iterator[tuple[int, int]]:
    """The first pair of each block, in squares that grow: what is finished is always a table."""
    starts = range(0, programs, SIDE)
    yield from sorted(product(starts, starts), key=lambda each: (max(each), each))


def programs_of(
    asked: Asked, count: int, out: Path, evaluator: LocalEvaluator
) -> tuple[list[Program], list[Program]]:
    """`count` distinct destroys and for each its own repair; those that OUT holds come first.

    Writes PROBLEM.json. Raises InputError where OUT is of other settings, or the model repeats
    itself.
    """
    where = out / f"{asked.problem}.json"
    settings = json.loads(json.dumps(vars(asked)))
    known: dict[str, Any] = {"settings": settings, "chunks": 0, "pairs": []}
    if where.exists():
        known = load_json(where)
        if known.get("settings") != settings:
            raise InputError(f"{where} is of other settings: use another --out")
    pairs = [
        [Program(role, each[role]["source"], each[role]["strategy"])
         for role in ("destroy", "repair")]
        for each in known["pairs"]
    ]  # fmt: skip
    chunks, problem = known["chunks"], get_problem(asked.problem)
    if len(pairs) < count:
        writer = Writer(model_folder(asked.model), *SAMPLED)
    while len(pairs) < count:
        found = written(problem, asked, writer, chunks, evaluator, pairs)
        if len(found) < FEWEST:
            raise InputError(
                f"{asked.model} wrote {len(found)} new pairs in {CHUNK}: it has no {count} that "
                "differ; use fewer --programs"
            )
        pairs += found
        chunks += 1
        told = [{p.role: {"strategy": p.strategy, "source": p.source} for p in pair}
                for pair in pairs]  # fmt: skip
        out.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"settings": settings, "chunks": chunks, "pairs": told}, indent=1)
        write_atomically(where, text + "\n")
    return [pair[0] for pair in pairs[:count]], [pair[1] for pair in pairs[:count]]


def written(
    problem: Problem, asked: Asked, writer: Writer, chunk: int, evaluator: LocalEvaluator,
    before: list[list[Program]],
) -> list[list[Program]]:  # fmt: skip
    """The new pairs of a chunk of prompts: both pass the gates, and neither is there already."""
    seed = derive("payoff table", asked.seed, chunk) >> 33
    drafts = by_model(problem, asked.kit != "none", writer, CHUNK, seed)
    both = zip(drafts.destroys, drafts.repairs, strict=True)
    pairs = [[destroy, repair] for destroy, repair in both if destroy and repair]
    refused = evaluator.check([each for pair in pairs for each in pair])
    seen = {normalise(each.source) for pair in before for each in pair}
    found = []
    for k, pair in enumerate(pairs):
        texts = {normalise(each.source) for each in pair}
        if not any(refused[2 * k : 2 * k + 2]) and not texts & seen:
            found.append(pair)
            seen |= texts
    return found


def packed(folder: Path, programs: int) -> dict[str, np.ndarray]:
    """The blocks as one table; the start of an instance and seed is the same for all pairs."""
    starts = range(0, programs, SIDE)
    sizes = {i: min(SIDE, programs - i) for i in starts}
    grid = []
    for i in starts:
        row = []
        for j in starts:
            with np.load(folder / f"{i}-{j}-{sizes[i]}-{sizes[j]}.npz") as block:
                row.append({name: np.asarray(block[name]) for name in block})
        grid.append(row)
    table = {
        name: np.concatenate([np.concatenate([b[name] for b in row], axis=1) for row in grid])
        for name in grid[0][0]
    }
    start = table.pop("start")
    return table | {"start": np.nanmax(start, axis=(0, 1))}


def save(where: Path, arrays: dict[str, np.ndarray]) -> None:
    held = io.BytesIO()
    np.savez_compressed(held, **arrays)  # type: ignore[arg-type]
    write_atomically(where, held.getvalue())


def main() -> int:
    parser = cli.plain_parser(__doc__)
    parser.add_argument("--problem", choices=("tsp", "cvrp"), default="tsp")
    parser.add_argument(
        "--model", default=EMBEDDED, help="writes the programs: a name, or a folder"
    )
    parser.add_argument("--kit", choices=("lns", "none"), default="lns")
    parser.add_argument("--programs", type=int, default=128, metavar="N", help="of each role")
    parser.add_argument("--size", type=int, default=100, help="of the instances")
    parser.add_argument("--instances", type=int, default=4, metavar="N")
    parser.add_argument("--rollouts", type=int, default=2, metavar="N", help="on each instance")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", default="runs/payoff-table", metavar="FOLDER")
    return cli.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
