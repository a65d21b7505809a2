"""The CVRP's heuristics of Appendix C: Clarke and Wright's savings, and a local search from there.

The local search takes the best move of 2-opt, relocate and swap at every step (the paper does not
say first or best), of equally good ones the first found. Neither draws a random number: they take
a seed because every baseline does, and ignore it.
"""

from collections.abc import Callable
from itertools import chain, groupby
from typing import Any

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.cvrp.files.cvrplib import demands_of
from spo_jax.envs.problems.cvrp.limits import limits_of
from spo_jax.envs.problems.tsp.baselines.heuristics import least_gain

MOST_MOVES = 500  # of the local search (Appendix C)


def clarke_wright(instance: Instance, seed: int = 0) -> list[list[int]]:
    """Routes by the parallel savings algorithm (Clarke and Wright, 1964).

    Every customer starts alone. Savings d(i, 0) + d(0, j) - d(i, j) are gone through from the
    largest down, as long as they are positive; two routes are joined where i and j are their ends
    and both fit into one vehicle and its limits. Equal savings go by customer numbers. In a
    directed instance i ends one route and j begins the other, and none is turned round.
    O(n^2 log n).
    """
    n = len(instance.dist) - 1
    pairs = np.nonzero(~np.eye(n, dtype=bool)) if instance.directed else np.triu_indices(n, k=1)
    return joined(instance, *pairs)


def near_savings(instance: Instance, near: int) -> list[list[int]]:
    """As `clarke_wright`, with the savings of each customer and its `near` nearest alone."""
    rows = instance.dist[1:, 1:]
    count = min(near + 1, len(rows))
    left, right = np.repeat(np.arange(len(rows)), count), _nearest(rows, count)
    if instance.directed:  # from near ones, too
        left, right = np.append(left, _nearest(rows.T, count)), np.append(right, left)
    else:
        left, right = np.minimum(left, right), np.maximum(left, right)
    left, right = np.divmod(np.unique(left * len(rows) + right), len(rows))
    return joined(instance, left[left != right], right[left != right])


def _nearest(rows: np.ndarray, count: int) -> np.ndarray:
    """The places of the `count` smallest numbers of each row [n, N], in any order: [n * count]."""
    found = np.empty((len(rows), count), np.int64)
    for k, row in enumerate(rows):
        found[k] = np.argpartition(row, count - 1)[:count]
    return found.ravel()


def joined(instance: Instance, left: np.ndarray, right: np.ndarray) -> list[list[int]]:
    """Routes joined by the savings of these pairs of customers, [K] each, counted from 0.

    Pairs of a directed instance are from the left one to the right one.
    """
    demands, capacity = demands_of(instance)
    limits = limits_of(instance)
    dist, customers = instance.dist, np.arange(1, len(instance.dist))
    ends = customers[left], customers[right]
    saving = dist[ends[0], 0] + dist[0, ends[1]] - dist[ends]
    order = np.argsort(-saving, kind="stable")
    order = order[: int((saving > 0).sum())]
    route_of = [[customer] for customer in range(len(dist))]  # a list shared by its customers
    load = demands.tolist()  # of the route that a customer is in, kept at the route's ends
    for i, j in zip(customers[left[order]].tolist(), customers[right[order]].tolist(), strict=True):
        first, second = route_of[i], route_of[j]
        if first is second or load[i] + load[j] > capacity:
            continue
        if instance.directed and (i != first[-1] or j != second[0]):
            continue
        if i not in (first[0], first[-1]) or j not in (second[0], second[-1]):
            continue
        if first[-1] != i:
            first.reverse()
        if second[0] != j:
            second.reverse()
        if limits is not None and limits.excess(dist, [[*first, *second]]):
            continue  # perhaps turned round in vain, which costs nothing
        total = load[i] + load[j]
        first += second
        for customer in second:
            route_of[customer] = first
        load[first[0]] = load[first[-1]] = total
    routes = {id(route): route for route in route_of[1:]}
    return list(routes.values())


def local_search(instance: Instance, seed: int = 0) -> list[list[int]]:
    """Clarke-Wright, then at most 500 moves of `route_moves`. The seed changes nothing."""
    routes, _ = route_moves(instance, clarke_wright(instance), MOST_MOVES)
    return routes


def route_moves(
    instance: Instance, routes: list[list[int]], most: int
) -> tuple[list[list[int]], int]:
    """`routes` after at most `most` improving moves, and how many there were.

    A move reverses a part of one route (2-opt), moves one customer to another place of any route
    or into a route of its own (relocate), or exchanges two customers of any routes (swap).
    """
    routes = [list(route) for route in routes if route]
    least = least_gain(instance.dist)
    for moves in range(most):
        layout = _Layout(instance, routes)
        best = max((layout.turn(), layout.relocate(), layout.swap()), key=lambda found: found[0])
        if best[0] <= least:
            return routes, moves
        routes = best[1]()
    return routes, most


_Found = tuple[float, Callable[[], list[list[int]]]]  # what the best move gains, and its making


class _Layout:
    """All moves of some routes at once, as arrays over a walk through them.

    The walk is depot, first route, depot, second route, ..., depot, depot: E edges, of which the
    last is an empty route. K customers stand at places `at` in it, in the order of the walk.
    """

    def __init__(self, instance: Instance, routes: list[list[int]]):
        demands, capacity = demands_of(instance)
        self._walk = [0, *chain.from_iterable([*route, 0] for route in routes), 0]
        walk = np.array(self._walk)
        self._dist = instance.dist[np.ix_(walk, walk)]  # [E+1, E+1]
        self._edge = self._dist.diagonal(1)  # [E]
        self._directed = instance.directed
        self._route = np.repeat(np.arange(len(routes) + 1), [*(len(r) + 1 for r in routes), 1])
        self._at = np.flatnonzero(walk)  # [K]
        self._home = self._route[self._at]
        self._demand = demands[walk[self._at]]
        load = np.bincount(self._home, weights=self._demand, minlength=len(routes) + 1)
        self._room = capacity - load  # [routes + 1]
        self._limits, self._service = limits_of(instance), np.zeros(len(self._at))  # [K]
        if self._limits is not None:
            every = [self._limits.duration(instance.dist, route) for route in [*routes, []]]
            self._length, self._duration = np.array(every).T  # [routes + 1] each
            if len(routes) >= self._limits.max_vehicles:
                self._length[-1] = np.inf  # there is none for a new route
            self._service = np.array(self._limits.service)[walk[self._at]]

    def _keeps(self, home: np.ndarray, longer: np.ndarray, service: np.ndarray) -> Any:
        """Whether routes keep the limits that get longer and more service; arrays of one shape."""
        if self._limits is None:
            return True
        length, duration = self._length[home] + longer, self._duration[home] + longer + service
        return (length <= self._limits.max_distance) & (duration <= self._limits.max_duration)

    def turn(self) -> _Found:
        """2-opt within a route."""
        edge = self._edge
        gain = edge[:, None] + edge - self._dist[:-1, :-1] - self._dist[1:, 1:]
        if self._directed:  # what is turned: from row i + 1 to column j > i
            longer = np.append(0.0, np.cumsum(self._dist.diagonal(-1) - edge))
            gain -= longer[:-1] - longer[1:, None]
            gain[np.tri(len(edge), dtype=bool)] = -np.inf
        gain[self._route[:, None] != self._route] = -np.inf
        np.fill_diagonal(gain, -np.inf)  # an edge with itself is no move
        best, (i, j) = _largest(gain)
        i, j = min(i, j), max(i, j)

        def made() -> list[list[int]]:
            walk = self._walk
            return _routes(walk[: i + 1] + walk[i + 1 : j + 1][::-1] + walk[j + 1 :])

        return best, made

    def relocate(self) -> _Found:
        """One customer to another edge."""
        at, dist = self._at, self._dist
        leaves = self._edge[at - 1] + self._edge[at] - dist[at - 1, at + 1]
        gain = leaves[:, None] + self._edge - dist[:-1, at].T - dist[at, 1:]  # [K, E]
        fits = self._demand[:, None] <= self._room[self._route]
        fits &= self._keeps(self._route, leaves[:, None] - gain, self._service[:, None])
        gain[~(fits | (self._home[:, None] == self._route))] = -np.inf
        every = np.arange(len(at))
        gain[every, at - 1] = gain[every, at] = -np.inf  # where it stands
        best, (k, place) = _largest(gain)

        def made() -> list[list[int]]:
            walk, here = self._walk, int(at[k])
            if place < here:
                return _routes(
                    [*walk[: place + 1], walk[here], *walk[place + 1 : here], *walk[here + 1 :]]
                )
            return _routes(
                [*walk[:here], *walk[here + 1 : place + 1], walk[here], *walk[place + 1 :]]
            )

        return best, made

    def swap(self) -> _Found:
        """Two customers with each other."""
        at, dist = self._at, self._dist
        # [K, K]: what the second costs in the place of the first.
        takes = dist[np.ix_(at - 1, at)] + dist[np.ix_(at, at + 1)].T
        stands = self._edge[at - 1] + self._edge[at]
        gain = stands[:, None] + stands - takes - takes.T
        # The edge between neighbours is turned, but was taken out twice and put in as two zeros.
        adjacent = np.flatnonzero(np.diff(at) == 1)
        gain[adjacent, adjacent + 1] -= (
            self._edge[at[adjacent]] + dist[at[adjacent] + 1, at[adjacent]]
        )
        gain[adjacent + 1, adjacent] = -np.inf  # the same move
        more = self._demand - self._demand[:, None]  # load that the route of the first gets
        fits = more <= self._room[self._home][:, None]
        home, service = self._home[:, None], self._service - self._service[:, None]
        fits &= self._keeps(home, takes - stands[:, None], service)
        gain[~((fits & fits.T) | (self._home[:, None] == self._home))] = -np.inf
        np.fill_diagonal(gain, -np.inf)
        best, (k, other) = _largest(gain)

        def made() -> list[list[int]]:
            walk, i, j = self._walk.copy(), int(at[k]), int(at[other])
            walk[i], walk[j] = walk[j], walk[i]
            return _routes(walk)

        return best, made


def _largest(gain: np.ndarray) -> tuple[float, tuple[int, int]]:
    row, column = divmod(int(gain.argmax()), gain.shape[1])
    return float(gain[row, column]), (row, column)


def _routes(walk: list[int]) -> list[list[int]]:
    return [list(group) for away, group in groupby(walk, key=bool) if away]
