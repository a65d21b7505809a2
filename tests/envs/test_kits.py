"""What programs see of a kit: the gate, the views of the data, the shared process."""

import ast
import hashlib
import importlib
from types import SimpleNamespace

import numpy as np
import pytest
from program_collection import good_pair

from spo_jax.envs.kits import changed_sources, load_kit
from spo_jax.envs.problem import Problem
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.run.sandbox.gate.isolation import is_closed
from spo_jax.envs.run.sandbox.gate.policy import check
from spo_jax.envs.run.sandbox.layout import choose_layout
from spo_jax.errors import InputError, Rejection
from spo_jax.program import Pair, Program, entry_function

TSP = get_problem("tsp")
HEADER = "def destroy(dist, tour, z, rng):\n"
NAMES = ("two_opt", "radial_removal", "cost")


def judged(text: str, kit: tuple[str, ...] = NAMES):
    return check(text, "destroy", TSP.interface, kit)


LAWFUL = (
    "import lns\n" + HEADER + "    return lns.radial_removal(dist, tour, tour[0], 3)\n",
    "import lns as kit\n" + HEADER + "    return kit.radial_removal(dist, tour, tour[0], 3)\n",
    "from lns import radial_removal\n" + HEADER + "    return radial_removal(dist, tour, 0, 3)\n",
    "from lns import cost as c\n" + HEADER + "    return c(dist=dist, tour=tour), []\n",
    HEADER + "    import lns\n    return lns.cost(dist, tour), []\n",
)


@pytest.mark.parametrize("text", LAWFUL)
def test_the_kit_is_offered(text: str) -> None:
    verdict = judged(text)
    assert verdict.kit
    assert verdict.layout == "rows", "the kit takes either view, so tuples do"
    assert is_closed(verdict) == ("cost as c" not in text)  # renamed members are not followed


@pytest.mark.parametrize("text", LAWFUL)
def test_without_a_kit_there_is_no_such_module(text: str) -> None:
    with pytest.raises(Rejection, match="lns"):
        judged(text, ())


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("    return lns.prepare(dist), []\n", "lns.prepare"),
        ("    return lns.reference.cost(dist, tour), []\n", "cost"),
        ("    return lns.NATIVE, []\n", "lns.NATIVE"),
        ("    return lns._native, []\n", "lns._native"),
        ("    return lns.__dict__, []\n", "lns.__dict__"),
        ("    lns.cost = max\n    return tour, []\n", "cost"),
        ("    return lns.cost.__self__, []\n", "__self__"),
        ("    return lns.cost.__globals__, []\n", "__globals__"),
        ("    x = lns\n    return x.cost(dist, tour), []\n", "cost"),
    ],
)
def test_nothing_else_of_a_kit_can_be_named(body: str, named: str) -> None:
    with pytest.raises(Rejection, match=named):
        judged("import lns\n" + HEADER + body)


@pytest.mark.parametrize("line", ["from lns import prepare", "from lns import *", "import lns.x"])
def test_nothing_else_of_a_kit_can_be_imported(line: str) -> None:
    with pytest.raises(Rejection):
        judged(f"{line}\n" + HEADER + "    return tour, []\n")


@pytest.mark.parametrize(
    "body",
    [
        "lns = near\n    return lns(dist, 1)",  # another thing under the name
        "return near(dist, 1), lns.cost(dist + dist, tour)",
        "return lns.cost(*[dist], tour)",
        "return (lambda lns: lns.cost(dist, tour))(near)",
    ],
)
def test_doubtful_uses_get_the_array(body: str) -> None:
    text = f"import lns\ndef near(a, b):\n    return a\n{HEADER}    {body}\n"
    tree = ast.parse(text)
    assert choose_layout(tree, entry_function(tree, "destroy"), TSP.interface) == "array"


# --- programs that run ----------------------------------------------------------------------------

BOTH = {
    "tsp": (
        """
import lns
def destroy(dist, current_tour, steps_since_improvement, rng):
    center = rng.choice(current_tour)
    if steps_since_improvement % 2:
        return lns.string_removal(dist, current_tour, center, 5, rng, length=3)
    return lns.related_removal(dist, current_tour, center, 5, rng)
""",
        """
import lns
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    best, best_cost = lns.regret_insertion(dist, partial_tour, removed_nodes, k=3)
    for _ in range(3):
        order = rng.sample(removed_nodes, len(removed_nodes))
        tour, added = lns.ordered_insertion(
            dist, partial_tour, order, bound=best_cost, blink=0.1, rng=rng
        )
        if added < best_cost:
            best, best_cost = tour, added
    return lns.or_opt(dist, best, removed_nodes, moves=3)
""",
    ),
    "cvrp": (
        """
import lns
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    center = rng.randint(1, len(dist) - 1)
    if steps_since_improvement % 2:
        return lns.string_removal(dist, current_routes, center, 5, rng, gap=2)
    return lns.related_removal(dist, demands, current_routes, center, 5, rng, by_demand=1)
""",
        """
import lns
def repair(dist, demands, capacity, partial_routes, removed, steps_since_improvement, rng):
    best, best_cost = lns.regret_insertion(
        dist, demands, capacity, partial_routes, removed, noise=0.5, rng=rng
    )
    routes, added = lns.ordered_insertion(
        dist, demands, capacity, partial_routes, removed, bound=best_cost, near=4
    )
    if added < best_cost:
        best = routes
    return lns.two_opt_star(dist, demands, capacity, best, removed)
""",
    ),
}
# The same where the data come as arrays, and each rollout has a process of its own.
AS_ARRAY = "    dist * 1\n"


def pairs_of(problem: str) -> list[Pair]:
    destroy, repair = BOTH[problem]
    plain = Pair(Program.from_source("destroy", destroy), Program.from_source("repair", repair))
    arrays = Program.from_source("repair", repair.replace("rng):\n", "rng):\n" + AS_ARRAY))
    return [plain, Pair(plain.destroy, arrays), good_pair(problem)]


@pytest.mark.long
@pytest.mark.parametrize("name", ["tsp", "cvrp"])
def test_the_view_and_the_process_change_nothing(name: str) -> None:
    problem = get_problem(name)
    results = []
    for workers in (1, 2):
        with LocalEvaluator(problem, workers) as evaluator:
            found = evaluator.run(pairs_of(name), problem.sample(20, 2, 1), (0, 1), 20)
        assert found.ok.all(), found.reason
        assert np.array_equal(found.best_cost[0], found.best_cost[1])
        assert np.array_equal(found.code[0], found.code[1])
        results.append(found.best_cost)
    assert np.array_equal(*results)


@pytest.mark.parametrize("name", ["tsp", "cvrp"])
def test_an_evaluator_without_the_kit_refuses_them(name: str) -> None:
    problem = get_problem(name)
    with LocalEvaluator(problem, kit=False) as evaluator:
        found = evaluator.run(pairs_of(name), problem.sample(20, 1, 1), (0,), 5)
        [refusal] = evaluator.check([pairs_of(name)[0].repair])
    assert [Status(int(each)).label for each in found.status[:, 0, 0]] == [
        "rejected", "rejected", "ok",
    ]  # fmt: skip
    assert refusal is not None
    assert "lns" in refusal.reason


@pytest.mark.parametrize(
    "body",
    [
        "return lns.cost(dist, current_tour + current_tour), []",
        "return lns.cost(dist, [0, 10**30]), []",
        "return lns.cost(dist, [-1]), []",
        "return lns.cost(dist, ['a']), []",
        "return lns.random_removal(current_tour, -1, rng)",
        "return lns.random_removal(current_tour, 3, None)",
        "return lns.random_removal(current_tour, 3, lns)",
        "return lns.radial_removal(dist, current_tour, 10**9, 3)",
        "return lns.ordered_insertion(dist, current_tour, [], bound=float('na' + 'n')), []",
        "return lns.two_opt(dist, current_tour, [0], near=-5), []",
        "return lns.cost(), []",
        "return lns.cost(1, 2, 3, 4, 5), []",
        "return lns.cost(dist=dist), []",
    ],
)
def test_a_wrong_argument_fails_the_program_alone(body: str) -> None:
    source = "import lns\ndef destroy(dist, current_tour, z, rng):\n    " + body + "\n"
    good = good_pair("tsp")
    pair = Pair(Program.from_source("destroy", source), good.repair)
    with LocalEvaluator(TSP) as evaluator:
        found = evaluator.run([pair, good], TSP.sample(20, 1, 1), (0,), 3)
    assert [Status(int(each)).label for each in found.status[:, 0, 0]] == ["crash", "ok"]


# --- compiled from other sources ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tsp", "cvrp"])
def test_a_compiled_kit_knows_its_sources(name: str) -> None:
    kit = importlib.import_module(get_problem(name).kit)
    if not kit.NATIVE:
        pytest.skip("the kit is not compiled here")
    assert len(kit.SOURCES) == 64
    assert changed_sources(kit) is None


def test_a_kit_is_not_used_after_its_sources_changed(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "mine" / "problem" / "my_kit"
    folder.mkdir(parents=True)
    shared, own = tmp_path / "mine" / "shared.h", folder / "native.c"
    shared.write_text("int a;\n")
    own.write_text("int b;\n")
    digest = hashlib.sha256(b"int a;\nint b;\n").hexdigest()
    (folder / "_native.py").write_text(f"SOURCES = {digest!r}\ndef half(x):\n    return x\n")
    (folder / "__init__.py").write_text(
        "__all__ = ['half']\nfrom my_kit import _native\nfrom my_kit._native import *\n"
    )
    monkeypatch.syspath_prepend(str(folder.parent))
    problem = Bare()
    problem.kit = "my_kit"
    assert load_kit(problem) is not None
    for changed, text in ((shared, "int a;\n"), (own, "int b;\n")):
        changed.write_text("long c;\n")
        with pytest.raises(InputError, match="build it again: pip install -e"):
            load_kit(problem)
        changed.write_text(text)
    own.unlink()  # an installed package has no sources
    assert load_kit(problem) is not None


# --- kits of a user's problem ---------------------------------------------------------------------


class Bare(Problem):
    name = "bare"


def test_a_problem_needs_no_kit() -> None:
    assert load_kit(Bare()) is None


@pytest.mark.parametrize(
    ("kit", "message"),
    [("no.such.module", "cannot be imported"), ("json.tool", "__all__"), ("os", "__all__")],
)
def test_a_wrong_kit_is_reported(kit: str, message: str) -> None:
    problem = Bare()
    problem.kit = kit
    with pytest.raises(InputError, match=message):
        load_kit(problem)
    with pytest.raises(InputError, match=message), LocalEvaluator(problem):
        pass


def test_a_kit_of_ones_own(tmp_path, monkeypatch) -> None:
    (tmp_path / "my_kit.py").write_text(
        "__all__ = ['half']\nSECRET = 1\ndef half(x):\n    return x\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    problem = Bare()
    problem.kit = "my_kit"
    kit = load_kit(problem)
    assert kit is not None
    assert (kit.names, kit.native) == (("half",), None)
    assert vars(kit.members) == {"half": kit.members.half}
    assert isinstance(kit.members, SimpleNamespace)
    assert kit.prepare(1, 2) is None
