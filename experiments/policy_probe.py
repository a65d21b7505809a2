"""What the policy of a run writes is worth, apart from what the run found.

    python experiments/policy_probe.py --run runs/stackelberg runs/shared
    python experiments/policy_probe.py --run runs/shared --rounds 0 8 10

The best pair of a run measures how much it explored. This measures the policies as they are after a
round, by default the last one; a run keeps the checkpoints of its three last rounds, and round 0 is
before the first update. The destroys' policy writes N destroys to the prompt of a first round,
which shows no parents. Each runs with all of M frozen repairs. A leader is worth its best response:
the repair is chosen on one half of the instances and scored on the other, and the two ways are
averaged, so that the choice does not flatter. Of the repairs' policy each of M frozen destroys gets
N / M answers, rounded up, and a repair is worth J with the destroy that it answers. A program that
fails, or a destroy that fails with all repairs, is worth 0 in "worth", as the first solution is,
and is left out of "valid ones".

Frozen programs are those of a data set of payoffs without failures, ranked by their mean J there,
at even distances; without calls of the kit where a run has none, because a good response with the
kit makes all leaders alike. Programs that a policy writes twice count twice and run once.
Everything else is as the run evaluates. Standard errors are those of programs as draws for prompts
that are given. "reliability" is the correlation, over the different valid answers to a prompt, of
two values that share no instance (for a destroy its response is chosen on one quarter of the
instances and scored on the next), with the Spearman-Brown correction for both together.

Where the names of runs are ARM-seedN, as those of a study, a second table has each arm minus the
first one, paired by seed, after rounds with updates: the mean difference in "worth" with its 95%
Student t interval, p after Holm's correction over the table, the least difference that 80 of 100
such studies see, and whether a difference above --exclude is excluded.

Writes into OUT: NAME-ROUND.json, programs and scores, which is not made again; probe.csv, probe.md.
The means are kept in the run, too: `load_run(RUN).probes`, its report and `spo report RUN RUN`.
"""

import argparse
import hashlib
import json
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from common import cli
from common.policies import first_prompts, policy_at
from common.runs import evaluator_like, fresh_instances
from common.tables import markdown, write_csv, write_text
from spo_jax.constants import KIT
from spo_jax.envs.files.textfiles import load_json, write_atomically
from spo_jax.envs.problem import Instance
from spo_jax.envs.run.evaluator import Evaluator
from spo_jax.errors import InputError, Rejection
from spo_jax.generator import Generator
from spo_jax.program import ROLES, Pair, Program, Prompt, Role, parse_answer
from spo_jax.runs.probes import ProbeRecord, keep_probes
from spo_jax.runs.run import Run, load_run
from spo_jax.search.lab.measured.dataset import load_data
from spo_jax.search.lab.measured.tables import complete
from spo_jax.search.lab.power import detectable, holm, interval, p_of
from spo_jax.search.utility import UTILITIES
from spo_jax.seeding import derive

DATA = Path(__file__).parent / "data" / "payoff"
ASKED = ("programs", "partners", "instances", "seed")


@dataclass(frozen=True, eq=False)
class Probe:
    """What a policy wrote for a role: programs, None for answers that are none that may run.

    scores: [N, M, I] J with M frozen partners on I instances, or with the one that a repair
    answers, [N, 1, I]; NaN where an evaluation failed, and everywhere without a program. count:
    answers to a prompt; those to the same one follow each other.
    """

    role: Role
    programs: tuple[Program | None, ...]
    scores: np.ndarray
    count: int

    def value(self, chosen_on: np.ndarray, scored_on: np.ndarray) -> np.ndarray:
        """[N] J on some instances of each program with the partner that is best on others.

        NaN without a partner with which it never fails.
        """
        fine = np.isfinite(self.scores).all(axis=2)
        chosen = np.where(fine, self.scores[:, :, chosen_on].mean(axis=2), -np.inf).argmax(axis=1)
        scored = self.scores[:, :, scored_on].mean(axis=2)[np.arange(len(chosen)), chosen]
        return np.where(fine.any(axis=1), scored, np.nan)

    def values(self) -> np.ndarray:
        """[N] the value of each program: chosen on half of the instances, scored on the others, and
        the other way round.
        """
        one, two = self._parts(2)
        return (self.value(one, two) + self.value(two, one)) / 2

    def reliability(self) -> float:
        """Of the values of different valid answers to a prompt; NaN for too few instances."""
        if self.scores.shape[2] < 4:
            return math.nan
        if self.scores.shape[1] == 1:
            ways = np.stack([self.value(part, part) for part in self._parts(2)], axis=1)
        else:
            a, b, c, d = self._parts(4)
            ways = np.stack([self.value(a, b), self.value(c, d)], axis=1)
        valid = np.isfinite(ways).all(axis=1)
        prompts = np.arange(len(ways)) // self.count
        first: dict[tuple[int, str], int] = {}
        for i, program in enumerate(self.programs):
            if program is not None and valid[i]:
                first.setdefault((int(prompts[i]), program.digest), i)
        found = [
            ways[i] - ways[valid & (prompts == prompts[i])].mean(axis=0) for i in first.values()
        ]
        return reliability(np.array(found).reshape(-1, 2))

    def summary(self) -> dict[str, Any]:
        """Means over what was written, with the standard errors of programs as draws: the fields of
        `ProbeRecord`.
        """
        value = self.values()
        valid = np.isfinite(value)
        worth = np.where(valid, value, 0.0)
        return {
            "answers": len(value),
            "different": len({each.digest for each in self.programs if each is not None}),
            "failed": float(1 - valid.mean()),
            "worth": float(worth.mean()),
            "worth_error": error_of_mean(worth, self.count),
            "valid_ones": float(value[valid].mean()) if valid.any() else math.nan,
            "reliability": self.reliability(),
        }

    def _parts(self, count: int) -> list[np.ndarray]:
        """The instances in `count` parts, in which sizes are mixed alike."""
        return [np.arange(part, self.scores.shape[2], count) for part in range(count)]


def error_of_mean(values: np.ndarray, count: int) -> float:
    """The standard error of a mean [N] over prompts with `count` answers; NaN for a single one."""
    if count < 2:
        return math.nan
    own = values.reshape(-1, count)
    return float(math.sqrt(own.var(axis=1, ddof=1).mean() / len(values)))


def reliability(ways: np.ndarray) -> float:
    """Of the mean of two measurements [N, 2]: Spearman-Brown; 0 where they do not agree at all, NaN
    for fewer than three.
    """
    if len(ways) < 3 or not ways.std(axis=0).all():
        return math.nan
    r = max(0.0, float(np.corrcoef(ways.T)[0, 1]))
    return 2 * r / (1 + r)


@dataclass(frozen=True)
class Frozen:
    """Programs that other policies' programs are played with."""

    destroys: tuple[Program, ...]
    repairs: tuple[Program, ...]


def frozen_of(path: Path, count: int, kit: bool) -> Frozen:
    """`count` programs of each role of a data set. kit: whether they may call it. Raises InputError
    where fewer never fail.
    """
    data = load_data(path)
    sides = data.destroys, data.repairs
    allowed = [
        [i for i, each in enumerate(side) if kit or not uses_kit(each.program)] for side in sides
    ]
    left = complete(~data.failed[np.ix_(*allowed)])
    places = [[own[i] for i in some] for own, some in zip(allowed, left, strict=True)]
    scores = np.asarray(data.scores[..., -1], float).mean(axis=(2, 3))[np.ix_(*places)]
    if min(scores.shape) < count:
        without = "" if kit else " and without the kit"
        raise InputError(f"{path} has {scores.shape[0]} destroys and {scores.shape[1]} repairs "
                         f"without failures{without}, and --partners is {count}")  # fmt: skip
    found = []
    for side, own, axis in zip(sides, places, (1, 0), strict=True):
        order = np.argsort(-scores.mean(axis=axis), kind="stable")
        even = np.round(np.linspace(0, len(order) - 1, count)).astype(int)
        found.append(tuple(side[own[order[i]]].program for i in even))
    return Frozen(*found)


def uses_kit(program: Program) -> bool:
    """Whether the kit is named in a program's text."""
    return KIT in re.findall(r"\w+", program.source)


def written(
    generator: Generator, prompts: Sequence[Prompt], count: int, seed: int, evaluator: Evaluator
) -> list[Program | None]:
    """`count` answers to each prompt; None for what is no program, or one that the gates refuse."""
    found: list[Program | None] = []
    for prompt, group in zip(prompts, generator.generate(prompts, count, seed), strict=True):
        for completion in group:
            try:
                found.append(parse_answer(prompt.answer, prompt.role, completion.text))
            except Rejection:
                found.append(None)
    known = [each for each in found if each is not None]
    verdicts = iter(evaluator.check(known))
    return [each if each is not None and next(verdicts) is None else None for each in found]


def played(
    run: Run, pairs: Sequence[Pair | None], instances: Sequence[Instance], evaluator: Evaluator
) -> np.ndarray:
    """[P, I] J on each instance, the mean over seeds; equal pairs run once, NaN without a pair."""
    terms = run.config.evaluation
    unique: dict[tuple[str, str], Pair] = {}
    for pair in pairs:
        if pair is not None:
            unique.setdefault((pair.destroy.digest, pair.repair.digest), pair)
    scores = {}
    if unique:
        rollouts = evaluator.run(
            list(unique.values()), instances, range(terms.rollouts), terms.steps
        )
        found = UTILITIES[terms.utility](rollouts, instances).mean(axis=2)
        scores = dict(zip(unique, found, strict=True))
    nothing = np.full(len(instances), np.nan)
    return np.stack([
        nothing if pair is None else scores[pair.destroy.digest, pair.repair.digest]
        for pair in pairs
    ])  # fmt: skip


def probed(run: Run, number: int, frozen: Frozen, args: argparse.Namespace) -> list[Probe]:
    """Both roles' policies after a round."""
    prompt = first_prompts(run)
    generator = policy_at(run, number)
    instances = fresh_instances(run, args.instances, derive("policy probe", args.seed))
    # One seed for all rounds and runs: differences are those of the policies.
    seed = derive("policy probe answers", args.seed)

    with evaluator_like(run, args.seed, args.workers) as evaluator:
        destroys = written(generator, [prompt("destroy", None)], args.programs, seed, evaluator)
        pairs = [Pair(destroy, repair) if destroy else None
                 for destroy in destroys for repair in frozen.repairs]  # fmt: skip
        scores = played(run, pairs, instances, evaluator)
        scores = scores.reshape(len(destroys), len(frozen.repairs), -1)
        found = [Probe("destroy", tuple(destroys), scores, len(destroys))]
        count = -(-args.programs // len(frozen.destroys))
        asked = [prompt("repair", destroy) for destroy in frozen.destroys]
        repairs = written(generator, asked, count, seed, evaluator)
        answers = [Pair(frozen.destroys[i // count], repair) if repair else None
                   for i, repair in enumerate(repairs)]  # fmt: skip
        scores = played(run, answers, instances, evaluator)
        found.append(Probe("repair", tuple(repairs), scores[:, None], count))
    return found


def probed_once(
    where: Path, asked: dict[str, Any], run: Run, number: int, frozen: Frozen,
    args: argparse.Namespace,
) -> list[Probe]:  # fmt: skip
    """`probed`, kept in a file and read from it the next time. asked: all that it depends on."""
    if where.exists():
        probes = read(where, asked)
    else:
        probes = probed(run, number, frozen, args)
        where.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(where, kept(probes, asked))
    rows = [ProbeRecord(number, each.role, **each.summary()) for each in probes]
    keep_probes(run.path, asked, rows)
    return probes


def kept(probes: Sequence[Probe], asked: dict[str, Any]) -> str:
    """The file of a round."""
    roles = [
        {
            "role": each.role,
            "programs": [p and {"strategy": p.strategy, "source": p.source} for p in each.programs],
            "count": each.count,
            "scores": [
                [[x if math.isfinite(x) else None for x in row] for row in table]
                for table in each.scores.tolist()
            ],
        }
        for each in probes
    ]
    return json.dumps({"asked": asked, "roles": roles})


def read(path: Path, asked: dict[str, Any]) -> list[Probe]:
    """What `kept` wrote. Raises InputError for another file, and for that of another command."""
    try:
        known = load_json(path)
        same = known["asked"] == asked
        found = [
            Probe(
                each["role"],
                tuple(
                    p and Program(each["role"], p["source"], p["strategy"])
                    for p in each["programs"]
                ),
                np.array(each["scores"], float),
                each["count"],
            )
            for each in known["roles"]
        ]
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{path} is no file of a probe: move it away") from None
    if not same:
        raise InputError(f"{path} is of another run or other settings: use another --out")
    return found


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def run(args: argparse.Namespace) -> None:
    if min(args.programs, args.partners) < 2:
        raise InputError("--programs and --partners are at least 2")
    if args.instances < 2 or args.instances % 2:
        raise InputError(f"--instances is {args.instances}: halves need an even number")
    if not 0 < args.exclude < math.inf:
        raise InputError(f"--exclude is {args.exclude:g}; an effect is a number above 0")
    runs = [load_run(folder) for folder in args.run]
    if len({each.path.name for each in runs}) < len(runs):
        raise InputError("--run: the folders need names of their own")
    problems = {each.config.problem for each in runs}
    if len(problems) > 1:
        raise InputError(f"the runs are of {' and '.join(sorted(problems))}: one problem at a time")
    table = Path(args.table) if args.table else DATA / f"{problems.pop()}-rounds-v1.npz"
    kit = all(each.config.generator.kit != "none" for each in runs)
    frozen = frozen_of(table, args.partners, kit)
    out = Path(args.out)
    rows = []
    for found in runs:
        asked = {name: getattr(args, name) for name in ASKED} | {
            "kit": kit,
            "table": digest(table.read_bytes()),
            "run": digest(json.dumps(found.manifest, sort_keys=True, default=str).encode()),
        }
        for number in dict.fromkeys(args.rounds or (found.rounds,)):
            where = out / f"{found.path.name}-{number}.json"
            probes = probed_once(where, asked, found, number, frozen, args)
            rows += [
                {"run": found.path.name, "round": number, "role": each.role, **each.summary()}
                for each in probes
            ]
            print(f"{found.path.name}, round {number}", flush=True)
    frame = pd.DataFrame(rows)
    write_csv(out / "probe.csv", frame)
    text = shown(frame) + differences(frame, args.exclude)
    print(f"\n{text}")
    write_text(out / "probe.md", text)


def shown(frame: pd.DataFrame) -> str:
    heads = ["run", "round", "role", "answers", "different", "failed", "worth", "valid ones",
             "reliability"]  # fmt: skip
    rows = []
    for role in ROLES:
        for _, each in frame[frame.role == role].iterrows():
            rows.append([
                str(each.run), str(each["round"]), role, str(each.answers), str(each.different),
                f"{each.failed:.0%}", f"{each.worth:.4f} ± {each.worth_error:.4f}",
                f"{each.valid_ones:.4f}", f"{each.reliability:.2f}",
            ])  # fmt: skip
    return markdown(heads, rows) + "\n"


def differences(frame: pd.DataFrame, exclude: float) -> str:
    """Arms against the first one, by role and round; nothing where no two arms share two seeds."""
    named = frame.run.str.extract(r"^(?P<arm>.+)-seed(?P<seed>\d+)$")
    frame = frame.assign(arm=named.arm, seed=named.seed).dropna(subset=["arm"])
    arms = list(dict.fromkeys(frame.arm))
    rows, values = [], []
    updated = frame[frame["round"] > 0]  # before the first update all arms are the same policy
    for (role, number), own in updated.groupby(["role", "round"], sort=True):
        table = own.pivot(index="seed", columns="arm", values="worth")
        for arm in arms[1:]:
            both = arms[0] in table and arm in table
            paired = (table[arm] - table[arms[0]]).dropna() if both else ()
            if len(paired) >= 2:
                rows.append([role, str(number), arm, str(len(paired))])
                values.append(np.asarray(paired))
    if not rows:
        return ""
    tested = holm([p_of(each.mean(), each.std(ddof=1), len(each)) for each in values])
    for row, each, p in zip(rows, values, tested, strict=True):
        mean, low, high = interval(each)
        row += [
            f"{mean:+.4f} ({low:+.4f} to {high:+.4f})", f"{p:.3f}",
            f"{detectable(float(each.std(ddof=1)), len(each)):.4f}",
            "yes" if -exclude < low and high < exclude else "no",
        ]  # fmt: skip
    heads = ["role", "round", f"arm - {arms[0]}", "seeds", "difference in worth", "p (Holm)",
             "least seen in 80 of 100", f"above {exclude:g} excluded"]  # fmt: skip
    return "\n" + markdown(heads, rows) + "\n"


def main() -> int:
    parser = cli.plain_parser(__doc__)
    parser.add_argument("--run", nargs="+", required=True, metavar="FOLDER", help="of one problem")
    parser.add_argument("--rounds", nargs="+", type=int, metavar="N", help="default: the last")
    parser.add_argument("--programs", type=int, default=30, metavar="N", help="of each role")
    parser.add_argument("--partners", type=int, default=12, metavar="M", help="frozen programs")
    parser.add_argument("--instances", type=int, default=8, metavar="N", help="of each size")
    parser.add_argument("--table", metavar="FILE.npz", help="of the frozen programs")
    parser.add_argument(
        "--exclude", type=float, default=0.002, metavar="X", help="a difference in J to be excluded"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, help="worker processes (default: the run's)")
    parser.add_argument("--out", default="runs/policy-probe", metavar="FOLDER")
    return cli.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
