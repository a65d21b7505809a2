"""How `spo solve` starts on a TSP instance, and the parts of a large one that programs see.

Workers import this module: keep its imports light.
"""

import math
import time
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from spo_jax.envs.problem import Instance, Part

NEAR = 16  # neighbours that the local search of a start looks at
SWEEPS = 20  # of that search, at most
PATCHED = 2000  # nodes whose shortest cycles are found in about a second


def construct(instance: Instance, until: float = math.inf) -> list[int]:
    """Nearest neighbour, then Lin and Kernighan's search of the kit until it gains nothing.

    Of a directed instance of up to `PATCHED` nodes also from patched cycles; the shorter of both.
    Where the kit is not compiled, without that search. O(n^2), directed O(n^3). No local
    search begins at `until`, a time.monotonic(), or later.
    """
    from spo_jax.envs.problems.tsp.baselines.heuristics import nearest_neighbor, patched
    from spo_jax.envs.problems.tsp.files.tsplib import tour_cost

    tours = [_searched(instance, nearest_neighbor(instance), until)]
    if instance.directed and instance.size <= PATCHED and time.monotonic() < until:
        tours.append(_searched(instance, patched(instance), until))
    return min(tours, key=lambda tour: tour_cost(instance.dist, tour))


def _searched(instance: Instance, tour: list[int], until: float) -> list[int]:
    """`tour` after the local search of the kit."""
    from spo_jax.envs.problems.tsp import kit
    from spo_jax.envs.problems.tsp.files.tsplib import tour_cost

    if not kit.NATIVE or instance.size < 8:
        return tour
    dist, nodes = instance.dist, list(range(instance.size))
    kit.prepare(dist)
    far = dist[nodes, [near[-1] for near in kit.neighbors(dist, NEAR)]]
    cost = tour_cost(dist, tour)
    for _ in range(SWEEPS):
        if time.monotonic() >= until:
            break
        better = kit.lin_kernighan(dist, tour, nodes, near=NEAR, moves=1 << 30)
        if not instance.directed:
            better = _relinked(instance, better, far)
        lower = tour_cost(dist, better)
        if lower >= cost:
            break
        tour, cost = better, lower
    return tour


def _relinked(instance: Instance, tour: list[int], far: np.ndarray) -> list[int]:
    """`tour` after a search among the ends of its long edges, which near nodes do not reach.

    Between clusters no end of an edge is among the nearest nodes of another one. far: [N], the
    distance from each node to the last of its near ones.
    """
    from spo_jax.envs.problems.tsp import kit

    dist, walk = instance.dist, np.asarray(tour)
    after = np.roll(walk, -1)
    long = dist[walk, after] > np.minimum(far[walk], far[after])
    inside = np.zeros(instance.size, bool)
    inside[walk[long]] = inside[after[long]] = True
    if inside.sum() < 8:
        return tour
    part = reduced(instance, tour, inside)
    found = kit.lin_kernighan(part.instance.dist, part.solution, part.solution, near=NEAR)
    return part.whole(found) or tour


def part(instance: Instance, tour: Sequence[int], center: int, size: int) -> Part:
    """The `size` nodes nearest to `center` as an instance (`reduced`), 5 at least."""
    size = max(5, size)
    inside = np.zeros(instance.size, bool)
    inside[np.argpartition(instance.dist[center], size - 1)[:size]] = True
    return reduced(instance, tour, inside)


def reduced(instance: Instance, tour: Sequence[int], inside: np.ndarray) -> Part:
    """The nodes inside, [N] of bool, as an instance, in the order of the tour.

    What lies between two of them, outside, is an edge that is so short that no good tour leaves it
    out: all their lengths together are below those of any two tours of the rest. A tour without one
    of them does not fit into the whole, nor, if the instance is directed, one that takes it the
    other way. At least 5 nodes, so that two of them have one such edge.
    """
    walk = np.asarray(tour)
    first = int(np.argmax(inside[walk]))
    walk = np.roll(walk, -first)  # so that it begins inside
    places = np.flatnonzero(inside[walk])
    nodes = walk[places]  # [size], in the order of the tour
    ends = np.append(places[1:], len(walk))
    outside = np.flatnonzero(ends - places > 1)  # nodes k and k + 1 have others between them
    dist = instance.dist[np.ix_(nodes, nodes)]
    after = np.append(np.arange(1, len(nodes)), 0)
    short = -2.0 * float(dist.max())
    between: dict[tuple[int, int], list[int]] = {}
    order = walk.tolist()
    for k in outside.tolist():
        other = int(after[k])
        path = order[int(places[k]) + 1 : int(ends[k])]
        dist[k, other], between[k, other] = short, path
        if not instance.directed:
            dist[other, k], between[other, k] = short, path[::-1]
    names = nodes.tolist()

    def whole(solution: Sequence[int]) -> list[int] | None:
        made: list[int] = []
        used = 0
        for k, other in pairwise([*solution, solution[0]]):
            made.append(names[k])
            path = between.get((k, other))
            if path:
                made += path
                used += 1
        return made if used == len(outside) else None

    seen = Instance(instance.problem, instance.name, len(names), dist=dist)
    return Part(seen, list(range(len(names))), whole)
