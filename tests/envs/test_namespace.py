"""What programs reach: random numbers in two dialects, and modules that hold listed names only."""

import copy
import math
from collections import Counter

import numpy as np
import pytest

from spo_jax.envs.run.sandbox.gate.names import MODULES, RNG
from spo_jax.envs.run.sandbox.gate.namespace import make_globals, make_rng


def run(code: str, seed: int = 0) -> dict:
    namespace = make_globals(make_rng(seed))
    exec(code, namespace)
    return namespace


def test_every_listed_name_answers() -> None:
    rng = make_rng(1)
    assert all(callable(getattr(rng, name)) for name in RNG)
    for forbidden in ("getstate", "setstate", "bit_generator", "spawn", "bytes"):
        assert not hasattr(rng, forbidden)


def test_the_standard_dialect() -> None:
    rng = make_rng(2)
    assert 0 <= rng.random() < 1
    assert {rng.randint(1, 3) for _ in range(100)} == {1, 2, 3}
    assert {rng.randrange(0, 6, 2) for _ in range(100)} == {0, 2, 4}
    assert sorted(rng.sample(range(10), 10)) == list(range(10))
    assert len(set(rng.sample([5, 6, 7, 8], 3))) == 3
    items = list(range(20))
    assert rng.shuffle(items) is None
    assert items != list(range(20))
    assert sorted(items) == list(range(20))
    assert rng.choice("ab") in "ab"
    assert len(rng.choices([1, 2], weights=[0, 1], k=4)) == 4
    assert 2 <= rng.uniform(2, 3) < 3
    for call in (
        lambda: rng.choice([]),
        lambda: rng.sample([1], 2),
        lambda: rng.sample([1], -1),
        lambda: rng.randint(2, 1),
        lambda: rng.integers(0),
        lambda: rng.sample({1, 2}, 1),
    ):
        with pytest.raises((ValueError, IndexError, TypeError)):
            call()


def test_the_numpy_dialect() -> None:
    rng = make_rng(3)
    assert {rng.integers(3) for _ in range(100)} == {0, 1, 2}
    assert {rng.integers(1, 3, endpoint=True) for _ in range(100)} == {1, 2, 3}
    assert rng.integers(0, 5, size=(2, 3)).shape == (2, 3)
    assert sorted(rng.permutation(6).tolist()) == list(range(6))
    assert rng.choice(10, size=4, replace=False).shape == (4,)
    assert rng.choice([7, 8], p=[0.0, 1.0]) == 8
    assert rng.choice(5) in range(5)
    assert rng.normal(0, 1, 3).shape == rng.random(3).shape == rng.uniform(size=3).shape == (3,)
    array = np.arange(10)
    rng.shuffle(array)
    assert sorted(array.tolist()) == list(range(10))


@pytest.mark.parametrize("name", ["choice", "randint", "integers", "sample", "shuffle"])
def test_scalar_draws_are_uniform(name: str) -> None:
    rng = make_rng(4)

    def shuffled() -> int:
        items = [0, 1, 2, 3, 4]
        rng.shuffle(items)
        return items[2]

    draw = {
        "choice": lambda: rng.choice([0, 1, 2, 3, 4]),
        "randint": lambda: rng.randint(0, 4),
        "integers": lambda: rng.integers(5),
        "sample": lambda: rng.sample(range(5), 2)[1],
        "shuffle": shuffled,
    }[name]
    counts = Counter(draw() for _ in range(20_000))
    chi_squared = sum((counts[k] - 4000) ** 2 / 4000 for k in range(5))
    assert chi_squared < 23.5  # 4 degrees of freedom: one in ten thousand


def test_one_seed_gives_one_stream_and_copies_share_it() -> None:
    first, second, other = make_rng(5), make_rng(5), make_rng(6)
    draw = [first.random(), first.sample(range(99), 5), first.normal()]
    assert draw == [second.random(), second.sample(range(99), 5), second.normal()]
    assert draw[0] != other.random()
    assert copy.copy(first) is first
    assert copy.deepcopy(first) is first
    ahead = copy.deepcopy(first.gauss)
    assert ahead(0, 1) == second.gauss(0, 1)
    assert first.gauss(0, 1) == second.gauss(0, 1)  # the copy drew from the stream itself


def test_imports_give_the_listed_members_and_nothing_else() -> None:
    space = run(
        "import math, random, numpy as np, numpy.linalg, collections.abc as abc\n"
        "from heapq import heappush\nfrom typing import List\n"
    )
    assert space["math"].sqrt is math.sqrt
    assert space["random"].random() < 1
    assert space["np"].argsort is np.argsort
    assert space["np"].linalg.norm is np.linalg.norm
    assert space["List"][int] == list[int]
    for module in ("math", "np"):
        listed = MODULES["numpy" if module == "np" else module]
        assert set(vars(space[module])) <= listed
    for name in ("load", "save", "ctypeslib", "lib", "frombuffer", "memmap", "seterr"):
        assert not hasattr(space["np"], name)
    for line in ("import os", "import numpy.lib", "from os import path", "open('x')", "eval('1')"):
        with pytest.raises((ImportError, NameError)):
            run(line)


def test_memory_that_nobody_wrote_is_zero() -> None:
    space = run("import numpy as np\na = np.empty(1000)\nb = np.empty_like(a)\n")
    assert not space["a"].any()
    assert not space["b"].any()
