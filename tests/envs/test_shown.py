"""What programs are shown of the LNS state, while the search goes on counting the true one."""

import math
import random
from typing import Any

import numpy as np
import pytest

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.jobs.onestep import take_step
from spo_jax.envs.run.lns import Operator, OperatorPair, rollout
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.observation import HIDDEN, INVERTED, OBSERVED, Shown, fixed, given, of_rollout
from spo_jax.envs.run.rollouts import Rollouts
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program
from spo_jax.seeding import python_rng

TSP, CVRP = get_problem("tsp"), get_problem("cvrp")
SIZE, STEPS = 31, 40

# A pair that never draws and whose tours tell what it was shown: the destroy takes the z-th node
# out, and the repair puts it where it costs least, but for the first z % 3 places.
TAKE = """
def destroy(dist, tour, z, rng):
    gone = tour[z % len(tour)]
    return [v for v in tour if v != gone], [gone]
"""
PUT = """
def repair(dist, partial, removed, z, rng):
    v = removed[0]
    before = partial[-1:] + partial[:-1]
    extra = [dist[a][v] + dist[v][b] - dist[a][b] for a, b in zip(before, partial)]
    place = extra.index(min(extra[z % 3:]))
    return partial[:place] + [v] + partial[place:]
"""
PAIR = Pair(Program.from_source("destroy", TAKE), Program.from_source("repair", PUT))


def by_hand(dist: Any, start: list[int], shown: Any, steps: int) -> tuple[list[float], list[int]]:
    """The pair in a plain loop; shown: a function of (z, t)."""
    namespace: dict[str, Any] = {}
    exec(TAKE + PUT, namespace)

    def cost(tour: list[int]) -> float:
        return math.fsum(dist[a][b] for a, b in zip(tour, tour[1:] + tour[:1], strict=True))

    tour, z, states, best = start, 0, [], [cost(start)]
    for t in range(steps):
        states.append(z)
        seen = shown(z, t)
        partial, removed = namespace["destroy"](dist, tour, seen, None)
        new = namespace["repair"](dist, partial, removed, seen, None)
        z = 0 if cost(new) < cost(tour) else z + 1
        if cost(new) <= cost(tour):
            tour = new
        best.append(cost(tour))
    return best, states


def test_what_is_shown_is_plain() -> None:
    """By hand: Appendix E shows 30 below ten and 0 from ten on."""
    seen = [0, 1, 9, 10, 11, 400]
    assert [OBSERVED.at(z, 3) for z in seen] == seen
    assert [HIDDEN.at(z, 3) for z in seen] == [0] * 6
    assert [fixed(5).at(z, 3) for z in seen] == [5] * 6
    assert [INVERTED.at(z, 3) for z in seen] == [30, 30, 30, 0, 0, 0]
    assert [given([7, 0, 2]).at(9, t) for t in range(3)] == [7, 0, 2]
    assert given(np.array([7, 2])) == Shown((7, 2), by_step=True)
    for values in ((), (3, -1)):
        with pytest.raises(InputError):
            Shown(values)


@pytest.mark.parametrize(
    ("shown", "rule"),
    [
        (OBSERVED, lambda z, t: z),
        (fixed(5), lambda z, t: 5),
        (INVERTED, lambda z, t: 0 if z >= 10 else 30),
        (given(range(100, 100 + STEPS)), lambda z, t: 100 + t),
    ],
)
def test_a_rollout_shows_it_and_counts_the_truth(shown: Shown, rule: Any) -> None:
    instance = TSP.sample(SIZE, 1, 3)[0]
    rules = TSP.rules(instance)
    seen = []

    def destroy(dist: Any, tour: list[int], z: int, rng: Any) -> Any:
        seen.append(z)
        return tour[1:], tour[:1]

    def repair(dist: Any, partial: list[int], removed: list[int], z: int, rng: Any) -> Any:
        assert z == seen[-1]
        return [partial[0], *removed, *partial[1:]] if z < 3 else [*partial, *removed]

    pair = OperatorPair(Operator(destroy), Operator(repair), shown)
    trace = rollout(rules, pair, random.Random(1), None, STEPS)
    assert seen == [rule(z, t) for t, z in enumerate(trace.state)]
    fell = np.diff(trace.best_cost) < 0
    assert trace.state == since_the_fall(fell)
    assert max(trace.state) >= 10


def since_the_fall(fell: np.ndarray) -> list[int]:
    """z_t by its definition: the steps since the last one at which the best cost fell."""
    return [next((k for k in range(t) if fell[t - 1 - k]), t) for t in range(len(fell))]


@pytest.mark.long
def test_it_reaches_the_sandbox() -> None:
    """The tours of the pair are those of a plain loop that was shown the same."""
    instance = TSP.sample(SIZE, 1, 3)[0]
    start = TSP.rules(instance).start(python_rng("start", 0, instance.digest, 4))
    values = list(range(STEPS))[::-1]
    cases: list[tuple[Any, Any]] = [
        (OBSERVED, lambda z, t: z),
        (HIDDEN, lambda z, t: 0),
        (fixed(10), lambda z, t: 10),
        (INVERTED, lambda z, t: 30 if z < 10 else 0),
        ({(instance.digest, 4): given(values)}, lambda z, t: values[t]),
    ]
    endings = set()
    for shown, rule in cases:
        with LocalEvaluator(TSP, shown=shown) as evaluator:
            found = evaluator.run([PAIR], [instance], seeds=(4,), steps=STEPS)
        best, states = by_hand(instance.dist.tolist(), start, rule, STEPS)
        assert found.best_cost[0, 0, 0].tolist() == best
        assert found.state[0, 0, 0].tolist() == states
        endings.add(tuple(best))
    assert len(endings) == len(cases)  # so what is shown cannot have been mixed up


@pytest.mark.long
def test_each_rollout_is_shown_its_own() -> None:
    instances = TSP.sample(SIZE, 2, 3)
    own = {
        (instance.digest, seed): given([10 * i + seed] * STEPS)
        for i, instance in enumerate(instances)
        for seed in (0, 1)
    }

    def run(shown: Any, workers: int = 1) -> Rollouts:
        with LocalEvaluator(TSP, workers, shown=shown) as evaluator:
            return evaluator.run([PAIR], instances, seeds=(0, 1), steps=STEPS)

    mixed = run(own, workers=2)
    for i in range(2):
        for seed in (0, 1):
            alone = run(fixed(10 * i + seed))
            np.testing.assert_array_equal(mixed.best_cost[0, i, seed], alone.best_cost[0, i, seed])
    del own[instances[1].digest, 1]
    with pytest.raises(InputError, match="no state to show"):
        run(own)
    with pytest.raises(InputError, match="too few"):
        of_rollout(given([1, 2]), "any", 0, 3)


# --- one step -------------------------------------------------------------------------------------


def test_one_step_by_hand() -> None:
    instance = TSP.sample(6, 1, 0)[0]
    tour = [3, 1, 4, 0, 5, 2]
    behind = Program.from_source(
        "repair", "def repair(d, p, removed, z, rng):\n    return p[:z] + removed + p[z:]\n"
    )
    with LocalEvaluator(TSP) as evaluator:
        step = take_step(evaluator, Pair(PAIR.destroy, behind), instance, tour, z=2)
        assert (step.removed, step.partial) == ([4], [3, 1, 0, 5, 2])
        assert step.candidate == [3, 1, 4, 0, 5, 2]
        assert step.cost == TSP.cost(instance, step.candidate)
        step = take_step(evaluator, Pair(PAIR.destroy, behind), instance, tour, z=5)
        assert (step.removed, step.candidate) == ([2], [3, 1, 4, 0, 5, 2])
        with pytest.raises(InputError, match="infeasible"):
            take_step(evaluator, PAIR, instance, tour[1:], z=2)
        lazy = Program.from_source("repair", "def repair(d, partial, removed, z, rng):\n    pass\n")
        with pytest.raises(InputError, match="invalid: repair: complete_tour must be a list"):
            take_step(evaluator, Pair(PAIR.destroy, lazy), instance, tour, z=2)
        refused = Program.from_source("repair", "def repair(d):\n    pass\n")
        with pytest.raises(InputError, match="rejected: repair: "):
            take_step(evaluator, Pair(PAIR.destroy, refused), instance, tour, z=2)


def test_one_step_draws_alike_for_the_same_seed() -> None:
    """Another repair meets the same destruction, in routes too."""
    draws = Program.from_source(
        "destroy",
        "def destroy(dist, demands, capacity, routes, z, rng):\n"
        "    gone = rng.sample([v for route in routes for v in route], 3)\n"
        "    return [[v for v in route if v not in gone] for route in routes], gone\n",
    )
    alone, ahead = (
        Program.from_source(
            "repair",
            "def repair(dist, demands, capacity, routes, removed, z, rng):\n"
            f"    return routes + [[v] for v in {order}]\n",
        )
        for order in ("removed", "removed[::-1]")
    )
    instance = CVRP.sample(12, 1, 0)[0]
    start = CVRP.rules(instance).start(random.Random(0))
    with LocalEvaluator(CVRP) as evaluator:
        first, second, other = (
            take_step(evaluator, Pair(draws, repair), instance, start, z=0, seed=seed)
            for repair, seed in ((alone, 0), (ahead, 0), (alone, 1))
        )
    assert first.removed == second.removed != other.removed
    assert first.partial == [[v for v in route if v not in first.removed] for route in start]
    kept = [route for route in first.partial if route]
    assert first.candidate == kept + [[v] for v in first.removed]
    assert second.candidate == kept + [[v] for v in first.removed[::-1]]
