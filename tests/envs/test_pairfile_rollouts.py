"""A pair that went through a pair file rolls out as it did before, step by step."""

from itertools import cycle, islice
from pathlib import Path

import numpy as np
import pytest
from program_collection import CPU_SECONDS, SIZE, STEPS, specimens

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.errors import Rejection
from spo_jax.program import Pair, Program, Role
from spo_jax.program.pairfile import format_pair, load_pair


def lawful(problem: str, role: Role) -> list[Program]:
    found = []
    for specimen in specimens("lawful"):
        if specimen.name.startswith("unstable"):
            continue  # what they do hangs on where objects lie, so on the length of their own text
        if (specimen.fields["problem"], specimen.fields["role"]) == (problem, role):
            try:
                found.append(specimen.program())
            except Rejection:
                continue
    return found


def crossed(problem: str) -> list[Pair]:
    """Every lawful program in some pair with another."""
    destroys, repairs = lawful(problem, "destroy"), lawful(problem, "repair")
    count = max(len(destroys), len(repairs))
    return [
        Pair(destroy, repair)
        for destroy, repair in islice(zip(cycle(destroys), cycle(repairs), strict=False), count)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_lawful_programs_survive_the_round_trip(problem: str, tmp_path: Path) -> None:
    pairs = crossed(problem)
    assert len(pairs) > 5
    again = []
    for number, pair in enumerate(pairs):
        path = tmp_path / f"{number}.py"
        path.write_text(format_pair(pair), "utf-8")
        again.append(load_pair(path))
        assert format_pair(again[-1]) == path.read_text("utf-8")
    instances = get_problem(problem).sample(SIZE, 1, 0)
    with LocalEvaluator(get_problem(problem), cpu_seconds=CPU_SECONDS) as evaluator:
        before = evaluator.run(pairs, instances, seeds=(0,), steps=STEPS)
        after = evaluator.run(again, instances, seeds=(0,), steps=STEPS)
    for number, pair in enumerate(pairs):
        failure = after.failure(number)
        assert before.failure(number) == failure, (pair.destroy.source, pair.repair.source, failure)
    np.testing.assert_array_equal(before.best_cost, after.best_cost)
    np.testing.assert_array_equal(before.code, after.code)
