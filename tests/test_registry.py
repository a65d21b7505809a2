"""A user's own parts: what does not fit is told in a sentence, and a bug keeps its traceback."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

SEARCH = str(Path(__file__).parent / "search")
sys.path.insert(0, SEARCH)  # for the fakes, as pytest does for the tests there
from spo_fakes import Evaluator, Generator, play, small  # noqa: E402

import spo_jax  # noqa: E402
from spo_jax.config import Settings  # noqa: E402
from spo_jax.envs.problem import Problem  # noqa: E402
from spo_jax.envs.problems import get_problem  # noqa: E402
from spo_jax.envs.report.baselines import get_baseline  # noqa: E402
from spo_jax.envs.run.factory import get_evaluator  # noqa: E402
from spo_jax.envs.run.rollouts import Status  # noqa: E402
from spo_jax.errors import InputError, SpoError  # noqa: E402
from spo_jax.rl.updates.grpo import GrpoConfig, advantages  # noqa: E402
from spo_jax.rl.updates.learning import grpo_of  # noqa: E402
from spo_jax.search.credit import CREDITS  # noqa: E402
from spo_jax.search.method import method_of, round_of, rounds_of, variant_of  # noqa: E402
from spo_jax.search.plugins import GENERATORS, UPDATERS  # noqa: E402
from spo_jax.search.population import PANELS, SURVIVORS  # noqa: E402
from spo_jax.search.utility import UTILITIES  # noqa: E402

TAKERS = {
    "problem": get_problem,
    "credit": CREDITS.__getitem__,
    "generator": GENERATORS.__getitem__,
    "update": UPDATERS.__getitem__,
    "survivors": SURVIVORS.__getitem__,
    "panel": PANELS.__getitem__,
    "utility": UTILITIES.__getitem__,
    "evaluator": get_evaluator,
    "method": lambda name: method_of(Settings.make(method=name)),
    "advantage": lambda name: grpo_of(Settings.make(advantage=name)),
    "baseline": lambda name: get_baseline(name, get_problem("tsp")),
}
MODULES = {
    "raising": "def f():\n    raise KeyError('deep')\n\n\nf()\n",
    "leaving": "import sys\nsys.exit(3)\n",
    "wrong_syntax": "def f(:\n",
    "needy": "import no_such_thing\n",
    "nul": "x = '\0'\n",
    "kinds": "class Needs:\n    def __init__(self, more):\n        pass\n\n"
    "class Breaks:\n    def __init__(self):\n        raise OSError(5, 'deep')\n\n"
    "_hidden = print\n\ndef nothing():\n    pass\n\nVALUE = 3\n",
}
NAMES = [
    ":", ":X", "X:", ".a:B", "..:B", "a..b:C", "a.:C", "m:", "m:a.b", "m:a:b", "m :a", "m: a",
    "3:f", "m:3", "no_such_module:f", "no.such:f", "json:loads.x", "m\0:f", "m:\0", "\udcff:f",
    "os:system", "os:nothing", "os.path:sep", "json:loads", "math:pi", "builtins:print",
    "builtins:object", "__main__:nothing", "raising:f", "leaving:f", "wrong_syntax:f", "needy:f",
    "nul:f", "kinds:Needs", "kinds:Breaks", "kinds:VALUE", "kinds:nothing", "kinds:missing",
]  # fmt: skip
# Of these nothing can be known before they are called.
UNKNOWABLE = {("builtins:print", "baseline"), ("builtins:print", "survivors")}
UNKNOWABLE |= {("builtins:print", what) for what in ("update", "panel", "advantage", "utility")}
UNKNOWABLE |= {
    (name, what) for name in ("os:system", "json:loads") for what in ("update", "advantage")
}
UNKNOWABLE |= {("json:loads", "credit")}


@pytest.fixture
def modules(tmp_path, monkeypatch):
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("what", TAKERS)
@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_leads_nowhere_is_one_sentence(modules, what, name):
    if (name, what) in UNKNOWABLE:
        TAKERS[what](name)
        return
    with pytest.raises(SpoError) as caught:
        TAKERS[what](name)
    assert what in str(caught.value)
    assert name.partition(":")[0] in str(caught.value) or repr(name) in str(caught.value)


def test_the_sentence_says_where_a_module_broke(modules):
    with pytest.raises(InputError, match=r"KeyError: 'deep'\) in .*raising\.py, line 2$"):
        CREDITS["raising:f"]
    with pytest.raises(InputError, match=r"wrong_syntax\.py, line 1"):
        CREDITS["wrong_syntax:f"]
    with pytest.raises(InputError, match=r"no_such_thing'\) in .*needy\.py, line 1$"):
        CREDITS["needy:f"]
    with pytest.raises(InputError, match=r"its folder must be on PYTHONPATH$"):
        CREDITS["no.such:f"]
    with pytest.raises(InputError, match=r"must take \(payoff, \*, top\); it takes \(\)$"):
        CREDITS["kinds:nothing"]
    with pytest.raises(InputError, match="problem 'json:loads' is of type function, not a spo_jax"):
        get_problem("json:loads")


def test_there_is_one_importer():
    """Of names that a user gives: what else imports by name imports what is ours."""
    ours = {"registry.py", "zygote.py"}
    for path in Path(spo_jax.__file__).parent.rglob("*.py"):
        if path.name not in ours:
            text = path.read_text()
            assert not re.search(
                r"getattr\(\s*importlib|importlib\.import_module\(module", text
            ) or (path.parent.name == "grammar"), path


TSP = type(get_problem("tsp"))


class Elsewhere(TSP):
    name = "elsewhere"


class Nameless(Problem):
    interface = TSP.interface


class Ruleless(Nameless):
    name = "ruleless"
    sample = TSP.sample


class Sampled(Ruleless):
    rules, sample = TSP.rules, lambda self, size: []


HERE = Elsewhere()


def test_a_problem_is_what_its_workers_find():
    for name in ("Elsewhere", "HERE"):
        problem = get_problem(f"{__name__}:{name}")
        assert problem.spec == f"{__name__}:{name}"
        assert type(get_problem(problem.spec)) is Elsewhere

    class Hidden(Elsewhere):
        pass

    with pytest.raises(InputError, match=r"problem elsewhere: workers cannot import .*Hidden"):
        Hidden().spec  # noqa: B018


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Nameless", "has no attribute name"),
        ("Ruleless", "has no method rules, which every problem has"),
        ("Sampled", r"its method sample must take \(size, count, seed\); it takes \(size\)"),
    ],
)
def test_what_a_problem_lacks_is_reported_when_it_is_loaded(name, says):
    with pytest.raises(InputError, match=f"problem '{__name__}:{name}'.*{says}") as caught:
        get_problem(f"{__name__}:{name}")
    assert "\n" not in str(caught.value)


# --- problems that another package brings ---------------------------------------------------------


def brings(folder: Path, distribution: str, *lines: str) -> None:
    """As if `pip install distribution` had put it into the folder."""
    info = folder / f"{distribution}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[spo_jax.problems]\n" + "\n".join(lines) + "\n")


def test_a_package_can_bring_a_problem(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    brings(tmp_path, "elsewhere", f"elsewhere = {__name__}:Elsewhere", "tsp = no.such:X")
    problem = get_problem("elsewhere")
    assert (problem.name, problem.spec) == ("elsewhere", f"{__name__}:Elsewhere")
    assert type(get_problem("tsp")) is TSP  # no package replaces ours
    message = "unknown problem 'vrp': use tsp, cvrp, vrptw, elsewhere, or"
    with pytest.raises(InputError, match=message):
        get_problem("vrp")
    brings(tmp_path, "again", "elsewhere = other.module:X")
    with pytest.raises(InputError, match="two packages bring a problem 'elsewhere'"):
        get_problem("elsewhere")
    assert type(get_problem(f"{__name__}:HERE")) is Elsewhere


# --- what parts return ----------------------------------------------------------------------------

ODD = [
    None,
    3,
    "text",
    b"bytes",
    [None],
    {"a": object()},
    ["x"],
    [[1], [2, 3]],
    1j,
    {3: 4},
    object(),
]


def returning(value):
    return lambda *args, **kwargs: value


@pytest.fixture
def given(monkeypatch):
    """A function that returns what it is told to, under the name `given:f`."""
    module = type(sys)("given")
    monkeypatch.setitem(sys.modules, "given", module)

    def give(function):
        module.f = function
        return "given:f"

    return give


def fine(pair):
    return Status.OK, 0.25


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize("what", ["credit", "survivors", "panel", "update"])
def test_what_a_function_returns_is_checked(given, what, value):
    if (what, value) == ("update", None):
        return  # no metrics
    name = given(returning(value))
    config = small(rounds=1, **{what: name})
    parts = {
        "credit": lambda: {"credit": CREDITS[name]},
        "survivors": lambda: {"survivors": SURVIVORS[name]},
        "panel": lambda: {"panel": PANELS[name]},
        "update": lambda: {"updater": UPDATERS[name]},
    }
    with pytest.raises(InputError, match=rf"^{what} 'given:f' returned .*must return"):
        play(config, evaluator=Evaluator(verdict=fine), **parts[what]())


@pytest.mark.parametrize("value", [*ODD, [np.inf] * 3, [1.0, 2.0], [1j] * 3, [10**400] * 3])
def test_an_advantage_is_one_finite_number_a_credit(value):
    config = GrpoConfig(advantage=returning(value))
    usable, failed = np.ones(3, bool), np.zeros(3, bool)
    with pytest.raises(InputError, match="the advantage"):
        advantages(np.array([1.0, 2.0, 3.0]), failed, usable, config)


@pytest.mark.parametrize(
    "value", [None, 3, "text", [None] * 40, [("text",) * 6] * 40, {}], ids=repr
)
def test_a_generator_answers_with_completions(value):
    class Odd(Generator):
        def generate(self, prompts, n, seed):
            return value

    with pytest.raises(InputError, match=r"the generator (returned|answered)"):
        play(small(rounds=1), generator=Odd())

    class OddStream(Generator):
        def stream(self, prompts, n, seed):
            yield value

    if value != {}:
        with pytest.raises(InputError, match=r"the generator('s stream gave| answered)"):
            play(small(rounds=1), generator=OddStream())


def test_a_method_returns_what_is_asked(given):
    class Odd:
        def variant(self, prose):
            return 3

        def rounds(self, config):
            return 2.0

        def one_round(self, parts, instances, k, state):
            return None

    config = small(method=given(Odd))
    method = method_of(config)
    with pytest.raises(InputError, match=r"rounds\(config\) returned 2.0, where a whole number"):
        rounds_of(config)
    with pytest.raises(InputError, match=r"variant\(prose\) returned 3"):
        variant_of(method, config, Generator())
    parts = replace_parts(config)
    with pytest.raises(InputError, match=r"one_round returned None, where round 1 is due"):
        round_of(method, parts, [], 1, None)


def replace_parts(config):
    from spo_jax.search.parts import Parts

    return replace(Parts(small(), get_problem("tsp"), Evaluator(), Generator()), config=config)


@pytest.mark.parametrize("what", ["credit", "survivors", "panel", "update"])
def test_a_bug_in_a_users_function_keeps_its_traceback(given, what):
    def buggy(*args, **kwargs):
        raise TypeError("mine")

    name = given(buggy)
    parts = {
        "credit": lambda: {"credit": CREDITS[name]},
        "survivors": lambda: {"survivors": SURVIVORS[name]},
        "panel": lambda: {"panel": PANELS[name]},
        "update": lambda: {"updater": UPDATERS[name]},
    }
    with pytest.raises(TypeError, match="mine"):
        play(small(rounds=1), evaluator=Evaluator(verdict=fine), **parts[what]())
