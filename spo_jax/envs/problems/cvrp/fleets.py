"""Routes for a limited number of vehicles, by ejections (after Nagata and Braysy, 2009).

Workers import this module: keep its imports light.
"""

import random
from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Any

from spo_jax.envs.problems.cvrp.limits import Limits, allowed

STEPS = 10_000  # insertions and ejections of a search, at most
WORK = 1_000_000  # steps times customers, at most
EJECTED = 3  # customers at once, at most
SETS = 500  # of customers of a route that are tried at once, about
MIXED = 10  # moves at random after an ejection

Routes = list[list[int]]


class Fleet:
    """Routes that are changed until there are few enough.

    rows: `rows[a][b]` is the way from a to b.
    """

    def __init__(self, rows: Any, demands: Sequence[int], capacity: int, limits: Limits | None):
        self._rows, self._demands, self._capacity = rows, demands, capacity
        self._limits = limits

    def reduced(
        self, routes: Routes, most: int, rng: random.Random, steps: int = STEPS
    ) -> Routes | None:
        """Feasible routes made `most` or fewer; None where the search finds none.

        The customers of the emptiest routes wait. The next one goes where it adds least; where no
        route takes it, it takes the place of customers that were in the way least often, which
        wait in turn, and customers of other routes change places at random.
        """
        kept = sorted((list(route) for route in routes if route), key=self._load)
        surplus = max(0, len(kept) - most)
        waiting = [node for route in kept[:surplus] for node in route]
        waiting.sort(key=self._demands.__getitem__)  # the largest is the next
        del kept[:surplus]
        blocked = [0] * len(self._demands)
        for _ in range(min(steps, WORK // len(blocked)) + len(waiting)):
            if not waiting:
                return kept
            node = waiting.pop()
            if self._inserted(kept, node):
                continue
            blocked[node] += 1
            out = self._replaced(kept, node, blocked, rng)
            if out:
                waiting += sorted(out, key=self._demands.__getitem__)
            else:
                waiting.insert(0, node)
            for _ in range(MIXED):
                self._mix(kept, rng)
        return None

    def _load(self, route: Sequence[int]) -> int:
        return sum(map(self._demands.__getitem__, route))

    def _place(self, route: list[int], node: int) -> tuple[float, int] | None:
        """What the shortest place for `node` adds, and its index; None beyond a limit.

        The load is not looked at.
        """
        rows, limits = self._rows, self._limits
        to = rows[node]
        added, place = min(
            (rows[a][node] + to[b] - rows[a][b], k)
            for k, (a, b) in enumerate(pairwise([0, *route, 0]))
        )
        if limits is not None:
            length, duration = limits.duration(rows, route)
            if length + added > allowed(limits.max_distance):
                return None
            if duration + added + limits.service[node] > allowed(limits.max_duration):
                return None
        return added, place

    def _inserted(self, routes: Routes, node: int) -> bool:
        """Whether a route has taken `node`: the one that gets longer by least."""
        most = self._capacity - self._demands[node]
        found = [
            (*place, r)
            for r, route in enumerate(routes)
            if self._load(route) <= most and (place := self._place(route, node))
        ]
        if not found:
            return False
        _, index, r = min(found)
        routes[r].insert(index, node)
        return True

    def _replaced(
        self, routes: Routes, node: int, blocked: list[int], rng: random.Random
    ) -> tuple[int, ...]:
        """The customers that `node` has taken the place of; () where a few would not do."""
        need, demands = self._demands[node], self._demands
        tries = []
        for r, route in enumerate(routes):
            excess, count = self._load(route) + need - self._capacity, 0
            for size in range(1, EJECTED + 1):
                for out in combinations(route, size):
                    count += 1
                    freed = sum(map(demands.__getitem__, out))
                    if freed >= excess:
                        price = sum(map(blocked.__getitem__, out))
                        tries.append((price, freed, rng.random(), r, out))
                if count * len(route) > SETS * (size + 1):
                    break
        tries.sort()
        for _, _, _, r, out in tries:
            left = [each for each in routes[r] if each not in out]
            place = self._place(left, node)
            if place is not None:
                left.insert(place[1], node)
                routes[r] = left
                return out
        return ()

    def _mix(self, routes: Routes, rng: random.Random) -> None:
        """Moves a customer drawn at random, or exchanges two, where the routes allow that."""
        if len(routes) < 2:
            return
        r, q = rng.sample(range(len(routes)), 2)
        a, b = rng.choice(routes[r]), rng.choice([*routes[q], 0])  # 0: nobody in exchange
        mine = [each for each in routes[r] if each != a]
        theirs = [each for each in routes[q] if each != b]
        if self._load(theirs) + self._demands[a] > self._capacity or not (mine or b):
            return
        if self._load(mine) + self._demands[b] > self._capacity:
            return
        there, here = self._place(theirs, a), self._place(mine, b) if b else (0.0, 0)
        if there is None or here is None:
            return
        theirs.insert(there[1], a)
        if b:
            mine.insert(here[1], b)
        routes[r], routes[q] = mine, theirs
