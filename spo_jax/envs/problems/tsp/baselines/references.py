"""Reference tours: LKH, proven shortest or improved by branch and cut where that is affordable.

Appendix B uses Concorde, which is not on PyPI. LKH works on integers, so float distances are scaled
and rounded for its search.
"""

import math
import time
from collections.abc import Callable
from importlib.metadata import version

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.tsp.files.tsplib import check_tour, tour_cost
from spo_jax.envs.problems.tsp.files.weights import scaled
from spo_jax.errors import MissingExtra
from spo_jax.seeding import derive, numpy_rng
from spo_jax.stopping import at_once

# By effort: runs of LKH, and the most nodes of a tour that is proven shortest.
EFFORTS = {"quick": (1, 50), "standard": (3, 100), "paper": (10, 200)}

# The largest scaled edge: LKH multiplies by 100 and adds node penalties, all in 32-bit integers.
_LARGEST = 2_000_000


def solve_reference(instance: Instance, effort: str) -> tuple[list[int], str, bool]:
    """A tour, who found it how, and whether it is proven shortest. Raises MissingExtra."""
    runs, exact_size = EFFORTS[effort]
    tour = lkh(instance, runs=runs)
    source = f"LKH (elkai {version('elkai')}), runs={runs}"
    if instance.size > exact_size or instance.directed:  # the proof is of edges without direction
        return tour, source, False
    from spo_jax.envs.problems.tsp.baselines.branch_and_cut import prove

    proof = prove(instance, tour)
    if proof.cost < tour_cost(instance.dist, tour):
        source += ", improved"
    if proof.proven:
        source += f", proven by branch and cut (scipy {version('scipy')})"
    else:
        source += f", not proven by branch and cut in {proof.nodes} nodes"
    return proof.tour, source, proof.proven


def lkh(instance: Instance, seed: int | None = None, runs: int = 3) -> list[int]:
    """A tour by LKH.

    LKH's own seed is fixed, so the same call gives the same tour; a `seed` shows it the nodes in
    another order. Raises MissingExtra without elkai.
    """
    n = instance.size
    if n <= 3:  # every order is the same tour
        return list(range(n))
    try:
        from elkai import DistanceMatrix
    except ImportError:
        raise MissingExtra("elkai", "solvers") from None
    order = np.arange(n) if seed is None else numpy_rng("lkh", seed).permutation(n)
    # Floats would be read too, and silently answered with a bad tour.
    weights = scaled(instance.dist, _LARGEST)[np.ix_(order, order)]
    with at_once():
        closed = DistanceMatrix(weights.tolist()).solve_tsp(runs=runs)
    tour = [int(order[k]) for k in closed[:-1]]
    check_tour(instance, tour)
    return tour


def lkh_runs(
    instance: Instance,
    seed: int = 0,
    *,
    seconds: float | None = None,
    report: Callable[[list[int]], None] = lambda tour: None,
) -> list[int]:
    """The best tour of LKH's runs, each of which sees the nodes in another order.

    A run cannot be ended. The first one always ends by itself; another begins as long as one like
    the longest so far would end within `seconds` of wall-clock time. Without seconds there is one.
    report: is told each new best tour. Raises MissingExtra without elkai.
    """
    began = time.monotonic()
    best: list[int] = []
    lowest, longest, run = math.inf, 0.0, 0
    while True:
        before = time.monotonic()
        tour = lkh(instance, derive("lkh runs", seed, run), runs=1)
        cost = tour_cost(instance.dist, tour)
        if cost < lowest:
            best, lowest = tour, cost
            report(tour)
        now = time.monotonic()
        longest, run = max(longest, now - before), run + 1
        if seconds is None or now - began + longest > seconds:
            return best
