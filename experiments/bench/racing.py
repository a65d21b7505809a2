"""What races save of the CPU seconds of a run's responses: evaluated once in full, then replayed.

    python experiments/bench/racing.py runs/tsp-quick-seed0 --destroys 8

The responses to the first destroys of a run are evaluated on its training instances, and the rules
that ship decide on their scores who goes on, destroy by destroy, as `spo discover --racing` does.
One line a rule: the share of rollouts that are made, and of their CPU seconds (early rollouts may
be on smaller instances); of the destroys, in how many the best response is among those evaluated in
full. A further stage also costs a job, 5 to 7 ms of CPU for each pair that goes on
(docs/results.md), which is not in it.
"""

import sys
from argparse import Namespace
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `common`
from common import cli
from common.tables import markdown
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError
from spo_jax.program import Pair
from spo_jax.search.instances import training_instances
from spo_jax.search.lab.racing import race
from spo_jax.search.plugins import evaluator_of
from spo_jax.search.racing import RULES, evaluations
from spo_jax.search.runs.run import load_run
from spo_jax.search.utility import get_utility


def told(args: Namespace) -> None:
    run = load_run(args.run)
    config, problem = run.config, get_problem(run.config.problem)
    rows: dict[str, list[Pair]] = defaultdict(list)
    for each in run.pairs:
        if each.kind == "response" and each.status == "ok":
            rows[each.destroy].append(run.pair(each.destroy, each.repair))
    chosen = [row for _, row in sorted(rows.items()) if len(row) > 1][: args.destroys]
    if not chosen:
        raise InputError(f"{args.run} has no destroy with two valid responses")
    instances, seeds = training_instances(config, problem), range(config.evaluation.rollouts)
    with evaluator_of(config, problem) as evaluator:
        pairs = [pair for row in chosen for pair in row]
        found = evaluator.run(pairs, instances, seeds=seeds, steps=config.evaluation.steps)
    order = tuple(np.array(evaluations(len(instances), len(seeds))).T)
    scores = get_utility(config.evaluation.utility)(found, instances)[:, *order]
    seconds = found.seconds[:, *order]
    ends = np.cumsum([len(row) for row in chosen])
    starts = [0, *ends[:-1]]
    lines = []
    for name, rule in RULES.items():
        made = np.concatenate([
            race(rule, scores[None, a:b])[0] for a, b in zip(starts, ends, strict=True)
        ])  # fmt: skip
        kept = [
            made[a + scores[a:b].mean(axis=1).argmax()].all()
            for a, b in zip(starts, ends, strict=True)
        ]
        lines.append([
            name, f"{made.mean():.2f}", f"{(seconds * made).sum() / seconds.sum():.2f}",
            f"{sum(kept)} of {len(kept)}",
        ])  # fmt: skip
    print(f"{len(pairs)} pairs, {seconds.sum():.1f} CPU seconds, {seconds.mean():.3f} a rollout\n")
    print(markdown(["rule", "rollouts", "CPU seconds", "best response kept"], lines))


def main() -> int:
    parser = cli.plain_parser(__doc__)
    parser.add_argument("run", metavar="RUN", help="a run folder")
    parser.add_argument("--destroys", type=int, default=8, help="whose responses are evaluated")
    return cli.main(parser, told)


if __name__ == "__main__":
    sys.exit(main())
