"""Where `spo solve` starts on a VRPTW."""

import time

import pytest

from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.vrptw import kit
from spo_jax.envs.problems.vrptw.baselines.heuristics import insertion_i1
from spo_jax.envs.problems.vrptw.construction import construct

VRPTW = get_problem("vrptw")
NATIVE = pytest.mark.skipif(not kit.NATIVE, reason="the native kit is not built")


@NATIVE
@pytest.mark.parametrize("size", [25, 100])
def test_it_is_shorter_than_solomons_insertion(size: int) -> None:
    for instance in VRPTW.sample(size, 3, 7):
        routes = construct(instance)
        assert VRPTW.rules(instance.seen()).repaired(routes) == routes
        assert VRPTW.cost(instance, routes) < VRPTW.cost(instance, insertion_i1(instance))
        assert construct(instance) == routes


@NATIVE
def test_without_time_it_is_one_insertion() -> None:
    [instance] = VRPTW.sample(60, 1, 7)
    routes = construct(instance, until=time.monotonic())
    assert VRPTW.rules(instance.seen()).repaired(routes) == routes
    assert VRPTW.cost(instance, routes) > VRPTW.cost(instance, construct(instance))


def test_without_the_compiled_kit_it_is_solomons_insertion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kit, "NATIVE", False)
    [instance] = VRPTW.sample(20, 1, 7)
    assert construct(instance) == insertion_i1(instance)
