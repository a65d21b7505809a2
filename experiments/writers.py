"""What a writer of programs can do: how many answers run, and how much its first drafts leave.

    python experiments/writers.py                                   # three writers, 60 pairs, TSP
    python experiments/writers.py --problem cvrp --size 150 --writers embedded novice
    python experiments/writers.py --writers runs/novice/model       # a folder
    python experiments/writers.py --base-url http://127.0.0.1:8080/v1 --writers NAME --kit none \\
        --forms initialization mechanism-replacement --answers 60 --out runs/writers

With --base-url the writers are models at an endpoint, and what is printed is the funnel of their
answers, by form and role: parsed, through the gate, valid (a rollout each on 30 and 60 nodes with a
plain partner does not fail), each with a 95% interval; distinct programs, copies of a parent, and
programs that are better there than their first parent; then the most frequent reasons. Parents are
the grammar's drafts. --style compares prompts; --out keeps the answers, and asks for none again.

Without it, random pairs of first drafts:

A writer is a model of the package, the folder of one, `grammar`, or `drafts`, the grammar's novice.
It answers as in a first round: a destroy for each prompt, and one repair that was shown it.
Printed: the shares of programs that pass the gates and, of these, that are distinct; the gaps to
the reference (LKH or PyVRP) of all pairs whose programs pass, with 95% bootstrap intervals over
pairs; pairs with a rollout that failed, whose gap is infinite; CPU seconds a rollout.
"""

import argparse
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.funnel import COLUMNS, Bench
from embedded_quality import Writer
from spo_jax.config import Settings
from spo_jax.constants import EMBEDDED
from spo_jax.envs.problem import Problem
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.references import reference
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Rollouts
from spo_jax.program import ROLES, Pair, Program, Role, normalise
from spo_jax.program.grammar.base import INITIALIZATION
from spo_jax.rl.policy import model_folder
from spo_jax.search.writing.prompts import Templates, templates_of

GRAMMARS = ("grammar", "drafts")
SHARES = (0, 10, 50)  # per cent of the pairs
RESAMPLED = 2000
SAMPLED = (0.8, 0.95)  # temperature and top-p of a model's answers


@dataclass(frozen=True)
class Written:
    """destroys and repairs: those of prompt i, None where what came is no program."""

    destroys: list[Program | None]
    repairs: list[Program | None]


def by_grammar(problem: Problem, kit: bool, novice: bool, count: int, seed: int) -> Written:
    rng = random.Random(seed)

    def programs(role: Role) -> list[Program | None]:
        grammar = problem.grammar(role, kit)
        grammar = grammar.novice() if novice else grammar
        texts = [grammar.render(grammar.sample(rng)) for _ in range(count)]
        return [Program.from_source(role, source, strategy) for strategy, source in texts]

    return Written(programs("destroy"), programs("repair"))


def by_model(problem: Problem, kit: bool, writer: Writer, count: int, seed: int) -> Written:
    templates = templates_of(problem.name, kit)

    def programs(role: Role, shown: Sequence[Program | None]) -> list[Program | None]:
        prompts = [
            templates.render(problem.name, role, INITIALIZATION, [], destroy) for destroy in shown
        ]
        answers = writer.write(prompts, 1, seed + (role == "repair"))
        return [found if isinstance(found, Program) else None for _, found in answers]

    destroys = programs("destroy", [None] * count)
    good = [each for each in destroys if each is not None]
    repairs = iter(programs("repair", good))
    return Written(destroys, [None if each is None else next(repairs) for each in destroys])


def distinct(programs: Sequence[Program]) -> float:
    return len({normalise(program.source) for program in programs}) / max(1, len(programs))


def gaps(rollouts: Rollouts, references: Sequence[float]) -> np.ndarray:
    """[P] mean gap of each pair in per cent; inf where a rollout failed."""
    costs = np.where(rollouts.status == 0, rollouts.best_cost[..., -1], np.inf)
    found: np.ndarray = 100 * (costs / np.asarray(references)[None, :, None] - 1).mean(axis=(1, 2))
    return found


def spread(gaps: np.ndarray, seed: int = 0) -> list[str]:
    """The percentiles SHARES of the gaps, with intervals but for the lowest."""
    rng = np.random.default_rng(seed)
    drawn = gaps[rng.integers(len(gaps), size=(RESAMPLED, len(gaps)))]
    cells = []
    for share in SHARES:
        # "higher": no mean of a number and infinity
        cell = f"{np.percentile(gaps, share, method='higher'):.1f}"
        if share:
            many = np.percentile(drawn, share, axis=1, method="higher")
            low, high = np.percentile(many, (2.5, 97.5), method="nearest")
            cell += f" ({low:.1f} to {high:.1f})"
        cells.append(cell)
    return cells


def funnel(options: argparse.Namespace, problem: Problem, model: str) -> None:
    """Prints the funnel of a model at an endpoint."""
    from spo_jax.rl.endpoint.generator import Endpoint

    settings = Settings.make(
        problem=problem.name, generator="openai", base_url=options.base_url, model=model,
        kit=options.kit, prompts_style=options.style, prompts=options.prompts,
        max_new_tokens=options.max_new_tokens, concurrency=options.concurrency,
    )  # fmt: skip
    templates = Templates.of(settings.generator, problem)
    writer = Endpoint(settings)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        writer.open(options.out, print)
    with LocalEvaluator(problem, options.workers, seed=0) as evaluator:
        bench = Bench.of(problem, evaluator, options.kit == "lns")
        for form in options.forms:
            for role in options.roles:
                prompts = bench.prompts(templates, role, form, options.prompts_each, options.seed)
                began = time.monotonic()
                answers = writer.generate(prompts, options.answers // len(prompts), options.seed)
                seconds = time.monotonic() - began
                found = bench.cell(prompts, answers)
                cells = (model, options.style, problem.name, form, role, *found.row())
                print(f"| {' | '.join(cells)} | {seconds:.0f} |", flush=True)
                for why, many in found.reasons.most_common(options.reasons):
                    print(f"    {many:3d}  {why}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--problem", choices=("tsp", "cvrp", "vrptw"), default="tsp")
    parser.add_argument("--writers", nargs="+", default=[EMBEDDED, *GRAMMARS])
    parser.add_argument("--base-url", help="of an endpoint: the funnel of its models")
    parser.add_argument("--forms", nargs="+", default=[INITIALIZATION])
    parser.add_argument("--roles", nargs="+", choices=ROLES, default=ROLES)
    parser.add_argument("--answers", type=int, default=60, help="to a form and role")
    parser.add_argument("--prompts-each", type=int, default=2, help="prompts that share them")
    parser.add_argument("--style", choices=("paper", "frame"), default="frame")
    parser.add_argument("--prompts", help="folder of prompt templates")
    parser.add_argument("--max-new-tokens", type=int, default=700)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--reasons", type=int, default=0, help="most frequent ones to print")
    parser.add_argument("--out", type=Path, help="folder that keeps the answers")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--size", type=int, default=200)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--instances", type=int, default=3)
    parser.add_argument("--kit", choices=("lns", "none"), default="lns")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    problem, kit = get_problem(options.problem), options.kit == "lns"
    if options.base_url is not None:
        heads = ("writer", "style", "problem", "form", "role", *COLUMNS, "s")
        print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
        for model in options.writers:
            funnel(options, problem, model)
        return
    folders = {name: model_folder(name) for name in options.writers if name not in GRAMMARS}
    instances = problem.sample(options.size, options.instances, seed=991)
    known = [reference(problem, instance, "quick").reference for instance in instances]
    best = [float(cost) for cost in known if cost is not None]
    columns = "writer, valid, distinct destroys, distinct repairs, pairs, best, best tenth, median"
    print(f"| {' | '.join(f'{columns}, failed, s a rollout'.split(', '))} |")
    print(f"|---{'|---:' * 9}|")
    with LocalEvaluator(problem, options.workers, seed=0) as evaluator:
        for name in options.writers:
            written = (
                by_grammar(problem, kit, name == "drafts", options.pairs, options.seed)
                if name in GRAMMARS
                else by_model(
                    problem, kit, Writer(folders[name], *SAMPLED), options.pairs, options.seed
                )
            )
            both = [*written.destroys, *written.repairs]
            programs = [each for each in both if each is not None]
            verdicts = evaluator.check(programs)
            good = {p.digest for p, verdict in zip(programs, verdicts, strict=True) if not verdict}
            valid = [each for each in programs if each.digest in good]
            pairs = [
                Pair(destroy, repair)
                for destroy, repair in zip(written.destroys, written.repairs, strict=True)
                if destroy and repair and {destroy.digest, repair.digest} <= good
            ]
            rollouts = evaluator.run(pairs, instances, (0,), options.steps, fail_fast=False)
            found = gaps(rollouts, best)
            shares = [distinct([p for p in valid if p.role == role]) for role in ROLES]
            cells = [
                name, f"{len(valid) / len(both):.0%}", *(f"{share:.0%}" for share in shares),
                str(len(pairs)), *spread(found), str(int(np.isinf(found).sum())),
                f"{np.nanmean(rollouts.seconds):.2f}",
            ]  # fmt: skip
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
