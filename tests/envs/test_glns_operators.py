"""Operators written to the interface of G-LNS, as programs of ours."""

import random

import numpy as np
import pytest

from spo_jax.cli import main
from spo_jax.envs.glns_operators import is_operators, load_each, load_operators
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.adaptive import PLAIN, Adaptation
from spo_jax.envs.run.lns import Outcome
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.sandbox.gate.namespace import make_globals, make_rng
from spo_jax.errors import InputError
from spo_jax.program import load_pair, save_pair

TSP = '''
"""Operators of somebody."""
import copy, random
import numpy as np

np.random.seed(3)
LONGEST = 1000


def nearest(x, count, data):
    """The nodes nearest to one of them."""
    coordinates = data["coordinates"]
    centre = x[np.random.randint(len(x))]
    order = np.argsort(np.linalg.norm(coordinates - coordinates[centre], axis=1))
    return [node for node in order if node in x][:count]


def destroy_near(x, destroy_cnt, problem_data=None):
    random.seed(0)
    removed = nearest(x, min(destroy_cnt + 40, LONGEST), problem_data)  # far too many
    return removed, [node for node in reversed(x) if node not in removed]


def destroy(x, destroy_cnt, problem_data):
    new = copy.deepcopy(x)
    removed = list(np.random.choice(new, destroy_cnt, replace=False))
    for node in removed:
        new.remove(node)
    return removed, new


def insert_v1(x, removed, problem_data):
    dist = problem_data["distance_matrix"]
    x = list(x)
    np.random.shuffle(removed)
    for node in removed:
        if np.random.rand() < 0.05:
            x.insert(random.randint(0, len(x)), node)
            continue
        costs = [dist[x[i - 1], node] + dist[node, x[i]] - dist[x[i - 1], x[i]]
                 for i in range(len(x))]
        x.insert(int(np.argmin(costs)), node)
    return np.array(x)


if __name__ == "__main__":
    print(destroy([1, 2, 3], 1, None))
'''

CVRP = """
def destroy_v1(x, destroy_cnt, problem_data):
    import random
    assert problem_data["depot_idx"] == 0
    customers = [c for route in x for c in route]
    removed = random.sample(customers, destroy_cnt)
    return removed, [[c for c in route if c not in removed] for route in x]


def repair_v1(x, removed_customers, problem_data):
    demands, capacity = problem_data["demands"], problem_data["capacity"]
    dist = problem_data["distance_matrix"]
    routes = [route[:] for route in x]
    for c in removed_customers:
        best = (2 * dist[0][c], None, 0)
        for r, route in enumerate(routes):
            if demands[route].sum() + demands[c] > capacity:
                continue
            path = [0, *route, 0]
            for k in range(len(path) - 1):
                more = dist[path[k]][c] + dist[c][path[k + 1]] - dist[path[k]][path[k + 1]]
                if more < best[0]:
                    best = (more, r, k)
        if best[1] is None:
            routes.append([c])
        else:
            routes[best[1]].insert(best[2], c)
    return routes
"""


@pytest.fixture
def file(tmp_path):
    def write(text, name="operators.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def rolled_out(problem, pair, steps=60, seed=0):
    known = get_problem(problem)
    with LocalEvaluator(known, 1, seed=seed) as evaluator:
        assert evaluator.check([pair.destroy, pair.repair]) == [None, None]
        return evaluator.run([pair], known.sample(30, 1, 7), seeds=(0, 1), steps=steps)


@pytest.mark.long
@pytest.mark.parametrize(("problem", "text"), [("tsp", TSP), ("cvrp", CVRP)])
def test_operators_run_and_repeat(file, problem, text):
    pair = load_operators(file(text), get_problem(problem))
    first = rolled_out(problem, pair)
    assert first.ok.all(), first.reason
    assert (first.final_cost < 0.6 * first.initial_cost).all()
    assert np.array_equal(rolled_out(problem, pair).best_cost, first.best_cost)
    assert not np.array_equal(rolled_out(problem, pair, seed=1).best_cost, first.best_cost)


def run_alone(program, *arguments):
    """What a program returns, run here in the names that the sandbox gives it."""
    rng = make_rng(5)
    names = make_globals(rng)
    exec(program.source, names)
    return names[program.role](*arguments, rng)


def test_a_destroy_is_made_to_keep_the_contract(file):
    pair = load_operators(file(TSP), get_problem("tsp"))
    dist = get_problem("tsp").sample(40, 1, 0)[0].dist
    tour = random.Random(1).sample(range(40), 40)
    sizes = set()
    for k in range(12):
        partial, removed = run_alone(pair.destroy, dist, tour[k:] + tour[:k], 0)
        assert sorted([*partial, *removed]) == list(range(40))
        assert partial == [node for node in tour[k:] + tour[:k] if node in set(partial)]
        assert all(type(node) is int for node in removed)
        sizes.add(len(removed))
    assert sizes <= {8, 14}  # a fifth, or 35% of those that asked for more
    nothing = TSP.replace("    return removed, new", "    return [], new")
    nothing = nothing.replace("def destroy_near", "def near_destroy")
    pair = load_operators(file(nothing), get_problem("tsp"))
    partial, removed = run_alone(pair.destroy, dist, tour, 0)
    assert (len(partial), len(removed)) == (39, 1)


def test_coordinates_are_recovered_from_distances(file):
    source = load_operators(file(TSP), get_problem("tsp")).destroy.source
    names = make_globals(make_rng(0))
    exec(source, names)
    for seed in range(5):
        dist = get_problem("tsp").sample(25, 1, seed)[0].dist
        found = names["adapter_coordinates"](dist)
        again = np.linalg.norm(found[:, None] - found[None], axis=2)
        assert np.allclose(again, dist, atol=1e-6)
    same = names["adapter_coordinates"](np.zeros((3, 3)))
    assert np.allclose(same, 0)


def test_operators_that_need_no_coordinates_pay_for_none(file):
    pair = load_operators(file(CVRP), get_problem("cvrp"))
    assert "coordinates" not in pair.destroy.source
    assert pair.destroy.strategy == "The G-LNS operators of operators.py: destroy_v1."


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("np.random.rand()", "adapter_random.random()"),
        ("np.random.rand(3)", "adapter_random.random(3)"),
        ("np.random.randn(3, 2)", "adapter_random.standard_normal((3, 2))"),
        ("np.random.randint(0, 5)", "adapter_random.integers(0, 5)"),
        ("np.random.permutation(x)", "adapter_random.permutation(x)"),
        ("np.random.default_rng(7).normal()", "adapter_random.normal()"),
        ("np.random.seed(np.random.randint(9))", "None"),
        ("random.Random(3).random()", "adapter_random.random()"),
        ("random.choice(x)", "random.choice(x)"),
        ("npr.uniform(0, 1)", "adapter_random.uniform(0, 1)"),
        ("[f for f in (np.random.choice, np.max)]", "[f for f in (adapter_random.choice, np.max)]"),
    ],
)
def test_global_generators_become_the_rollouts(file, theirs, ours):
    text = (
        "import random\nimport numpy as np\nimport numpy.random as npr\n"
        f"def destroy(x, n, data):\n    value = {theirs}\n    return [x[0]], x[1:]\n"
        "def repair(x, removed, data):\n    return x + removed\n"
    )
    pair = load_operators(file(text), get_problem("tsp"))
    assert f"value = {ours}\n" in pair.destroy.source
    rollouts = rolled_out("tsp", pair, steps=2) if "npr" in theirs else None
    assert rollouts is None or rollouts.ok.all()


def test_a_pair_file_can_be_written(file, tmp_path):
    pair = load_operators(file(CVRP), get_problem("cvrp"))
    path = save_pair(tmp_path / "pair.py", pair)
    again = load_pair(path)
    assert np.array_equal(
        rolled_out("cvrp", again, steps=10).best_cost, rolled_out("cvrp", pair, steps=10).best_cost
    )


def test_they_are_told_from_pair_files(file, tmp_path):
    assert is_operators(file(TSP))
    assert not is_operators(tmp_path)
    assert not is_operators(tmp_path / "none.py")
    assert not is_operators(file("def (", "broken.py"))
    ours = "def destroy(d, t, z, rng):\n    return t[1:], t[:1]\n"
    ours += "def repair(d, t, r, z, rng):\n    return t + r\n"
    assert not is_operators(file(ours, "ours.py"))
    one = "def destroy(x, n, data):\n    return x, x\n"
    assert not is_operators(file(one, "one.py"))


@pytest.mark.parametrize(
    ("text", "problem", "complaint"),
    [
        (TSP, "third_problem:PathProblem", "path has no way to take operators of G-LNS"),
        (CVRP.replace("repair_v1", "fix"), "cvrp", "has no repair of G-LNS: a function repair"),
        (TSP.replace("import copy", "import sklearn.cluster, copy"), "tsp", "file imports sklearn"),
        (CVRP.replace("    import random", "    import time"), "cvrp", "destroy_v1 imports time"),
        ("def (", "tsp", "syntax error"),
    ],
)
def test_what_cannot_be_loaded_is_one_sentence(file, text, problem, complaint):
    with pytest.raises(InputError, match=complaint):
        load_operators(file(text), get_problem(problem))


def test_the_command_line_takes_them(file, capsys):
    argv = ["evaluate", str(file(CVRP)), "--on", "uniform:10x1", "--steps", "5", "--seeds", "1",
            "--workers", "1", "--references", "none"]  # fmt: skip
    assert main(argv) == 2
    assert "add --problem (tsp, cvrp, vrptw)" in capsys.readouterr().err
    assert main([*argv, "--problem", "cvrp"]) == 0
    assert "0/1" in capsys.readouterr().out


CLUSTERS = """
import numpy as np


def destroy_clusters(x, destroy_cnt, problem_data):
    from sklearn.cluster import KMeans
    points = problem_data["coordinates"]
    model = KMeans(n_clusters=3, random_state=42, n_init=10)
    model.fit(points)
    labels = KMeans(3)
    labels = labels.fit_predict(points)
    assert (model.labels_ == labels).all()
    for k in range(3):
        assert np.allclose(points[labels == k].mean(axis=0), model.cluster_centers_[k])
    nearest = np.linalg.norm(points[:, None] - model.cluster_centers_, axis=2).argmin(axis=1)
    assert (nearest == labels).all()
    removed = [v for v in x if labels[v] == labels[x[0]]][:destroy_cnt]
    return removed, [v for v in x if v not in removed]
"""


@pytest.mark.parametrize("rules", [Adaptation(), PLAIN], ids=["theirs", "ours"])
def test_each_operator_alone_in_an_adaptive_search(file, rules):
    """KMeans as well, whose labels and centres are those of a fixed point of Lloyd's algorithm."""
    problem = get_problem("tsp")
    programs = load_each(file(TSP + CLUSTERS), problem)
    assert {role: len(each) for role, each in programs.items()} == {"destroy": 3, "repair": 1}
    assert "adapter_fit" not in programs["destroy"][0].source
    assert "adapter_fit" in programs["destroy"][2].source
    assert "sklearn" not in programs["destroy"][2].source
    instances = problem.sample(30, 1, 2)
    with LocalEvaluator(problem) as evaluator:
        assert not any(evaluator.check([*programs["destroy"], *programs["repair"]]))
        found = evaluator.adaptive(
            programs["destroy"], programs["repair"], instances, (0,), 60, rules, carry=False
        )
    assert set(found.drawn[..., 0].ravel()) == {0, 1, 2}
    assert Outcome.FAILED not in found.outcomes
    best = found.rollouts.best_cost[0, 0, 0]
    assert best[-1] < 0.5 * best[0]
    assert (Outcome.WORSE in found.outcomes) == (rules != PLAIN)


def test_operators_as_long_together_as_published_ones_are_one_program(file):
    """The five repairs for the TSP have 33,571 characters."""
    pair = load_operators(file(long_repairs(5, 48)), get_problem("tsp"))
    assert 33_571 < len(pair.repair.source) < 40_000
    with LocalEvaluator(get_problem("tsp")) as evaluator:
        rollouts = evaluator.run([pair], get_problem("tsp").sample(12, 1, 0), (0,), 10)
    assert rollouts.failure(0) is None


@pytest.mark.long
def test_operators_that_are_too_long_together_are_not_too_long_alone(file):
    many = long_repairs(2, 240)
    with pytest.raises(InputError, match="at most 65536"):
        load_operators(file(many), get_problem("tsp"))
    programs = load_each(file(many), get_problem("tsp"))
    assert len(programs["repair"]) == 3
    assert all(len(program.source) < 65_536 for program in programs["repair"])


def long_repairs(count, lines):
    """The file TSP with further repairs, each of so many more lines."""
    body = TSP.split("def insert_v1")[1].split("if __name__")[0]
    first = "    x = list(x)\n"
    more = f"    x = [node for node in x if node != '{99 * '-'}']\n" * lines
    longer = body.replace(first, first + more)
    return TSP + "".join(f"\n\ndef insert_long{k}{longer}" for k in range(count))
