"""ALNS for the TSP: Ropke and Pisinger's operators where there is one route and no load.

Removals: random, worst, and Shaw's, whose relatedness is the distance alone. Insertions: greedy and
regret-2, -3 and -4. Their regret compares routes; here it compares the places of the one tour.
"""

from collections.abc import Callable

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.alns import Found, Operators, Settings, search
from spo_jax.envs.problems.tsp.files.tsplib import tour_cost
from spo_jax.seeding import numpy_rng

Tour = np.ndarray  # [N] int64


def alns(
    instance: Instance,
    seed: int = 0,
    *,
    steps: int = 500,
    seconds: float | None = None,
    report: Callable[[list[int]], None] = lambda tour: None,
) -> list[int]:
    """The best tour of `steps` iterations, from one that regret-2 insertion builds.

    seconds: of wall-clock time, instead of steps. report: is told each new best tour.
    """
    found = alns_search(
        instance, seed, Settings(iterations=steps), seconds, lambda tour: report(tour.tolist())
    )
    return found.solution.tolist()


def alns_search(
    instance: Instance,
    seed: int,
    settings: Settings,
    seconds: float | None = None,
    report: Callable[[Tour], None] = lambda tour: None,
) -> Found:
    """As `alns`, with the best cost of every step and the final weights; the tour is an array."""
    rng = numpy_rng("alns", instance.digest, seed)
    return search(TourOperators(instance, settings), rng, settings, seconds, report)


class TourOperators(Operators):
    """A solution and a partial one is a Tour."""

    def __init__(self, instance: Instance, settings: Settings):
        regrets = {"greedy": 1, "regret-2": 2, "regret-3": 3, "regret-4": 4}  # places compared
        super().__init__(instance, settings, np.arange(instance.size), instance.dist, regrets)

    def start(self) -> Tour:
        """Regret-2 insertion into the tour of the two nodes that are farthest apart."""
        pair = list(divmod(int(self.dist.argmax()), self.size))
        if pair[0] == pair[1]:  # all nodes lie on one spot
            return np.arange(self.size)
        left = [node for node in range(self.size) if node not in pair]
        return inserted(self.dist, self.back, np.array(pair), left, 2)

    def cost(self, tour: Tour) -> float:
        return tour_cost(self.dist, tour.tolist())

    def key(self, tour: Tour) -> bytes:
        """The tour from node 0, where the direction does not matter in the sense in which the
        smaller of its neighbours comes first.
        """
        turned = np.roll(tour, -int(tour.argmin()))
        if turned[1] > turned[-1] and not self.directed:
            turned[1:] = turned[:0:-1].copy()
        return turned.astype(np.int32).tobytes()

    def without(self, tour: Tour, removed: list[int]) -> Tour:
        gone = np.zeros(self.size, bool)
        gone[removed] = True
        return tour[~gone[tour]]

    def neighbors(self, tour: Tour) -> tuple[list[int], list[int]]:
        before, after = np.empty_like(tour), np.empty_like(tour)
        before[tour], after[tour] = np.roll(tour, 1), np.roll(tour, -1)
        return before.tolist(), after.tolist()

    def insert(
        self, tour: Tour, removed: list[int], noise: float, rng: np.random.Generator, compared: int
    ) -> Tour:
        def noisy(costs: np.ndarray) -> np.ndarray:
            return np.maximum(0.0, costs + rng.uniform(-noise, noise, costs.shape))

        return inserted(self.dist, self.back, tour, removed, compared, noisy if noise else None)


def inserted(
    dist: np.ndarray,
    back: np.ndarray,
    tour: Tour,
    nodes: list[int],
    compared: int,
    noisy: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Tour:
    """`tour` with all `nodes`, by regret over the `compared` cheapest places of each node.

    Every step inserts, where it is cheapest, the node that loses most if it had to take its other
    places: the sum over them of what they cost more than the cheapest. Ties go to the cheaper
    insertion; with `compared` of 1 that is all there is, greedy insertion. `noisy` changes the
    [K, compared] costs that a step compares. back: [N, N] dist transposed.
    """
    size, count = len(tour), len(nodes)
    compared = min(compared, size)
    left = np.array(nodes, np.int64)  # those that are not inserted yet
    # Place e is the edge from head[e] to tail[e]; an insertion shortens it and adds another.
    head, tail = np.empty(size + count, np.int64), np.empty(size + count, np.int64)
    head[:size], tail[:size] = tour, np.roll(tour, -1)
    cost = np.empty((count, size + count))
    cost[:, :size] = back[np.ix_(left, head[:size])] + dist[np.ix_(left, tail[:size])]
    cost[:, :size] -= dist[head[:size], tail[:size]]
    places, costs = _cheapest(cost[:, :size], compared)  # [K, compared] each
    dearest = costs.max(axis=1)
    while count:
        seen = costs if noisy is None else noisy(costs)
        lowest = seen.min(axis=1)
        k = int(lowest.argmin())
        if compared > 1:
            k = int(np.lexsort((lowest, compared * lowest - seen.sum(axis=1)))[0])
        place, node = int(places[k, seen[k].argmin()]), int(left[k])
        before, after = int(head[place]), int(tail[place])
        tail[place], head[size], tail[size] = node, node, after
        # The last of those left takes the place of the inserted one.
        count -= 1
        for array in (left, cost, places, costs, dearest):
            array[k] = array[count]
        left, places, costs, dearest = left[:count], places[:count], costs[:count], dearest[:count]
        here = dist[before, left] + back[node, left] - dist[before, node]
        there = dist[node, left] + back[after, left] - dist[node, after]
        cost[:count, place], cost[:count, size] = here, there
        size += 1
        # Whose cheapest places are others now: those that lost one, or were offered a cheaper one.
        changed = (places == place).any(axis=1) | (np.minimum(here, there) < dearest)
        rows = np.flatnonzero(changed)
        if len(rows):
            places[rows], costs[rows] = _cheapest(cost[rows, :size], compared)
            dearest[rows] = costs[rows].max(axis=1)
    follows = dict(zip(head.tolist(), tail.tolist(), strict=True))
    whole = [int(tour[0])]
    while len(whole) < size:
        whole.append(follows[whole[-1]])
    return np.array(whole)


def _cheapest(cost: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The `count` cheapest places of each row and their costs, in no order: [K, count] each."""
    if count == 1:
        places = cost.argmin(axis=1)[:, None]
    else:
        places = cost.argpartition(count - 1, axis=1)[:, :count]
    return places, cost[np.arange(len(cost))[:, None], places]
