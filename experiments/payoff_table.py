"""Every destroy with every repair: a data set of payoffs of real programs, failing ones included.

    python experiments/payoff_table.py --run runs/one runs/two --answers answers.jsonl --programs 40
    python experiments/payoff_table.py --problem tsp      # of the shipped model: 140 CPU minutes
    python -m spo_jax.search.lab --table runs/payoff-table/tsp.npz

With --run the programs are those of runs, of their first and their last round, as many of each. Of
a role in such a round the first --failing are programs that failed in the same half of the run, if
there are so many: when they ran, then at the gates. Of the repairs those come next that were
written for a chosen destroy. --table adds the programs of tables, in their order, and --answers
FILE answers of a model that the gates let pass, from lines of JSON with `role` and `answer`.
Without all three, the model writes destroys as in a first round, and for each a repair that was
shown it. Other programs that the gates refuse, and those that are there already, are left out; what
fails is in the data set, with its status and reason.

All pairs run on the same instances with the same seeds, some for training and --test-instances
others for testing. That is done in blocks of 16 x 16 pairs, from the first programs on: killed
anywhere, the same command goes on with the next block, and with more --programs blocks of the same
programs are kept. Writes into OUT: NAME.npz (described in `spo_jax.search.lab.measured.dataset`),
NAME.md, a card that says what is in it, and a folder of the blocks; where the model writes,
NAME.json with its programs.
"""

import argparse
import hashlib
import io
import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from common import cli
from common.payoffs import Chosen, answered, card, of_runs, of_table
from embedded_quality import Writer
from spo_jax import __version__
from spo_jax.constants import EMBEDDED
from spo_jax.envs.files.textfiles import load_json, write_atomically
from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Failed, Rollouts, Status
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program, normalise
from spo_jax.rl.policy import model_folder
from spo_jax.runs.run import load_run
from spo_jax.search.lab.measured.dataset import DataInstance, DataProgram, PayoffData
from spo_jax.search.lab.measured.tables import load_table
from spo_jax.seeding import derive
from writers import SAMPLED, by_model

SIDE = 16  # of a block
CHUNK = 32  # prompts that are answered together
AT = (10, 20, 50, 100, 200, 500)  # steps after which the best cost is kept, and the last one
# A name of a program's making in what the gates say of it.
_NAMED = re.compile(
    r"'[^']*'|[\w.]+(?= (?:takes \d|is not available|is a generator|has a keyword))"
)
FEWEST = 8  # new programs of a chunk of CHUNK: with fewer the writer has run dry


@dataclass(frozen=True)
class Asked:
    """What decides an evaluation, and who writes: "" where programs are of runs. at: steps after
    which J is kept, the last of them the last step. cpu_seconds: of a rollout of 500 steps.
    """

    problem: str
    model: str
    kit: str
    size: int
    instances: int
    test_instances: int
    rollouts: int
    at: tuple[int, ...]
    cpu_seconds: float
    seed: int


def run(args: argparse.Namespace) -> None:
    if min(args.instances, args.rollouts, args.steps, args.programs - 2) < 1:
        raise InputError(
            "a table takes --programs of at least 3, and --instances, --rollouts and --steps of 1"
        )
    if min(args.test_instances, args.failing) < 0:
        raise InputError("--test-instances and --failing are 0 or more")
    found = [load_run(folder) for folder in args.run]
    pools = [of_table(path) for path in args.table]
    problems = {each.config.problem for each in found} | {pool.problem for pool in pools}
    problems = problems or {args.problem or "tsp"}
    if len(problems) > 1 or args.problem not in (None, *problems):
        raise InputError(f"the runs and tables are of {' and '.join(sorted(problems))}")
    problem = get_problem(problems.pop())
    at = (*(step for step in AT if step < args.steps), args.steps)
    model = "" if found or pools or args.answers else args.model
    asked = Asked(
        problem.name, model, args.kit, args.size, args.instances, args.test_instances,
        args.rollouts, at, args.cpu_seconds or problem.cpu_seconds, args.seed,
    )  # fmt: skip
    out, name = Path(args.out), args.name or problem.name
    with LocalEvaluator(
        problem, args.workers, seed=args.seed, cpu_seconds=asked.cpu_seconds,
        kit=args.kit != "none",
    ) as evaluator:  # fmt: skip
        if model:
            chosen = by_writer(asked, args.programs, out / f"{name}.json", evaluator)
        else:
            pools += [answered(args.answers, evaluator)] if args.answers else []
            chosen = of_runs(found, pools, args.programs, args.failing, args.seed)
        instances = [
            *problem.sample(args.size, args.instances, derive("payoff table", args.seed)),
            *problem.sample(args.size, args.test_instances, derive("payoff test", args.seed)),
        ]
        blocks = evaluated(asked, chosen, instances, out / f"{name}-blocks", evaluator)
    data = PayoffData(
        **packed(blocks), at=np.array(at), answer=np.array(chosen.answer),
        test=np.arange(len(instances)) >= args.instances, destroys=chosen.destroys,
        repairs=chosen.repairs,
        instances=tuple(DataInstance(each.name, each.digest, each.size) for each in instances),
        made={"command": shlex.join(["python", "experiments/payoff_table.py", *sys.argv[1:]]),
              "package": f"spo-jax {__version__}", **asdict(asked)},
    )  # fmt: skip
    where = out / f"{name}.npz"
    data.save(where)
    write_atomically(where.with_suffix(".md"), card(where.name, data, load_table(where)))
    print(f"{where}: {len(data.destroys)} x {len(data.repairs)} pairs, {data.failed.mean():.1%} "
          f"failed, {np.nansum(data.seconds) / 60:.0f} CPU minutes in rollouts")  # fmt: skip


def evaluated(
    asked: Asked, chosen: Chosen, instances: Sequence[Instance], folder: Path,
    evaluator: LocalEvaluator,
) -> list[list[dict[str, np.ndarray]]]:  # fmt: skip
    """The blocks by row and column; those that the folder holds are not evaluated again."""
    folder.mkdir(parents=True, exist_ok=True)
    destroys, repairs = (
        [each.program for each in side] for side in (chosen.destroys, chosen.repairs)
    )
    order = list(places(len(destroys), len(repairs)))
    found = {}
    for number, (i, j) in enumerate(order, 1):
        rows, columns = destroys[i : i + SIDE], repairs[j : j + SIDE]
        where = folder / f"{mark(asked, [each.digest for each in (*rows, *columns)])}.npz"
        if not where.exists():
            pairs = [Pair(*each) for each in product(rows, columns)]
            rollouts = evaluator.run(
                pairs, instances, range(asked.rollouts), asked.at[-1], fail_fast=False
            )
            block = {name: each.reshape(len(rows), len(columns), *each.shape[1:])
                     for name, each in kept(rollouts, asked.at).items()}  # fmt: skip
            save(where, block)
        with np.load(where) as known:
            found[i, j] = {name: known[name] for name in known.files}
        print(f"{where}: {number} of {len(order)}", flush=True)
    return [[found[i, j] for j in range(0, len(repairs), SIDE)]
            for i in range(0, len(destroys), SIDE)]  # fmt: skip


def kept(rollouts: Rollouts, at: Sequence[int]) -> dict[str, np.ndarray]:
    """[P, ...] of each array. reason: texts, as a model may read them."""
    start = rollouts.initial_cost
    reason = np.full(rollouts.status.shape, "", object)
    for place in zip(*np.nonzero(rollouts.status), strict=True):
        status = Status(int(rollouts.status[place]))
        failed = Failed(status, str(rollouts.reason[place]), str(rollouts.role[place]))
        reason[place] = failed.redacted_reason
    return {
        "scores": (1 - rollouts.best_cost[..., at] / start[..., None]).astype(np.float32),
        "start": start, "status": rollouts.status, "seconds": rollouts.seconds.astype(np.float32),
        "reason": reason.astype(str),
    }  # fmt: skip


def mark(asked: Asked, digests: Sequence[str]) -> str:
    """A name of a block: that of other settings or programs is another one."""
    settings = {name: value for name, value in asdict(asked).items() if name != "model"}
    return hashlib.sha256(repr((settings, digests)).encode()).hexdigest()[:16]


def places(destroys: int, repairs: int) -> Iterator[tuple[int, int]]:
    """The first pair of each block, in squares that grow: what is finished is always a table."""
    starts = product(range(0, destroys, SIDE), range(0, repairs, SIDE))
    yield from sorted(starts, key=lambda each: (max(each), each))


def by_writer(asked: Asked, count: int, where: Path, evaluator: LocalEvaluator) -> Chosen:
    """`count` pairs of the model."""
    sides = programs_of(asked, count, where, evaluator)
    destroys, repairs = (tuple(DataProgram(each, asked.model) for each in side) for side in sides)
    return Chosen(destroys, repairs, tuple(range(count)))


def programs_of(
    asked: Asked, count: int, where: Path, evaluator: LocalEvaluator
) -> tuple[list[Program], list[Program]]:
    """`count` distinct destroys and for each its own repair; those that the file holds come first.

    Writes the file. Raises InputError where it is of other settings, or the model repeats itself.
    """
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
        programs = [{p.role: {"strategy": p.strategy, "source": p.source} for p in pair}
                for pair in pairs]  # fmt: skip
        where.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"settings": settings, "chunks": chunks, "pairs": programs}, indent=1)
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


def packed(blocks: Sequence[Sequence[Mapping[str, np.ndarray]]]) -> dict[str, Any]:
    """The blocks as the arrays of a data set; the start of an instance and seed is the same for all
    pairs, and reasons are indexes.
    """
    table = {
        name: np.concatenate([np.concatenate([b[name] for b in row], axis=1) for row in blocks])
        for name in blocks[0][0]
    }
    start = np.nanmax(table.pop("start"), axis=(0, 1))
    texts, index = np.unique(table["reason"], return_inverse=True)
    if texts[0]:  # all failed
        raise InputError("no evaluation succeeded: there is nothing in the table")
    redacted = [_NAMED.sub("'...'", text) for text in texts.tolist()]
    reasons = sorted(set(redacted))
    place = np.array([reasons.index(text) for text in redacted], np.int16)
    reason = place[index.reshape(table["reason"].shape)]
    return {**table, "start": start, "reason": reason, "reasons": tuple(reasons)}


def save(where: Path, arrays: Mapping[str, np.ndarray]) -> None:
    held = io.BytesIO()
    np.savez_compressed(held, **arrays)  # type: ignore[arg-type]
    write_atomically(where, held.getvalue())


def main() -> int:
    parser = cli.plain_parser(__doc__)
    parser.add_argument("--problem", help="of the model's programs (default: tsp)")
    parser.add_argument(
        "--run", nargs="+", default=[], metavar="FOLDER", help="runs whose programs are taken"
    )
    parser.add_argument(
        "--table", nargs="+", type=Path, default=[], metavar="FILE.npz",
        help="tables whose programs are taken",
    )  # fmt: skip
    parser.add_argument(
        "--answers", type=Path, metavar="FILE", help="answers of a model, in lines of JSON"
    )
    parser.add_argument(
        "--failing", type=int, default=2, metavar="N",
        help="programs of each role and round that failed (default: 2)",
    )  # fmt: skip
    parser.add_argument(
        "--model", default=EMBEDDED, help="writes the programs: a name, or a folder"
    )
    parser.add_argument("--kit", choices=("lns", "none"), default="lns")
    parser.add_argument("--programs", type=int, default=128, metavar="N", help="of each role")
    parser.add_argument("--size", type=int, default=100, help="of the instances")
    parser.add_argument("--instances", type=int, default=4, metavar="N", help="for training")
    parser.add_argument("--test-instances", type=int, default=4, metavar="N")
    parser.add_argument("--rollouts", type=int, default=2, metavar="N", help="on each instance")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument(
        "--cpu-seconds", type=float, metavar="X",
        help="limit of a rollout of 500 steps (default: the problem's)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", default="runs/payoff-table", metavar="FOLDER")
    parser.add_argument("--name", help="of the files (default: the problem's)")
    return cli.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
