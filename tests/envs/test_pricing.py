"""Batches of solutions are priced with the bits, and judged with the strictness, of one alone."""

import math
import random
from collections.abc import Sequence

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spo_jax.envs import pricing
from spo_jax.envs.problem import Infeasible, Instance, Problem
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.tsp import TSP as TSPProblem
from spo_jax.envs.problems.tsp.pricing import tour_costs
from spo_jax.envs.run.jobs.results import Results
from spo_jax.envs.run.rollouts import Rollouts, Status
from spo_jax.envs.run.sandbox.outcome import ChildReport
from spo_jax.errors import InputError
from spo_jax.seeding import python_rng

NAMES = ("tsp", "cvrp", "vrptw")
TSP = get_problem("tsp")
numbers = st.floats(-(2.0**20), 2.0**20, allow_subnormal=False).map(lambda x: round(x, 9))


def coded(problem: Problem, instances: Sequence[Instance], count: int, seed: int = 0):
    """Codes [count, L] of random solutions, and whose they are."""
    rules = [problem.rules(each) for each in instances]
    length = max(map(problem.code_length, instances))
    codes = np.full((count, length), -1, np.int32)
    whose = np.arange(count) % len(instances)
    for b, w in enumerate(whose):
        code = rules[w].encode(rules[w].start(random.Random(f"{seed} {b}")))
        codes[b, : len(code)] = code
    return codes, whose


def alone(problem: Problem, instance: Instance, code: np.ndarray) -> float:
    end = np.flatnonzero(code < 0)
    try:
        solution = problem.decode(instance, code[: end[0] if len(end) else None].tolist())
    except Infeasible:
        return math.nan
    return problem.cost(instance, solution)


# --- sums -----------------------------------------------------------------------------------------


@given(st.lists(numbers, min_size=1, max_size=70))
def test_sums_have_the_bits_of_fsum(values: list[float]) -> None:
    padded = np.zeros(70)
    padded[: len(values)] = values
    found = float(pricing.exact_sum(padded))
    assert math.isnan(found) or found == math.fsum(values)


def test_the_sums_of_distances_are_all_exact() -> None:
    values = np.random.default_rng(0).random((2000, 200))
    found = np.asarray(pricing.exact_sum(values))
    assert found.tolist() == list(map(math.fsum, values))


@pytest.mark.parametrize(
    "values", [[1e300, 1.0], [2.0**60, 1.0, 2.0**-60], [math.inf, 1.0], [math.nan, 1.0]]
)
def test_a_sum_that_may_be_rounded_wrongly_is_none(values: list[float]) -> None:
    assert math.isnan(float(pricing.exact_sum(np.array(values))))


def test_a_tie_that_is_none_is_rounded_up() -> None:
    """2**53 + 1 + 2**-20: two additions in order would round to even, and lose the rest."""
    values = [2.0**53, 1.0, 2.0**-20]
    assert float(pricing.exact_sum(np.array(values))) == math.fsum(values) == 2.0**53 + 2


# --- parts ----------------------------------------------------------------------------------------


@given(st.lists(st.integers(-1, 9), min_size=8, max_size=8), st.integers(0, 8))
def test_visits_are_counted_as_by_a_set(codes: list[int], count: int) -> None:
    found = bool(pricing.visits_once(np.array([codes]), 2, np.array([count]))[0])
    there = [code for code in codes if code > 0]
    assert found == (sorted(there) == list(range(2, 2 + count)))


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=6, max_size=6))
def test_loads_are_those_of_a_loop(walk: list[tuple[int, bool]]) -> None:
    demands, ends = np.array([d for d, _ in walk]), np.array([end for _, end in walk])
    load, due = 0, []
    for demand, end in walk:
        load = 0 if end else load + demand
        due.append(load)
    assert np.asarray(pricing.loads(demands, ends)).tolist() == due


# --- problems -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [5, 40, 90])
def test_a_batch_has_the_costs_of_each_alone(name: str, size: int) -> None:
    problem = get_problem(name)
    instances = [*problem.sample(size, 2, 0), *problem.sample(size + 3, 1, 1)]
    codes, whose = coded(problem, instances, 50)
    due = [alone(problem, instances[w], code) for w, code in zip(whose, codes, strict=True)]
    assert problem.costs(instances, codes, whose).tolist() == due


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_has_no_cost_for_what_is_infeasible_alone(name: str) -> None:
    """Each code with a few random changes, as a broken sandbox could send it."""
    problem, rng = get_problem(name), random.Random(0)
    instances = problem.sample(8, 2, 0)
    codes, whose = coded(problem, instances, 1500)
    for code in codes:
        for _ in range(rng.randrange(3)):
            k, other = rng.randrange(len(code)), rng.randrange(len(code))
            kind = rng.randrange(4)
            if kind == 0:
                code[k], code[other] = code[other], code[k]
            elif kind == 1:
                code[k] = rng.choice([0, 1, -1, 5, 9, 10, 2**31 - 1])
            elif kind == 2:
                code[k] = code[other]
            else:
                code[k:] = [*code[k + 1 :], -1]
        # What comes after the first -1 never gets here: `Results` cuts it.
        end = np.flatnonzero(code < 0)
        code[end[0] if len(end) else len(code) :] = -1
    due = np.array([alone(problem, instances[w], c) for w, c in zip(whose, codes, strict=True)])
    found = problem.costs(instances, codes, whose)
    assert 100 < np.isnan(due).sum() < 1400
    np.testing.assert_array_equal(found[~np.isnan(found)], due[~np.isnan(found)])
    # It may leave to the rules what they are laxer about: codes that no worker writes.
    assert np.isnan(found).sum() - np.isnan(due).sum() <= 150
    assert name == "vrptw" or (np.isnan(found) == np.isnan(due)).all()


def test_a_late_vehicle_has_no_cost() -> None:
    """Among routes that the capacity allows."""
    problem = get_problem("vrptw")
    instances = problem.sample(6, 1, 3)
    rng, codes = random.Random(1), np.full((400, 12), -1, np.int32)
    for code in codes:
        customers = rng.sample(range(2, 8), 6)
        walk = [x for k, c in enumerate(customers) for x in ([c, 0] if k % 2 else [c])]
        code[: len(walk)] = walk
    due = [alone(problem, instances[0], code) for code in codes]
    assert 20 < np.isnan(due).sum() < 380
    np.testing.assert_array_equal(problem.costs(instances, codes, np.zeros(400, int)), due)


def test_a_batch_that_grows_compiles_seldom() -> None:
    instances = TSP.sample(20, 2, 0)
    codes, whose = coded(TSP, instances, 256)
    TSP.costs(instances, codes[:1], whose[:1])
    TSP.costs(instances, codes, whose)
    before = tour_costs.cache_size()  # type: ignore[attr-defined]
    for count in range(1, 256, 17):
        TSP.costs(instances, codes[:count], whose[:count])
        more = TSP.sample(20 + count % 40, 3, count)
        TSP.costs(more, *coded(TSP, more, count))
    assert tour_costs.cache_size() == before  # type: ignore[attr-defined]


def test_a_batch_of_several_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pricing, "MOST", 64 * 64)
    instances = TSP.sample(20, 2, 0)
    codes, whose = coded(TSP, instances, 150)
    due = [alone(TSP, instances[w], code) for w, code in zip(whose, codes, strict=True)]
    assert TSP.costs(instances, codes, whose).tolist() == due


def test_jit_and_vmap_of_a_batch_are_the_plain_call() -> None:
    instances = TSP.sample(20, 1, 0)
    codes, whose = coded(TSP, instances, 6)
    legs = instances[0].dist[codes - 1, np.roll(codes - 1, -1, axis=1)]
    size = np.full(6, 20)
    plain = np.asarray(tour_costs(codes, size, legs))
    assert plain.tolist() == TSP.costs(instances, codes, whose).tolist()
    with jax.enable_x64(True):
        for function in (jax.jit(tour_costs), jax.vmap(tour_costs)):
            assert np.asarray(function(codes, size, legs)).tolist() == plain.tolist()
    with pytest.raises(InputError, match=r"computes in float64: do it within"):
        jax.vmap(tour_costs)(codes, size, legs)


# --- what is reported -----------------------------------------------------------------------------


def reported(problem: Problem, instance: Instance, count: int, spoilt: int = -1) -> Rollouts:
    """Rollouts of `count` pairs, two seeds each, that changed nothing; one's first is forged."""
    results = Results(problem, count, [instance], (0, 1), 2, 0)
    rules = problem.rules(instance)
    for p in range(count):
        for s in range(2):
            start = rules.start(python_rng("start", 0, instance.digest, s))
            cost = rules.cost(start) - (0.5 if (p, s) == (spoilt, 0) else 0.0)
            best = [rules.cost(start), rules.cost(start), cost]
            code = rules.encode(start)
            payload = (
                np.array(best, "<f8").tobytes()
                + np.array([0, 1], "<i4").tobytes()
                + np.array(code, "<i4").tobytes()
            )
            results.record(p, ChildReport(s, Status.OK, "", 0.25, payload))
    return results.rollouts(list(range(count)), fail_fast=True)


def test_one_lie_among_many_is_found() -> None:
    found = reported(TSP, TSP.sample(9, 1, 0)[0], 40, spoilt=17)
    assert found.ok.tolist() == [p != 17 for p in range(40)]
    assert (found.status[17] == Status.TAMPERED).all()
    assert found.reason[17, 0, 0].startswith("the best solution costs ")
    assert np.isnan(found.best_cost[17]).all()
    assert (found.code[17] == -1).all()
    assert found.seconds[17, 0, 0] == 0.25  # the other is as if it had not run
    assert np.isnan(found.seconds[17, 0, 1])


class Shut(TSPProblem):
    """A tour may not begin with node 0. Its costs in batches are the TSP's, which knows nothing."""

    def decode(self, instance: Instance, code: Sequence[int]) -> list[int]:
        if code[0] != 2:
            raise Infeasible("the tour begins elsewhere")
        return super().decode(instance, code)


class Unpriced(TSPProblem):
    def costs(self, instances: object, codes: np.ndarray, whose: object) -> np.ndarray:
        raise AssertionError("not to be called")

    def cost(self, instance: Instance, solution: Sequence[int]) -> float:
        return super().cost(instance, solution)


class Cheap(Unpriced):
    """Lower costs, below the class whose batches are priced."""

    def cost(self, instance: Instance, solution: Sequence[int]) -> float:
        return super().cost(instance, solution) - 0.5


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the check of a problem by its first start, which would refuse those below."""
    monkeypatch.setattr("spo_jax.envs.run.jobs.results.require_sound", lambda *rest: None)


@pytest.mark.usefixtures("unchecked")
def test_a_problem_that_narrows_another_is_judged_by_its_own_rules() -> None:
    found = reported(Shut(), Shut().sample(9, 1, 0)[0], 1)
    assert found.reason[0, 0, 0] == "the best solution is infeasible: the tour begins elsewhere"


@pytest.mark.usefixtures("unchecked")
def test_a_problem_whose_costs_are_others_is_priced_alone() -> None:
    found = reported(Cheap(), TSP.sample(9, 1, 0)[0], 1)
    assert found.reason[0, 0, 0].startswith("the best solution costs ")


def test_a_problem_without_batches_is_priced_one_by_one() -> None:
    class Plain(TSPProblem):
        costs = Problem.costs

    assert np.isnan(Plain().costs([], np.zeros((3, 2), np.int32), np.zeros(3, int))).all()
    assert reported(Plain(), TSP.sample(9, 1, 0)[0], 3).ok.all()
