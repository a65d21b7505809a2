"""The TSP's heuristics of Appendix C: nearest neighbour, farthest insertion, 2-opt and 3-opt.

The local searches take the best move of their whole neighbourhood at every step (the paper does not
say first or best), of equally good ones the first found. None of these draws a random number: they
take a seed because every baseline does, and ignore it.
"""

from collections.abc import Iterator

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.errors import InputError

MOST_MOVES = 500  # of 3-opt (Appendix C)


def least_gain(dist: np.ndarray) -> float:
    """What a move has to gain, and more, to count as improving.

    Less than a millionth of a millionth of the longest edge may be rounding, and go in circles.
    """
    return 1e-12 * float(dist.max())


def nearest_neighbor(instance: Instance, seed: int = 0) -> list[int]:
    """A tour from node 0 that always goes on to the nearest node it has not visited.

    Of equally near nodes the one of smaller number is taken. O(n^2).
    """
    dist = instance.dist
    visited = np.zeros(len(dist))  # infinity where visited: added to the distances
    tour = [0]
    for _ in range(len(dist) - 1):
        visited[tour[-1]] = np.inf
        tour.append(int((dist[tour[-1]] + visited).argmin()))
    return tour


def patched(instance: Instance) -> list[int]:
    """A tour made of the shortest set of cycles through all nodes (Karp and Steele, 1985).

    The two largest cycles become one where that adds least, until there is one. It is for directed
    instances: with edges that are alike both ways most of the cycles go there and back. O(n^3).
    """
    from scipy.optimize import linear_sum_assignment

    dist, n = instance.dist, instance.size
    far = 2.0 * n * float(dist.max()) + 1.0  # no node follows itself
    _, after = linear_sum_assignment(dist + np.diag(np.full(n, far)))
    cycles: list[np.ndarray] = []
    left = np.ones(n, bool)
    for first in range(n):
        if left[first]:
            nodes = [first]
            while after[nodes[-1]] != first:
                nodes.append(int(after[nodes[-1]]))
            left[nodes] = False
            cycles.append(np.array(nodes))
    cycles.sort(key=len, reverse=True)
    whole = cycles[0]
    for cycle in cycles[1:]:
        # Edge k of one and edge l of the other cross over.
        on, along = np.roll(whole, -1), np.roll(cycle, -1)
        added = dist[np.ix_(whole, along)] + dist[np.ix_(cycle, on)].T
        added -= dist[whole, on][:, None] + dist[cycle, along]
        k, j = divmod(int(added.argmin()), len(cycle))
        whole = np.concatenate([whole[: k + 1], np.roll(cycle, -j - 1), whole[k + 1 :]])
    return whole.tolist()


def farthest_insertion(instance: Instance, seed: int = 0) -> list[int]:
    """A tour grown from the two nodes that are farthest apart.

    Each step takes the node whose distance to the nearest node of the tour is largest, and inserts
    it where the tour grows least. O(n^2).
    """
    dist = instance.dist
    first, second = divmod(int(dist.argmax()), len(dist))
    if first == second:  # all nodes lie on one spot
        return list(range(len(dist)))
    tour = np.array([first, second])
    to_tour = np.minimum(dist[first], dist[second])
    to_tour[tour] = -np.inf
    for _ in range(len(dist) - 2):
        node = int(to_tour.argmax())
        after = np.roll(tour, -1)
        place = int((dist[tour, node] + dist[node, after] - dist[tour, after]).argmin())
        tour = np.insert(tour, place + 1, node)
        np.minimum(to_tour, dist[node], out=to_tour)
        to_tour[node] = -np.inf
    return tour.tolist()


def two_opt(instance: Instance, seed: int = 0) -> list[int]:
    """Nearest neighbour, then at most n^2 improving 2-opt moves. The seed changes nothing."""
    tour, _ = two_opt_moves(instance.dist, nearest_neighbor(instance), instance.size**2)
    return tour


def three_opt(instance: Instance, seed: int = 0) -> list[int]:
    """`two_opt`, then at most 500 improving moves of 3-opt. The seed changes nothing.

    Raises InputError for a directed instance: most ways to reconnect turn stretches round, whose
    length then changes, and the search here does not count that.
    """
    if instance.directed:
        raise InputError(
            f"{instance.name}: 3-opt is for distances that are alike both ways; 2-opt takes these"
        )
    tour, _ = three_opt_moves(instance.dist, two_opt(instance), MOST_MOVES)
    return tour


def two_opt_moves(dist: np.ndarray, tour: list[int], most: int) -> tuple[list[int], int]:
    """`tour` after at most `most` improving moves, and how many there were.

    dist: [N, N] float64. A step looks at all pairs of edges: O(n^2), in whole arrays.
    """
    nodes, n, least = np.array(tour), len(tour), least_gain(dist)
    directed = not np.array_equal(dist, dist.T)
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
        if directed:  # the stretch between the edges is turned: row i, column j > i
            longer = np.append(0.0, np.cumsum(d.diagonal(-1) - edges))
            gain -= longer[:n] - longer[1 : n + 1, None]
            gain[np.tri(n, dtype=bool)] = 0.0
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
