"""What the gate takes as models write it: it runs as meant, and opens nothing.

Each relaxation has attacks against it: programs that would keep state from call to call, take a
module's place, or run code where nothing is to run.
"""

import json
from pathlib import Path

import pytest
from test_evaluation import REPAIR

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Status
from spo_jax.program import Pair, Program, format_pair, parse_response

TSP = get_problem("tsp")
HEAD = "def destroy(dist, tour, z, rng):\n"
RETURN = "    return tour[1:], tour[:1]\n"
FIRST = "def destroy(dist, tour, z, rng):\n    return tour[1:], tour[:1]\n"


@pytest.fixture(scope="module")
def evaluator():
    with LocalEvaluator(TSP, 2, cpu_seconds=30.0) as started:
        yield started


def run(evaluator, sources):
    """(status, reason, best costs of both seeds) of each destroy, with a repair that is lawful."""
    [instance] = TSP.sample(20, 1, 0)
    repair = Program.from_source("repair", REPAIR)
    pairs = [Pair(Program.from_source("destroy", each), repair) for each in sources]
    found = evaluator.run(pairs, [instance], (0, 1), 12)
    return [
        (Status(int(found.status[k].max())), found.best_cost[k, 0, :, -1].tolist())
        for k in range(len(pairs))
    ]


def test_recorded_answers_run(evaluator):
    """As a user expects of each; see tests/program/answer_shapes.py."""
    lines = (Path(__file__).parents[1] / "program" / "answer_shapes.jsonl").read_text("utf-8")
    cases = [json.loads(line) for line in lines.splitlines()]
    sources = [parse_response(each["role"], each["answer"]).source for each in cases]
    found = {
        case["name"]: "valid" if status == Status.OK else "refused"
        for case, (status, _) in zip(cases, run(evaluator, sources), strict=True)
    }
    assert found == {case["name"]: case["expect"] for case in cases}


EQUAL = {
    "a list at the top": ("K = [1, 2]\n" + HEAD + "    k = K[0]\n    return tour[k:], tour[:k]\n"),
    "a dict at the top": (
        "K = {'a': [1]}\n" + HEAD + "    k = K['a'][0]\n    return tour[k:], tour[:k]\n"
    ),
    "a set at the top": ("K = {1}\n" + HEAD + "    k = min(K)\n    return tour[k:], tour[:k]\n"),
    "a set is removed": HEAD + "    return tour[1:], {tour[0]}\n",
    "a frozenset": HEAD + "    return tour[1:], frozenset(tour[:1])\n",
    "one node": HEAD + "    return tour[1:], tour[0]\n",
    "one node of NumPy": "import numpy as np\n" + HEAD + "    return tour[1:], np.int64(tour[0])\n",
    "unknown annotations": FIRST.replace("dist,", "dist: np.ndarray,").replace(
        "):", ") -> (a, b):"
    ),
    "a seed": "import random\n" + HEAD + "    random.seed(0)\n" + RETURN,
    "a seed of NumPy": "import numpy as np\n" + HEAD + "    np.random.seed(0)\n" + RETURN,
    "more parameters": FIRST.replace("rng)", "rng, share=0.1, names=('a',))"),
    "an item as a key": HEAD + "    sorted(tour, key=dist[0].__getitem__)\n" + RETURN,
}


@pytest.mark.parametrize("layout", ["", "    len(dist.shape)\n"], ids=["rows", "array"])
def test_what_is_meant_alike_does_alike(evaluator, layout):
    changed = [each.replace("rng):\n", f"rng):\n{layout}") for each in (FIRST, *EQUAL.values())]
    (status, costs), *others = run(evaluator, changed)
    assert status == Status.OK
    assert dict(zip(EQUAL, others, strict=True)) == dict.fromkeys(EQUAL, (Status.OK, costs))


def test_generators_of_modules_are_the_rollouts(evaluator):
    """`random` and `numpy.random` draw what `rng` draws, whatever seeds a program gives them."""
    plain = (
        HEAD + "    k = rng.randrange(len(tour))\n    return tour[:k] + tour[k + 1 :], [tour[k]]\n"
    )
    draws = {
        "random": "random.randrange(len(tour))",
        "made": "random.Random(7).randrange(len(tour))",
        "numpy": "np.random.randrange(len(tour))",
        "default": "np.random.default_rng(3).randrange(len(tour))",
    }
    ends = {
        "integers": "int(np.random.integers(0, len(tour)))",
        "randint": "int(np.random.randint(0, len(tour)))",  # without its end, as NumPy has it
    }
    head = "import random\nimport numpy as np\n"
    for ours, named in (("rng.randrange(len(tour))", draws), ("rng.integers(0, len(tour))", ends)):
        meant = plain.replace("rng.randrange(len(tour))", ours)
        sources = [head + meant.replace(ours, each) for each in named.values()]
        first, *others = run(evaluator, [meant, *sources])
        assert first[0] == Status.OK
        assert dict(zip(named, others, strict=True)) == dict.fromkeys(named, first)


REFUSED = {
    "a list that grows": "K = []\n" + HEAD + "    K.append(1)\n" + RETURN,
    "a list in a dict that grows": "K = {'a': []}\n" + HEAD + "    K['a'].append(1)\n" + RETURN,
    "a dict that grows": "K = {}\n" + HEAD + "    K[1] = 2\n" + RETURN,
    "a dict that is updated": "K = {}\n" + HEAD + "    K.update(a=1)\n" + RETURN,
    "a dict behind another": "K = {'a': {}}\n" + HEAD + "    K['a'].setdefault(1, 2)\n" + RETURN,
    "a set that grows": "K = {1}\n" + HEAD + "    K.add(2)\n" + RETURN,
    "a list that is added to": "K = [1]\n" + HEAD + "    global K\n    K += [2]\n" + RETURN,
    "a list in a default": FIRST.replace("rng)", "rng, kept=[])"),
    "a dict in a default": FIRST.replace("rng)", "rng, kept={})"),
    "a list in a tuple in a default": FIRST.replace("rng)", "rng, kept=([],))"),
    "a list in a lambda's default": "F = lambda kept=[]: kept\n" + FIRST,
    "a list by a call": "K = [list()]\n" + FIRST,
    "an iterator at the top": "K = [iter((1, 2))]\n" + FIRST,
    "a dict unpacked": "A = {'a': 1}\nK = {**A}\n" + FIRST,
    "a maker's name": "K = {'a': 1}\n" + HEAD + "    __frozen_dict__\n" + RETURN,
    "a maker that is bound": "def __frozen_dict__(x):\n    return x\nK = {}\n" + FIRST,
    "a call in an annotation": FIRST.replace("dist,", "dist: print(1),"),
    "a walrus in an annotation": FIRST.replace("dist,", "dist: (x := 1),"),
    "a secret in an annotation": FIRST.replace("dist,", "dist: a.__class__,"),
    "an attribute of an item": HEAD + "    tour.__getitem__.__self__\n" + RETURN,
    "another secret name": HEAD + "    tour.__setitem__(0, 1)\n" + RETURN,
    "the state of a generator": "import random\n" + HEAD + "    random.getstate()\n" + RETURN,
    "the bits of a generator": "import numpy as np\n" + HEAD + "    np.random.bytes(3)\n" + RETURN,
    "NumPy's own generators": "import numpy as np\n" + HEAD + "    np.random.mtrand\n" + RETURN,
    "NumPy's own module": "from numpy.random import mtrand\n" + FIRST,
    "a set of truths": HEAD + "    return tour[1:], {True}\n",
    "a set of texts": HEAD + "    return tour[1:], {'0'}\n",
    "a number that is none": HEAD + "    return tour[1:], 0.0\n",
    "a truth": HEAD + "    return tour[1:], False\n",
    "a dict of removed": HEAD + "    return tour[1:], {tour[0]: 1}\n",
}


def test_attacks_on_what_is_taken_fail(evaluator):
    found = dict(zip(REFUSED, run(evaluator, REFUSED.values()), strict=True))
    bad = {Status.REJECTED, Status.CRASH, Status.INVALID}
    assert {name: status for name, (status, _) in found.items() if status not in bad} == {}


def test_names_that_take_a_modules_place_are_the_programs_own(evaluator):
    own = (
        "def random(n):\n    return 0\n"
        + HEAD
        + "    k = random(len(tour))\n"
        + ("    return tour[:k] + tour[k + 1 :], [tour[k]]\n")
    )
    local = HEAD + "    np = [0]\n    k = np[0]\n    return tour[:k] + tour[k + 1 :], [tour[k]]\n"
    [first, *others] = run(
        evaluator, [FIRST, *(parse_response("destroy", e).source for e in (own, local))]
    )
    assert others == [first, first]


def test_a_file_of_such_a_pair_is_plain_python():
    answer = (
        "```python\nK = [0.1]\n" + FIRST.replace("dist,", "dist: np.ndarray,") + "print(1)\n```"
    )
    text = format_pair(
        Pair(parse_response("destroy", answer), Program.from_source("repair", REPAIR))
    )
    space: dict = {}
    exec(text, space)
    assert space["destroy"](None, [3, 4], 0, None) == ([4], [3])
