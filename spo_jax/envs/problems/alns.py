"""Adaptive large neighbourhood search (Ropke and Pisinger, Transportation Science 40, 2006).

The search draws operators by weights that follow their success, with simulated annealing. Each
problem's `alns` has its operators. All parameters are the published ones but two: 500 iterations as
in Appendix C instead of 25,000, and a cooling rate that reaches the same fraction of the start
temperature in them.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp, log
from typing import Any

import numpy as np

from spo_jax.envs.problem import Instance

Partial = Any  # what a removal leaves, in the form that the problem's insertions take
Removed = tuple[Partial, list[int]]
Removal = Callable[[Any, int, np.random.Generator], Removed]
Insertion = Callable[[Partial, list[int], float, np.random.Generator], Any]


@dataclass(frozen=True)
class Settings:
    """Ropke and Pisinger's parameters, under their letters where these have one.

    iterations: destroy-repair iterations.
    segment: iterations after which weights are updated; reaction: r of the update.
    scores: sigma_1 (new best), sigma_2 (better than the current solution), sigma_3 (accepted).
    worse: w, a solution that much worse than the first is accepted at the start with probability
        one half. cooled: the last temperature as a fraction of the first.
    fewest, most, share: from `fewest` to min(most, share * n) nodes are removed (4, 100, xi).
    shaw, worst: exponents p of how greedily removals choose. noise: eta, of the longest edge.
    """

    iterations: int = 500
    segment: int = 100
    reaction: float = 0.1
    scores: tuple[float, float, float] = (33.0, 9.0, 13.0)
    worse: float = 0.05
    cooled: float = 0.99975**25_000
    fewest: int = 4
    most: int = 100
    share: float = 0.4
    shaw: float = 6.0
    worst: float = 3.0
    noise: float = 0.025

    def removals(self, n: int) -> tuple[int, int]:
        """The fewest and the most nodes that an iteration removes; at least 1 of a tiny one."""
        most = max(1, min(self.most, int(self.share * n)))
        return min(self.fewest, most), most


class Operators:
    """The operators of one instance; a subclass writes the methods that raise NotImplementedError.

    A solution is never changed in place. nodes: [n] those that can be removed. relatedness: [N, N]
    float64 of Shaw removal. regrets: the options compared by each insertion, None for all.
    removals: (solution, count, rng) -> (partial, removed).
    insertions: (partial, removed, noise, rng) -> solution.
    """

    def __init__(
        self,
        instance: Instance,
        settings: Settings,
        nodes: np.ndarray,
        relatedness: np.ndarray,
        regrets: Mapping[str, int | None],
    ):
        self.dist, self.size, self.nodes = instance.dist, instance.size, nodes
        self.directed = instance.directed
        # [N, N] the ways to each node, in its row: dist itself where they are the ways from it.
        self.back = np.ascontiguousarray(self.dist.T) if self.directed else self.dist
        self.longest = float(instance.dist.max())
        self.relatedness, self.settings = relatedness, settings
        self.removals: dict[str, Removal] = {
            "random": self._random,
            "worst": self._worst,
            "shaw": self._shaw,
        }
        self.insertions: dict[str, Insertion] = {
            name: partial(self.insert, compared=compared) for name, compared in regrets.items()
        }

    def start(self) -> Any:
        """The first solution."""
        raise NotImplementedError

    def cost(self, solution: Any) -> float:
        raise NotImplementedError

    def key(self, solution: Any) -> bytes:
        """The same bytes for two ways to write a solution, and for no other solution."""
        raise NotImplementedError

    def without(self, solution: Any, removed: list[int]) -> Partial:
        """The solution without some nodes."""
        raise NotImplementedError

    def neighbors(self, solution: Any) -> tuple[list[int], list[int]]:
        """The node before and the node after each node."""
        raise NotImplementedError

    def insert(
        self,
        part: Partial,
        removed: list[int],
        noise: float,
        rng: np.random.Generator,
        compared: Any,
    ) -> Any:
        """`part` with all `removed`, by regret over `compared` options of each.

        noise: the amplitude of what is added to every cost that is compared.
        """
        raise NotImplementedError

    def _random(self, solution: Any, count: int, rng: np.random.Generator) -> Removed:
        removed = rng.choice(self.nodes, count, replace=False).tolist()
        return self.without(solution, removed), removed

    def _worst(self, solution: Any, count: int, rng: np.random.Generator) -> Removed:
        neighbors = self.neighbors(solution)
        removed = worst(self.dist, neighbors, self.nodes, count, self.settings.worst, rng)
        return self.without(solution, removed), removed

    def _shaw(self, solution: Any, count: int, rng: np.random.Generator) -> Removed:
        removed = related(self.relatedness, self.nodes, count, self.settings.shaw, rng)
        return self.without(solution, removed), removed


@dataclass(frozen=True, eq=False)
class Found:
    """The result of a search.

    best_cost: [T+1] float64, the best cost before each iteration and at the end.
    weights: the final weights of the removals, of the insertions and of noise (off, on).
    """

    solution: Any
    best_cost: np.ndarray
    weights: tuple[dict[str, float], dict[str, float], dict[str, float]]


class Roulette:
    """Names drawn in proportion to their weights, which follow the scores they earn."""

    def __init__(self, names: Sequence[str], reaction: float):
        self.names = list(names)
        self.weights = [1.0] * len(self.names)
        self._reaction = reaction
        self._clear()

    def _clear(self) -> None:
        self._scores = [0.0] * len(self.names)
        self._uses = [0] * len(self.names)

    def draw(self, rng: np.random.Generator) -> int:
        """The position of a name."""
        left = rng.random() * sum(self.weights)
        for k, weight in enumerate(self.weights):
            left -= weight
            if left < 0:
                return k
        return len(self.weights) - 1  # rounding

    def reward(self, k: int, score: float) -> None:
        """Count one use of the k-th name and what it earned."""
        self._uses[k] += 1
        self._scores[k] += score

    def end_segment(self) -> None:
        """w <- (1 - r) w + r * score / uses; a name that was not used keeps its weight."""
        r = self._reaction
        self.weights = [
            (1 - r) * weight + r * score / uses if uses else weight
            for weight, score, uses in zip(self.weights, self._scores, self._uses, strict=True)
        ]
        self._clear()


def temperatures(first_cost: float, settings: Settings) -> np.ndarray:
    """[T] float64, the temperature of each iteration.

    The first one accepts a solution that costs (1 + w) * first_cost with probability one half:
    exp(-w * first_cost / t) = 1/2. It falls by the same factor every iteration.
    """
    first = settings.worse * first_cost / log(2)
    return first * settings.cooled ** (np.arange(settings.iterations) / settings.iterations)


def cooling(first_cost: float, settings: Settings, seconds: float | None) -> Iterator[float]:
    """The temperature of each iteration: of `settings.iterations`, or of as many as begin in time.

    seconds: of wall-clock time from the first one on, in which the temperature falls as it does in
    all the iterations.
    """
    if seconds is None:
        yield from temperatures(first_cost, settings).tolist()
        return
    first, began = settings.worse * first_cost / log(2), time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        yield first * settings.cooled ** (passed / seconds)


def accepts(worse_by: float, temperature: float, luck: float) -> bool:
    """Whether simulated annealing takes a solution; luck: uniform in [0, 1)."""
    return worse_by <= 0 or (temperature > 0 and luck < exp(-worse_by / temperature))


def search(
    operators: Operators,
    rng: np.random.Generator,
    settings: Settings,
    seconds: float | None = None,
    report: Callable[[Any], None] = lambda solution: None,
) -> Found:
    """The best solution of `settings.iterations` iterations. Consumes `rng`.

    seconds: of wall-clock time, which limit the call instead of the iterations. report: is told
    each new best solution.
    """
    began = time.monotonic()
    removals, insertions = list(operators.removals.values()), list(operators.insertions.values())
    wheels = (
        Roulette([*operators.removals], settings.reaction),
        Roulette([*operators.insertions], settings.reaction),
        Roulette(["exact", "noisy"], settings.reaction),
    )
    amplitude = settings.noise * operators.longest
    fewest, most = settings.removals(operators.size)
    current = best = operators.start()
    cost = best_cost = operators.cost(current)
    accepted = {operators.key(current)}
    report(best)
    history = [best_cost]
    left = None if seconds is None else max(0.0, seconds - (time.monotonic() - began))
    for step, temperature in enumerate(cooling(cost, settings, left), 1):
        chosen = [wheel.draw(rng) for wheel in wheels]
        count = int(rng.integers(fewest, most, endpoint=True))
        part, removed = removals[chosen[0]](current, count, rng)
        candidate = insertions[chosen[1]](part, removed, amplitude * chosen[2], rng)
        new_cost = operators.cost(candidate)
        score = 0.0
        if accepts(new_cost - cost, temperature, rng.random()):
            key = operators.key(candidate)
            if new_cost < best_cost:
                score = settings.scores[0]
                best, best_cost = candidate, new_cost
                report(best)
            elif key not in accepted:
                score = settings.scores[1 if new_cost < cost else 2]
            accepted.add(key)
            current, cost = candidate, new_cost
        for wheel, k in zip(wheels, chosen, strict=True):
            wheel.reward(k, score)
            if step % settings.segment == 0:
                wheel.end_segment()
        history.append(best_cost)
    weights = [dict(zip(wheel.names, wheel.weights, strict=True)) for wheel in wheels]
    return Found(best, np.array(history), (weights[0], weights[1], weights[2]))


def skewed(count: int, exponent: float, rng: np.random.Generator) -> int:
    """A position below `count`, the first likeliest: floor(count * y^p) for a uniform y."""
    return int(count * rng.random() ** exponent)


def related(
    relatedness: np.ndarray,
    nodes: np.ndarray,
    count: int,
    exponent: float,
    rng: np.random.Generator,
) -> list[int]:
    """Shaw removal: `count` of `nodes`, the first at random, each next one related to one of them.

    relatedness: [N, N] float64, small where two nodes are alike.
    """
    left = nodes.copy()
    removed: list[int] = []
    k = int(rng.integers(len(left)))
    while True:
        removed.append(int(left[k]))
        left = np.delete(left, k)
        if len(removed) == count:
            return removed
        to = removed[int(rng.integers(len(removed)))]
        order = np.argsort(relatedness[to, left], kind="stable")
        k = int(order[skewed(len(left), exponent, rng)])


def worst(
    dist: np.ndarray,
    neighbors: tuple[list[int], list[int]],
    nodes: np.ndarray,
    count: int,
    exponent: float,
    rng: np.random.Generator,
) -> list[int]:
    """Worst removal: `count` of `nodes`, one by one, those likeliest that cost most where they are.

    dist: [N, N] float64. neighbors: the node before and the node after each node; both lists are
    used up. A depot may be a neighbour without being one of `nodes`.
    """
    before, after = neighbors
    place = {node: k for k, node in enumerate(nodes.tolist())}
    a, b = np.array(before)[nodes], np.array(after)[nodes]
    saving = dist[a, nodes] + dist[nodes, b] - dist[a, b]
    removed: list[int] = []
    for done in range(count):
        order = np.argsort(-saving, kind="stable")
        k = int(order[skewed(len(nodes) - done, exponent, rng)])
        node = int(nodes[k])
        removed.append(node)
        saving[k] = -np.inf  # behind all that are left
        first, last = before[node], after[node]
        after[first], before[last] = last, first
        for other in (first, last):
            if other in place:
                x, y = before[other], after[other]
                saving[place[other]] = dist[x, other] + dist[other, y] - dist[x, y]
    return removed
