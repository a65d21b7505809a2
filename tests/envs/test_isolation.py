"""Which programs may share a process: only those that could not tell."""

import numpy as np
import pytest
from program_collection import PARTNERS, specimens

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.sandbox.gate.isolation import is_closed, is_plain
from spo_jax.envs.run.sandbox.gate.policy import check
from spo_jax.program import Pair, Program

SHELL = """{imports}
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    {body}
    tour.extend(removed_nodes)
    return tour
"""


def closed(body: str, imports: str) -> bool:
    text = SHELL.format(imports=imports, body=body.replace("\n", "\n    "))
    return is_closed(check(text, "repair", get_problem("tsp").interface))


@pytest.mark.parametrize(
    ("body", "imports"),
    [
        ("x = set(tour) | {1, 2}", ""),
        ("tour.sort(key=lambda v: dist[0][v])", ""),
        ("f = lambda v: dist[0][v]\nx = [f(v) for v in tour]", ""),
        ("pop = tour.pop\nx = [pop()]\ntour += x", ""),
        ("x = sum(a < b for a, b in zip(tour, tour[1:]))", ""),
        ("best = float('inf')\nx = min(map(int, tour), default=best)", ""),
        ("x = {v: k for k, v in enumerate(tour)}\ny = sorted(x.values())", ""),
        ("x = heapq.nsmallest(3, tour)\npush = heapq.heappush\npush(x, 3)", "import heapq"),
        ("x = math.inf\ny = m.sqrt(2)", "import math\nimport math as m"),
        ("x = defaultdict(list)\nx[1].append(2)", "from collections import defaultdict"),
        ("x = sorted([(1, 2)], key=itemgetter(1))", "from operator import itemgetter"),
        ("x = rng.choice(tour)\ny = rng.normal(0, 1)", ""),
        ("x = list(it.product(tour, tour))", "import itertools as it"),
        ("x = reduce(lambda a, b: a + b, tour)", "from functools import reduce"),
        ("assert tour, 'nothing left'", ""),
        ("x = [a + b for a, b in zip(tour, map(abs, tour))]", ""),
        ("x = max((v for v in tour), key=lambda v: -v)", ""),
        ("if not tour:\n    raise ValueError('nothing left')", ""),
    ],
)
def test_plain_programs_share_a_process(body: str, imports: str) -> None:
    assert closed(body, imports)


@pytest.mark.parametrize(
    ("body", "imports"),
    [
        ("x = np.zeros(3)", "import numpy as np"),
        ("x = 3", "from numpy import zeros"),
        ("try:\n    x = [0] * 10 ** 9\nexcept MemoryError:\n    x = 0", ""),
        ("x = hash(rng.random)", ""),
        ("f = hash\nx = f(tour.pop)", ""),
        ("x = f'{tour.pop}'", ""),
        ("x = repr(tour.pop)", ""),
        ("x = str(tour.pop)", ""),
        ("x = '%s' % tour.pop", ""),
        ("x = {object(), object()}", ""),
        ("x = {(lambda: 0), (lambda: 1)}", ""),
        ("x = {rng.random, rng.choice}", ""),
        ("x = {choice, shuffle}", "from random import choice, shuffle"),
        ("x = {random.choice, random.shuffle}", "import random"),
        ("x = {tour.pop, tour.sort}", ""),
        ("f = tour.pop\ng = f\nx = {g}", ""),
        ("f = tour.pop\nx = {f: 1}", ""),
        ("def f():\n    return 1\nx = {f, f}", ""),
        ("def f():\n    return f\nx = {f()}", ""),
        ("x = {iter(tour), iter(tour)}", ""),
        ("x = set(map(iter, [tour, tour]))", ""),
        ("x = {zip(tour), zip(tour)}", ""),
        ("x = [zip(tour)]\ny = set(x)", ""),
        ("x = {(v for v in tour), (v for v in tour)}", ""),
        ("x = {{1: 2}.values(), {1: 2}.values()}", ""),
        ("x = {itertools.count(), itertools.count()}", "import itertools"),
        ("x = {it.count(), it.count()}", "import itertools as it"),
        ("x = {itemgetter(1), itemgetter(2)}", "from operator import itemgetter"),
        ("x = {partial(int), partial(int)}", "from functools import partial"),
        ("x = {ValueError('a'), ValueError('b')}", ""),
        ("x = {float('nan'), float('NaN')}", ""),
        ("x = {float('na' + 'n')}", ""),
        ("a, b = 'na', 'n'\nx = float(a + b)", ""),
        ("x = list(dict(na=1, n=2))", ""),
        ("def f(**x):\n    return list(x)\ny = f(na=1)", ""),
        ("x = chr(37)", ""),
        ("x = dict(key=lambda: 1)['key']", ""),
        ("def keep(key):\n    return key\nx = {keep(key=lambda: 1)}", ""),
        ("x = {min(iter(tour), iter(tour), key=len)}", ""),
        ("x = {next(iter([]), iter(tour))}", ""),
        ("x = {next(iter([]), {1: 2}.values())}", ""),
        ("x = {sum([], iter(tour))}", ""),
        ("list = copy.copy\nx = {list(iter(tour))}", "import copy"),
        ("def f(tuple):\n    return tuple(iter([1]))\nx = f(copy.copy)", "import copy"),
        ("x = min([tour], key=len)", "import copy as min"),
        ("x = {math.nan}", "import math"),
        ("def f():\n    yield 1\nx = {f(), f()}", ""),
        ("x = dist + dist", ""),
        ("x = [v for v in dist.shape]", ""),
    ],
)
def test_whatever_could_tell_has_a_process_per_rollout(body: str, imports: str) -> None:
    assert not closed(body, imports)


def test_arguments_are_plain() -> None:
    assert is_plain((((1.0, 2.0), (3.0,)), 4, "x", None, True))
    for other in ([1], np.zeros(2), np.float64(1.0), {1}, object(), lambda: 0):
        assert not is_plain((1, (2, other)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tsp", "cvrp"])
def test_a_process_of_its_own_changes_no_result(name: str) -> None:
    """Every lawful program, with and without an unused import that has it isolated."""
    mine = [s for s in specimens("lawful") if s.fields["problem"] == name and s.expect == "ok"]
    problem = get_problem(name)
    instances = problem.sample(20, 1, 7)
    results = []
    for imports in ("", "\nimport numpy as unused_and_isolated\n"):
        pairs = []
        for s in mine:
            program, role = s.program(), s.fields["role"]
            other = "repair" if role == "destroy" else "destroy"
            partner = Program.from_source(other, PARTNERS[name, other] + imports)
            pairs.append(Pair(*((program, partner) if role == "destroy" else (partner, program))))
        with LocalEvaluator(problem, 2, cpu_seconds=100) as e:
            results.append(e.run(pairs, instances, (0, 1), 12))
    together, apart = results
    assert together.ok.all()
    np.testing.assert_array_equal(together.best_cost, apart.best_cost)
    np.testing.assert_array_equal(together.code, apart.code)


def test_an_array_drawn_where_none_was_expected_changes_no_result() -> None:
    """`choice` with a size given as a value cannot be told from the text."""
    text = """
def destroy(dist, current_tour, steps_since_improvement, rng):
    counts = [None, 3]
    removed = list(rng.choice(current_tour, counts[1], False))
    return [v for v in current_tour if v not in removed], removed
"""
    assert is_closed(check(text, "destroy", get_problem("tsp").interface))
    repair = Program.from_source("repair", PARTNERS["tsp", "repair"])
    problem = get_problem("tsp")
    costs = []
    for imports in ("", "\nimport numpy\n"):
        pair = Pair(Program.from_source("destroy", text + imports), repair)
        with LocalEvaluator(problem, cpu_seconds=100) as e:
            found = e.run([pair], problem.sample(20, 2, 7), (0, 1), 12)
        assert found.ok.all(), found.failure(0)
        costs.append(found.best_cost)
    np.testing.assert_array_equal(*costs)
