"""Local searches of Appendix C: 2-opt and 3-opt for the TSP; 2-opt, relocate and swap for the CVRP.

All of them take the best move of their whole neighbourhood at every step (the paper does not say
first or best), of equally good ones the first found, so their results depend on nothing but the
instance. A move counts as improving if it gains more than a millionth of a millionth of the
longest edge: less than that may be rounding, and could go round in circles.
"""

from collections.abc import Callable, Iterator
from itertools import chain, groupby

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.construction import clarke_wright, demands_of, nearest_neighbor

MOST_MOVES = 500  # of 3-opt and of the CVRP's local search (Appendix C)


def least_gain(dist: np.ndarray) -> float:
    """What a move has to gain, and more, to count as improving."""
    return 1e-12 * float(dist.max())


# --- TSP ------------------------------------------------------------------------------------------


def two_opt(instance: Instance, seed: int = 0) -> list[int]:
    """Nearest neighbour, then at most n^2 improving 2-opt moves. The seed changes nothing."""
    tour, _ = two_opt_moves(instance.dist, nearest_neighbor(instance), instance.size**2)
    return tour


def three_opt(instance: Instance, seed: int = 0) -> list[int]:
    """`two_opt`, then at most 500 improving moves of 3-opt. The seed changes nothing."""
    tour, _ = three_opt_moves(instance.dist, two_opt(instance), MOST_MOVES)
    return tour


def two_opt_moves(dist: np.ndarray, tour: list[int], most: int) -> tuple[list[int], int]:
    """`tour` after at most `most` improving moves, and how many there were.

    dist: [N, N] float64, symmetric. A step looks at all pairs of edges: O(n^2), in whole arrays.
    """
    nodes, n, least = np.array(tour), len(tour), least_gain(dist)
    # Distances in the order of the tour, its first node repeated behind the last: in this order a
    # move is a reversal of rows and columns, and the gains are sums of shifted views.
    there = np.append(nodes, nodes[0])
    d = dist[np.ix_(there, there)]
    gain = np.empty((n, n))
    for moves in range(most):
        edges = d.diagonal(1)
        np.add(d[:n, :n], d[1:, 1:], out=gain)
        np.subtract(edges[:, None], gain, out=gain)
        gain += edges
        gain.flat[:: n + 1] = 0.0  # an edge with itself is no move
        i, j = sorted(divmod(int(gain.argmax()), n))
        if gain[i, j] <= least:
            return nodes.tolist(), moves
        turned = slice(i + 1, j + 1)
        nodes[turned] = nodes[turned][::-1].copy()
        d[turned] = d[turned][::-1].copy()
        d[:, turned] = d[:, turned][:, ::-1].copy()
    return nodes.tolist(), most


def three_opt_moves(dist: np.ndarray, tour: list[int], most: int) -> tuple[list[int], int]:
    """`tour` after at most `most` improving moves of two or three edges, and how many there were.

    dist: [N, N] float64, symmetric. The tour returned has no improving exchange of three edges, by
    any of the seven ways to reconnect them, unless `most` ended the search.
    """
    search = _ThreeOpt(dist, tour)
    for moves in range(most):
        if not search.step():
            return search.tour, moves
    return search.tour, most


class _ThreeOpt:
    """Best improvement over all exchanges of three edges, without looking at most of them.

    An exchange takes out the edges (t1, t2), (t3, t4), (t5, t6) and puts in (t2, t3), (t4, t5),
    (t6, t1). If it gains, it can be named such that what is taken out outweighs what is put in
    after every pair of these (Lin and Kernighan, 1973): so only t3 nearer to t2 than t1 is, and
    only t5 near enough to t4, need to be tried, and in a tour that 2-opt left there are few.
    """

    def __init__(self, dist: np.ndarray, tour: list[int]):
        self.tour = list(tour)
        self._least = least_gain(dist)
        self._rows = dist.tolist()
        self._near = np.argsort(dist, axis=1, kind="stable")  # [N, N] nodes by distance
        self._how_near = np.take_along_axis(dist, self._near, axis=1)
        self._place = [0] * len(tour)

    def step(self) -> bool:
        """Make the best move; whether there was one."""
        for place, node in enumerate(self.tour):
            self._place[node] = place
        most = self._least
        best: tuple[int, int, str, int, int] | None = None
        for t1 in self.tour:
            for sense in (1, -1):
                for gain, kind, i, j in self._moves(t1, sense, most):
                    if gain > most:
                        most, best = gain, (t1, sense, kind, i, j)
        if best is not None:
            self._apply(*best)
        return best is not None

    def _nearer(self, node: int, radius: float) -> list[int]:
        """The nodes that are nearer to `node` than `radius`, nearest first."""
        return self._near[node, : self._how_near[node].searchsorted(radius)].tolist()

    def _moves(self, t1: int, sense: int, most: float) -> Iterator[tuple[float, str, int, int]]:
        """(gain, kind, i, j) of the moves that take out t1 and the node after it, in `sense`.

        i and j are the last places of the two segments that the move changes, counted from t2.
        Moves that gain `most` or less may be left out.
        """
        tour, place, rows, n = self.tour, self._place, self._rows, len(self.tour)
        first = (place[t1] + sense) % n
        t2 = tour[first]
        for t3 in self._nearer(t2, rows[t1][t2]):
            if t3 == t2:
                continue
            gain1 = rows[t1][t2] - rows[t2][t3]
            k3 = (place[t3] - first) * sense % n
            # t4 before t3: the tour can be closed here, which is 2-opt, or with any edge.
            t4 = tour[(place[t3] - sense) % n]
            if t4 != t2:
                gain2 = gain1 + rows[t3][t4]
                if gain2 - rows[t4][t1] > most:
                    yield gain2 - rows[t4][t1], "turn", k3 - 1, k3 - 1
                for t5 in self._nearer(t4, gain2):
                    k5 = (place[t5] - first) * sense % n
                    if k5 in (k3 - 1, k3):
                        continue
                    t6 = tour[(place[t5] + (sense if k5 < k3 else -sense)) % n]
                    gain = gain2 - rows[t4][t5] + rows[t5][t6] - rows[t6][t1]
                    if gain > most:
                        yield (
                            (gain, "swap, turn first", k5, k3 - 1)
                            if k5 < k3
                            else (gain, "swap, turn second", k3 - 1, k5 - 1)
                        )
            # t4 behind t3: t2 to t3 is cut off from the rest, so the third edge lies in it.
            t4 = tour[(place[t3] + sense) % n]
            gain2 = gain1 + rows[t3][t4]
            for t5 in self._nearer(t4, gain2):
                k5 = (place[t5] - first) * sense % n
                if k5 < k3:
                    t6 = tour[(place[t5] + sense) % n]
                    gain = gain2 - rows[t4][t5] + rows[t5][t6] - rows[t6][t1]
                    if gain > most:
                        yield gain, "swap", k5, k3
                if 0 < k5 <= k3:
                    t6 = tour[(place[t5] - sense) % n]
                    gain = gain2 - rows[t4][t5] + rows[t5][t6] - rows[t6][t1]
                    if gain > most:
                        yield gain, "turn both", k5 - 1, k3

    def _apply(self, t1: int, sense: int, kind: str, i: int, j: int) -> None:
        """Reconnect the two segments behind t1 that end at places i and j."""
        tour, start = self.tour, self._place[t1]
        if sense == 1:
            walk = tour[start + 1 :] + tour[: start + 1]
        else:
            walk = tour[:start][::-1] + tour[start:][::-1]
        first, second, rest = walk[: i + 1], walk[i + 1 : j + 1], walk[j + 1 :]
        self.tour = {
            "turn": first[::-1],
            "swap": second + first,
            "swap, turn first": second + first[::-1],
            "swap, turn second": second[::-1] + first,
            "turn both": first[::-1] + second[::-1],
        }[kind] + rest


# --- CVRP -----------------------------------------------------------------------------------------


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
        self._route = np.repeat(np.arange(len(routes) + 1), [*(len(r) + 1 for r in routes), 1])
        self._at = np.flatnonzero(walk)  # [K]
        self._home = self._route[self._at]
        self._demand = demands[walk[self._at]]
        load = np.bincount(self._home, weights=self._demand, minlength=len(routes) + 1)
        self._room = capacity - load  # [routes + 1]

    def turn(self) -> _Found:
        """2-opt within a route."""
        edge = self._edge
        gain = edge[:, None] + edge - self._dist[:-1, :-1] - self._dist[1:, 1:]
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
        near = dist[at]  # [K, E+1]
        leaves = self._edge[at - 1] + self._edge[at] - dist[at - 1, at + 1]
        gain = leaves[:, None] + self._edge - near[:, :-1] - near[:, 1:]
        fits = self._demand[:, None] <= self._room[self._route]
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
        takes = dist[np.ix_(at - 1, at)] + dist[np.ix_(at + 1, at)]
        stands = self._edge[at - 1] + self._edge[at]
        gain = stands[:, None] + stands - takes - takes.T
        # The edge between neighbours stays, but was taken out twice and put in as two zeros.
        beside = np.flatnonzero(np.diff(at) == 1)
        gain[beside, beside + 1] -= 2 * self._edge[at[beside]]
        gain[beside + 1, beside] = -np.inf  # the same move
        more = self._demand - self._demand[:, None]  # load that the route of the first gets
        fits = more <= self._room[self._home][:, None]
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
