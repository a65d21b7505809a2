"""Solutions that are dicts and matrices: rollouts, steps, solving and the report of a run."""

import random
from itertools import permutations

import numpy as np
import pytest
import shapes

import spo_jax
from spo_jax import Pair, Program, get_problem
from spo_jax.envs.report.solve import solve
from spo_jax.envs.run.jobs.onestep import take_step
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.generator import Generator
from spo_jax.program import Completion

PROBLEMS = {
    "shapes:DictProblem": (shapes.DICT_DESTROY, shapes.DICT_REPAIR),
    "shapes:MatrixProblem": (shapes.MATRIX_DESTROY, shapes.MATRIX_REPAIR),
}


def pair_of(name):
    destroy, repair = PROBLEMS[name]
    return Pair(Program.from_source("destroy", destroy), Program.from_source("repair", repair))


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_search_finds_the_optimum(name):
    problem = get_problem(name)
    [instance] = problem.sample(6, 1, 0)
    costs = instance.extra["costs"]
    best = min(
        sum(costs[job, agent] for job, agent in enumerate(agents))
        for agents in set(permutations([0, 0, 1, 1, 2, 2]))
    )
    with LocalEvaluator(problem) as evaluator:
        found = evaluator.run([pair_of(name)], [instance], (0, 1), 150)
    assert found.ok.all(), found.reason
    assert found.final_cost.min() == pytest.approx(best)
    assert solve(instance, pair_of(name), problem, steps=150).cost == pytest.approx(best)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_step_tells_what_the_worker_had(name):
    """The repair uses up what it gets, which is not what a step tells."""
    problem = get_problem(name)
    [instance] = problem.sample(6, 1, 0)
    start = problem.rules(instance).start(random.Random(0))
    with LocalEvaluator(problem) as evaluator:
        step = take_step(evaluator, pair_of(name), instance, start, 0)
    assert len(step.removed) == 2
    if name == "shapes:DictProblem":
        left = {job: agent for job, agent in start.items() if job not in step.removed}
        assert step.partial == left
        assert left.items() <= step.candidate.items()
    else:
        jobs = [job for job, agent in step.removed]
        assert all(start[job, agent] == 1 for job, agent in step.removed)
        left = start.copy()
        left[jobs] = 0
        assert step.partial == left.tolist()
        assert (step.candidate >= np.array(step.partial)).all()
    assert step.cost == problem.cost(instance, step.candidate)


CONTRACT = "Each job needs an agent. $state_input $adaptation"


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_run_and_its_report(name, tmp_path):
    class Writer(Generator):
        def generate(self, prompts, n, seed):
            texts = dict(zip(("destroy", "repair"), PROBLEMS[name], strict=True))
            return [
                tuple(
                    Completion(f"```python\n{texts[prompt.role]}\n# {k} {seed}\n```")
                    for k in range(n)
                )
                for prompt in prompts
            ]

    problem = get_problem(name)
    for role in ("destroy", "repair"):
        paired = " $paired_destroy" if role == "repair" else ""
        (tmp_path / f"{problem.name}-{role}.txt").write_text(CONTRACT + paired)
    run = spo_jax.discover(
        name, preset="smoke", generator=Writer(), prompts=str(tmp_path), size=6, rounds=1,
        path=tmp_path / "run", report=True,
    )  # fmt: skip
    assert run.best is not None
    page = (tmp_path / "run" / "report.html").read_text()
    assert "ended at step" not in page
    assert "was not played" not in page
