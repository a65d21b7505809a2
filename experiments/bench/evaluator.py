"""Iterations a second of the evaluator against a bare loop and the `alns` library.

    python experiments/bench/evaluator.py
    python experiments/bench/evaluator.py --kit RUN    # pairs of a run, compiled kit or not

The bare loop calls the same two functions on list distances and keeps the better tour, with no
checks and no sandbox; it runs in this process, in turn with the others, and ratios are medians over
the turns, so that they hold on a noisy machine. Targets: at least 0.90 of the bare loop with
regret-2 (10 removed) and 0.75 with a random fifth and greedy; process overhead under 10 ms a pair.

--kit draws pairs of a run at random, whatever their J, and runs each with the compiled kit and with
the kit in Python (`in_python`), which must give the same costs to the last bit. Targets: the median
pair at least 5 times as fast at n = 50, and 8 (TSP) or 13 times (CVRP) at n = 200.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import in_python
import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.program import Pair, Program
from spo_jax.runs.run import load_run

RANDOM_FIFTH = '''
def destroy(dist, current_tour, steps_since_improvement, rng):
    """Remove a random fifth of the nodes."""
    removed = rng.sample(current_tour, max(1, len(current_tour) // 5))
    gone = set(removed)
    return [node for node in current_tour if node not in gone], removed
'''

GREEDY = '''
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    """Insert each node where it costs least."""
    tour = partial_tour
    for node in removed_nodes:
        row = dist[node]
        best = float("inf")
        place = 0
        before = tour[-1]
        for k, after in enumerate(tour):
            extra = row[before] + row[after] - dist[before][after]
            if extra < best:
                best = extra
                place = k
            before = after
        tour.insert(place, node)
    return tour
'''

REGRET = '''
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    """Insert the node that would lose most by waiting (regret-2)."""
    tour = list(partial_tour)
    pending = list(removed_nodes)
    while pending:
        choice = None
        largest = -1.0
        for node in pending:
            row = dist[node]
            first = second = float("inf")
            place = 0
            before = tour[-1]
            for k, after in enumerate(tour):
                extra = row[before] + row[after] - dist[before][after]
                if extra < first:
                    second = first
                    first = extra
                    place = k
                elif extra < second:
                    second = extra
                before = after
            if second - first > largest:
                largest = second - first
                choice = (node, place)
        tour.insert(choice[1], choice[0])
        pending.remove(choice[0])
    return tour
'''

CASES = {
    "regret-2, 10 removed": (RANDOM_FIFTH, REGRET, 0.90),
    "random fifth, greedy": (RANDOM_FIFTH, GREEDY, 0.75),
}


Operator = Callable[..., Any]
Instances = Sequence[Instance]


def functions(destroy: str, repair: str) -> tuple[Operator, Operator]:
    namespace: dict[str, Any] = {}
    exec(destroy + repair, namespace)
    return namespace["destroy"], namespace["repair"]


def bare_loop(
    instances: Instances, destroy: Operator, repair: Operator, seeds: Sequence[int], steps: int
) -> float:
    """Seconds for all rollouts."""
    tables = [instance.dist.tolist() for instance in instances]
    began = time.perf_counter()
    for dist in tables:
        for seed in seeds:
            rng = random.Random(seed)
            tour = list(range(len(dist)))
            rng.shuffle(tour)
            cost = sum(dist[tour[k - 1]][tour[k]] for k in range(len(tour)))
            z = 0
            for _ in range(steps):
                partial, removed = destroy(dist, tour, z, rng)
                candidate = repair(dist, partial, removed, z, rng)
                length = 0.0
                before = candidate[-1]
                for node in candidate:
                    length += dist[before][node]
                    before = node
                z = 0 if length < cost else z + 1
                if length <= cost:
                    tour, cost = candidate, length
    return time.perf_counter() - began


def alns_loop(
    instances: Instances, destroy: Operator, repair: Operator, seeds: Sequence[int], steps: int
) -> float:
    """The same through the `alns` library. Raises ImportError where it is not installed."""
    from alns import ALNS
    from alns.accept import HillClimbing
    from alns.select import RandomSelect
    from alns.stop import MaxIterations

    class State:
        def __init__(self, dist, tour, removed=()):
            self.dist, self.tour, self.removed = dist, tour, removed

        def objective(self):
            length = 0.0
            before = self.tour[-1]
            for node in self.tour:
                length += self.dist[before][node]
                before = node
            return length

    tables = [instance.dist.tolist() for instance in instances]
    began = time.perf_counter()
    for dist in tables:
        for seed in seeds:
            rng = random.Random(seed)
            tour = list(range(len(dist)))
            rng.shuffle(tour)

            def remove(state, _, rng=rng):
                return State(state.dist, *destroy(state.dist, state.tour, 0, rng))

            def insert(state, _, rng=rng):
                return State(state.dist, repair(state.dist, state.tour, state.removed, 0, rng))

            search = ALNS(np.random.default_rng(seed))
            search.add_destroy_operator(remove, name="destroy")
            search.add_repair_operator(insert, name="repair")
            select = RandomSelect(1, 1)
            search.iterate(State(dist, tour), select, HillClimbing(), MaxIterations(steps))
    return time.perf_counter() - began


def apart(
    evaluator: LocalEvaluator, instances: Instances, seeds: Sequence[int], steps: int, turns: int
) -> str:
    """What a process per rollout costs: the cheapest pair with and without a need for it."""
    together, alone = (
        Pair(Program.from_source("destroy", text), Program.from_source("repair", GREEDY))
        for text in (RANDOM_FIFTH, "import numpy as np\n" + RANDOM_FIFTH)
    )
    spent: dict[str, list[float]] = {"together": [], "alone": []}
    for _ in range(turns):
        for name, pair in (("together", together), ("alone", alone)):
            began = time.perf_counter()
            evaluator.run([pair], instances, seeds, steps)
            spent[name].append(time.perf_counter() - began)
    more = statistics.median(
        1000 * (b - a) / (len(instances) * len(seeds))
        for a, b in zip(spent["together"], spent["alone"], strict=True)
    )
    return f"a process per rollout, for programs that handle arrays: {more:.1f} ms more per rollout"


def with_and_without_kit(folder: str, count: int) -> None:
    """CPU seconds of a run's pairs with the compiled kit and with the kit in Python."""
    run = load_run(folder)
    native = get_problem(run.config.problem)
    python = in_python.PROBLEMS[native.name]()
    found = [Pair(run[each.destroy].program, run[each.repair].program) for each in run.pairs]
    known = [pair for pair in found if "lns." in pair.destroy.source + pair.repair.source]
    pairs = random.Random(0).sample(known, min(count, len(known)))
    print(f"{len(pairs)} pairs of {run.path.name}, of {len(known)} with the kit")
    for size, steps, target in ((50, 100, 5), (200, 20, 8 if native.name == "tsp" else 13)):
        instances = native.sample(size, 2, seed=0)
        results = []
        for problem in (native, python):
            with LocalEvaluator(problem, workers=1, cpu_seconds=1e5) as evaluator:
                results.append(evaluator.run(pairs, instances, (0,), steps))
        ok = results[0].ok & results[1].ok
        if not np.array_equal(results[0].best_cost[ok], results[1].best_cost[ok]):
            raise SystemExit("the compiled kit and the kit in Python give different costs")
        spent = [each.seconds[ok].sum(axis=(1, 2)) for each in results]
        ratio = spent[1] / spent[0]
        low, middle, high = np.percentile(ratio, (10, 50, 90))
        each = np.median(spent[0]) / len(instances) / steps
        print(
            f"n = {size}, {steps} steps, {ok.sum()} pairs that run: median ratio {middle:.1f} "
            f"(10th to 90th percentile {low:.1f} to {high:.1f}, target {target}), "
            f"{1e3 * each:.2f} ms a step with the compiled kit, same costs to the last bit"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--kit", metavar="RUN", help="compare the pairs of this run instead")
    parser.add_argument("--pairs", type=int, default=12, help="pairs of --kit")
    options = parser.parse_args()
    if options.kit:
        with_and_without_kit(options.kit, options.pairs)
        return
    problem = get_problem("tsp")
    instances, seeds, steps = problem.sample(50, 6, seed=0), (0, 1), 100
    count = len(instances) * len(seeds) * steps
    with LocalEvaluator(problem, workers=1) as evaluator:
        for name, (destroy, repair, target) in CASES.items():
            pair = Pair(
                Program.from_source("destroy", destroy), Program.from_source("repair", repair)
            )
            calls = functions(destroy, repair)
            ours: list[float] = []
            bare: list[float] = []
            library: list[float] = []
            for _ in range(options.turns):
                bare.append(bare_loop(instances, *calls, seeds, steps))
                began = time.perf_counter()
                rollouts = evaluator.run([pair], instances, seeds, steps)
                ours.append(time.perf_counter() - began)
                if not rollouts.ok.all():
                    raise SystemExit(f"the pair failed: {rollouts.failure(0)}")
                with suppress(ImportError):
                    library.append(alns_loop(instances, *calls, seeds, steps))
            ratio = statistics.median(b / o for b, o in zip(bare, ours, strict=True))
            print(
                f"{name}: bare {count / statistics.median(bare):,.0f} it/s, evaluator "
                f"{count / statistics.median(ours):,.0f} it/s, ratio {ratio:.2f} (target {target})"
            )
            if library:
                other = statistics.median(b / a for b, a in zip(bare, library, strict=True))
                print(f"{name}: the alns library, ratio {other:.2f}")
        print(apart(evaluator, instances, seeds, steps, options.turns))
        pairs = [
            Pair(Program.from_source("destroy", f"{RANDOM_FIFTH}# {k}\n"), pair.repair)
            for k in range(60)
        ]
        evaluator.run(pairs, instances[:1], (0,), 1)
        began = time.perf_counter()
        evaluator.run(pairs, instances[:1], (0,), 1)
        spent = 1000 * (time.perf_counter() - began) / len(pairs)
        print(f"process overhead: {spent:.1f} ms a pair (target under 10)")


if __name__ == "__main__":
    main()
