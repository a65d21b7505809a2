"""The five classical CVRP destroys: their contract, and what each is known by."""

import random
from itertools import chain

import numpy as np
import pytest

from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.cvrp import CVRP
from spo_jax.envs.problems.cvrp.classical import CVRP_DESTROYS
from spo_jax.envs.run.sandbox.gate.policy import check

RANDOM, WORST, RADIAL, RELATED, STRING = CVRP_DESTROYS
Routes = list[list[int]]


def run(program, instance, routes: Routes, rng: random.Random):  # type: ignore[no-untyped-def]
    namespace: dict = {}
    exec(program.source, namespace)
    dist = tuple(map(tuple, instance.dist.tolist()))
    demands = tuple(instance.demands.tolist())
    return namespace["destroy"](dist, demands, instance.capacity, routes, 5, rng)


def world(n: int, seed: int = 0):  # type: ignore[no-untyped-def]
    problem = get_problem("cvrp")
    instance = problem.sample(n, 1, seed)[0]
    return instance, problem.rules(instance).start(random.Random(seed))


@pytest.mark.parametrize("program", CVRP_DESTROYS)
@pytest.mark.parametrize("n", [3, 5, 10, 50, 200])
def test_the_contract(program, n: int) -> None:  # type: ignore[no-untyped-def]
    assert check(program.source, "destroy", CVRP.interface).layout == "rows"
    assert program.strategy
    instance, routes = world(n)
    rng = random.Random(n)
    for _ in range(20):
        partial, removed = run(program, instance, [route[:] for route in routes], rng)
        assert 1 <= len(removed) <= 35 * n // 100
        assert len(set(removed)) == len(removed)
        assert partial == [[v for v in route if v not in removed] for route in routes]
        assert len(list(chain.from_iterable(partial))) + len(removed) == n


def test_they_are_five_different_programs() -> None:
    assert len({program.digest for program in CVRP_DESTROYS}) == 5
    assert len({program.strategy_digest for program in CVRP_DESTROYS}) == 5


def test_a_single_route_and_customers_that_fill_a_vehicle() -> None:
    instance, _ = world(10)
    for routes in ([list(range(1, 11))], [[v] for v in range(1, 11)], [[], [*range(1, 11)], []]):
        for program in CVRP_DESTROYS:
            partial, removed = run(program, instance, routes, random.Random(1))
            assert 1 <= len(removed) <= 3
            assert len(list(chain.from_iterable(partial))) == 10 - len(removed)


def test_radial_takes_the_customers_around_one_of_them() -> None:
    instance, routes = world(60)
    _, removed = run(RADIAL, instance, routes, random.Random(2))
    around = np.argsort(instance.dist[removed[0], 1:])[: len(removed)] + 1
    assert set(removed) == set(around.tolist())


def spread(instance, removed: list[int]) -> float:  # type: ignore[no-untyped-def]
    return float(instance.dist[np.ix_(removed, removed)].sum()) / (
        len(removed) * (len(removed) - 1)
    )


def test_related_customers_lie_closer_together_than_random_ones() -> None:
    instance, routes = world(100)
    mean = {}
    for program in (RANDOM, RELATED):
        outputs = [run(program, instance, routes, random.Random(k))[1] for k in range(30)]
        mean[program] = np.mean([spread(instance, removed) for removed in outputs])
    assert mean[RELATED] < 0.8 * mean[RANDOM]


def detours(instance, routes: Routes) -> dict[int, float]:  # type: ignore[no-untyped-def]
    d = instance.dist
    walks = [(a, v, b) for r in routes for a, v, b in zip([0, *r], r, [*r[1:], 0], strict=False)]
    return {v: d[a, v] + d[v, b] - d[a, b] for a, v, b in walks}


def test_worst_takes_costly_customers() -> None:
    instance, routes = world(100)
    detour = detours(instance, routes)
    mean = {}
    for program in (RANDOM, WORST):
        firsts = [run(program, instance, routes, random.Random(k))[1][0] for k in range(60)]
        mean[program] = np.mean([detour[v] for v in firsts])
    assert mean[WORST] > 1.3 * mean[RANDOM]


def test_strings_are_consecutive_and_one_a_route() -> None:
    instance, routes = world(100)
    for k in range(50):
        _, removed = run(STRING, instance, routes, random.Random(k))
        gone = set(removed)
        for route in routes:
            at = [i for i, v in enumerate(route) if v in gone]
            assert not at or at == list(range(at[0], at[-1] + 1))
            assert len(at) <= 10
