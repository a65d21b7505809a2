"""The time of each function of the kits, native and in Python, and how often the one is the other.

    python experiments/bench/kit.py [--problem tsp] [--sizes 50,200,500]

Uniform points, solutions that a local search has improved, 35% of the nodes removed as strings (in
the CVRP fewer, if they do not come together). The shortest of several calls, in microseconds, with
the matrix converted before. Results are compared on the way.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable
from importlib import import_module
from random import Random
from typing import Any

Calls = dict[str, Callable[[Any, Random], Any]]


def points(size: int, draw: Random) -> tuple[tuple[float, ...], ...]:
    """[size, size] distances of random points in the unit square."""
    places = [(draw.random(), draw.random()) for _ in range(size)]
    return tuple(tuple(math.hypot(a - c, b - d) for c, d in places) for a, b in places)


def tsp_calls(kit: Any, size: int) -> Calls:
    """Calls of a kit and a generator; `kit` makes the tour that they start from."""
    draw = Random(size)
    dist, tour = points(size, draw), list(range(size))
    tour = kit.or_opt(dist, kit.two_opt(dist, tour, tour, moves=10**6), tour)
    count = int(0.35 * size)
    partial, removed = kit.string_removal(dist, tour, 0, count, draw)
    draw.shuffle(removed)
    repaired = kit.ordered_insertion(dist, partial, removed)[0]
    return {
        "best_position": lambda lns, rng: lns.best_position(dist, partial, removed[0]),
        "cost": lambda lns, rng: lns.cost(dist, tour),
        "greedy_insertion": lambda lns, rng: lns.greedy_insertion(dist, partial, removed),
        "nearest": lambda lns, rng: lns.nearest(dist, 0, tour, 10),
        "neighbors": lambda lns, rng: lns.neighbors(dist, 10),
        "or_opt": lambda lns, rng: lns.or_opt(dist, repaired, removed),
        "ordered_insertion": lambda lns, rng: lns.ordered_insertion(dist, partial, removed),
        "ordered_insertion, near=8": lambda lns, rng: lns.ordered_insertion(
            dist, partial, removed, near=8
        ),
        "ordered_insertion, blink=.01": lambda lns, rng: lns.ordered_insertion(
            dist, partial, removed, blink=0.01, rng=rng
        ),
        "radial_removal": lambda lns, rng: lns.radial_removal(dist, tour, 0, count),
        "random_removal": lambda lns, rng: lns.random_removal(tour, count, rng),
        "regret_insertion": lambda lns, rng: lns.regret_insertion(dist, partial, removed),
        "regret_insertion, near=8": lambda lns, rng: lns.regret_insertion(
            dist, partial, removed, near=8
        ),
        "regret_insertion, noise=.1": lambda lns, rng: lns.regret_insertion(
            dist, partial, removed, noise=0.1, rng=rng
        ),
        "related_removal": lambda lns, rng: lns.related_removal(dist, tour, 0, count, rng),
        "remove": lambda lns, rng: lns.remove(tour, removed),
        "savings": lambda lns, rng: lns.savings(dist, tour),
        "segment_removal": lambda lns, rng: lns.segment_removal(tour, 0, count),
        "string_removal": lambda lns, rng: lns.string_removal(dist, tour, 0, count, rng),
        "two_opt": lambda lns, rng: lns.two_opt(dist, repaired, removed),
        "worst_removal": lambda lns, rng: lns.worst_removal(dist, tour, count, rng),
    }


def cvrp_calls(kit: Any, size: int) -> Calls:
    """As tsp_calls: `size` customers with demands from 1 to 9 and a capacity of 50."""
    draw = Random(size)
    dist, customers, count = points(size + 1, draw), list(range(1, size + 1)), int(0.35 * size)
    demands = (0, *(draw.randint(1, 9) for _ in customers))
    problem: tuple[Any, ...] = (dist, demands, 50)
    routes = kit.or_opt(*problem, kit.regret_insertion(*problem, [], customers)[0], customers)
    partial, removed = kit.string_removal(dist, routes, 1, count, draw)
    draw.shuffle(removed)
    task = (*problem, partial, removed)
    repaired = (*problem, kit.ordered_insertion(*task)[0], removed)
    return {
        "best_position": lambda lns, rng: lns.best_position(*problem, partial, removed[0]),
        "cost": lambda lns, rng: lns.cost(dist, routes),
        "greedy_insertion": lambda lns, rng: lns.greedy_insertion(*task),
        "loads": lambda lns, rng: lns.loads(demands, routes),
        "nearest": lambda lns, rng: lns.nearest(dist, 1, customers, 10),
        "neighbors": lambda lns, rng: lns.neighbors(dist, 10),
        "or_opt": lambda lns, rng: lns.or_opt(*repaired),
        "ordered_insertion": lambda lns, rng: lns.ordered_insertion(*task),
        "ordered_insertion, near=8": lambda lns, rng: lns.ordered_insertion(*task, near=8),
        "ordered_insertion, blink=.01": lambda lns, rng: lns.ordered_insertion(
            *task, blink=0.01, rng=rng
        ),
        "radial_removal": lambda lns, rng: lns.radial_removal(dist, routes, 1, count),
        "random_removal": lambda lns, rng: lns.random_removal(routes, count, rng),
        "regret_insertion": lambda lns, rng: lns.regret_insertion(*task),
        "regret_insertion, near=8": lambda lns, rng: lns.regret_insertion(*task, near=8),
        "regret_insertion, noise=.1": lambda lns, rng: lns.regret_insertion(
            *task, noise=0.1, rng=rng
        ),
        "related_removal": lambda lns, rng: lns.related_removal(
            dist, demands, routes, 1, count, rng
        ),
        "remove": lambda lns, rng: lns.remove(routes, removed),
        "route_removal": lambda lns, rng: lns.route_removal(dist, routes, 1, count),
        "savings": lambda lns, rng: lns.savings(dist, routes),
        "segment_removal": lambda lns, rng: lns.segment_removal(routes, 1, count),
        "slack": lambda lns, rng: lns.slack(dist, routes, 1),
        "string_removal": lambda lns, rng: lns.string_removal(dist, routes, 1, count, rng),
        "two_opt": lambda lns, rng: lns.two_opt(dist, repaired[3], removed),
        "two_opt_star": lambda lns, rng: lns.two_opt_star(*repaired),
        "vehicles": lambda lns, rng: lns.vehicles(dist),
        "worst_removal": lambda lns, rng: lns.worst_removal(dist, routes, count, rng),
    }


CALLS = {"tsp": tsp_calls, "cvrp": cvrp_calls}


def microseconds(call: Callable[[Any, Random], Any], kit: Any, patience: float) -> float:
    """The shortest call of those that fit `patience` seconds, at least one and at most 200."""
    best, spent, made = math.inf, 0.0, 0
    while made == 0 or (made < 200 and spent < patience):
        rng = Random(1)
        began = time.perf_counter()
        call(kit, rng)
        taken = time.perf_counter() - began
        best, spent, made = min(best, taken), spent + taken, made + 1
    return 1e6 * best


def table(problem: str, sizes: list[int], patience: float) -> None:
    """Prints a line for each function; a ratio of the two times after them, for each size."""
    place = f"spo_jax.envs.problems.{problem}.kit"
    try:
        native = import_module(f"{place}._native")
    except ImportError:
        sys.exit("The native kit is not built: pip install -e .")
    reference = import_module(f"{place}.reference")
    calls = {size: CALLS[problem](native, size) for size in sizes}
    print(f"\n{problem}, us")
    print(f"{'n':>30}" + "".join(f"{size:>15}{'Python':>11}{'ratio':>7}" for size in sizes))
    for name in calls[sizes[0]]:
        line = f"{name:>30}"
        for size in sizes:
            call = calls[size][name]
            if call(native, Random(1)) != call(reference, Random(1)):
                sys.exit(f"{name} differs at n = {size}")
            fast = microseconds(call, native, patience)
            slow = microseconds(call, reference, patience)
            line += f"{fast:15.1f}{slow:11.0f}{slow / fast:7.0f}"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Native and reference kits, timed.")
    parser.add_argument("--problem", choices=["tsp", "cvrp"], default=None)
    parser.add_argument("--sizes", default="50,200,500")
    parser.add_argument("--patience", type=float, default=0.2, help="seconds for each time")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    for problem in [given.problem] if given.problem else ["tsp", "cvrp"]:
        table(problem, sizes, given.patience)


if __name__ == "__main__":
    main()
