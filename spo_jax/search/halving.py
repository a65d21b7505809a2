"""Successive halving: many pairs meet on few instances, and the few best of them on all.

All pairs run on a first portion of the instances, the better half also on as many again, and so on;
the last few are compared on everything. What a pair was measured on stays in its mean, so that no
rollout is thrown away. (Jamieson and Talwalkar 2016, arXiv 1502.07943; the budget of a rung is
about the same here too.)
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.search.utility import mean_scores

LAST = 3  # no halving leaves fewer: the last ones are compared on all instances

# Of some pairs on some instances, by their places: scores [P, I, S], NaN where a pair failed.
Measure = Callable[[Sequence[int], Sequence[int]], np.ndarray]


def rungs(pairs: int, instances: int) -> list[tuple[int, int]]:
    """(pairs, instances that each has been on by then) of every rung, the first one first.

    As many halvings as leave at least LAST pairs and begin with at least one instance: 24 pairs and
    12 instances are (24, 2), (12, 3), (6, 6), (3, 12), which is 96 pairs on an instance in place of
    288.
    """
    halvings = 0
    while _half(pairs, halvings + 1) >= LAST and instances >> (halvings + 1):
        halvings += 1
    return [(_half(pairs, k), _half(instances, halvings - k)) for k in range(halvings + 1)]


def _half(count: int, times: int) -> int:
    return -(-count // 2**times)


def halving(pairs: int, instances: Sequence[int], measure: Measure) -> list[float | None]:
    """[P] the mean score of each pair that was measured on all instances.

    instances: their places, in the order in which portions are taken. None: the pair was among the
    worse of an earlier rung; of equals the later one is. NaN: it failed.
    """
    scores: dict[int, np.ndarray] = {}
    left, values, before = list(range(pairs)), np.zeros(0), 0
    failed: list[int] = []
    for size, seen in rungs(pairs, len(instances)):
        if len(left) > size:
            order = sorted(range(len(left)), key=lambda k: (-values[k], k))
            left = sorted(left[k] for k in order[:size])
        found = measure(left, instances[before:seen])
        for p, row in zip(left, found, strict=True):
            scores[p] = np.concatenate([scores[p], row]) if p in scores else row
        before = seen
        values = mean_scores(np.array([scores[p] for p in left]))
        failed += [p for p, value in zip(left, values, strict=True) if math.isnan(value)]
        left = [p for p in left if p not in failed]
        values = values[np.isfinite(values)]
        if not left:
            break
    known = dict(zip(left, map(float, values), strict=True)) | dict.fromkeys(failed, math.nan)
    return [known.get(p) for p in range(pairs)]


def mixed(instances: Sequence[Instance]) -> list[int]:
    """The places of instances in an order whose beginnings have all sizes in like shares."""
    sizes = [instance.size for instance in instances]
    met = [sizes[:place].count(size) for place, size in enumerate(sizes)]
    share = [(met[k] + 0.5) / sizes.count(size) for k, size in enumerate(sizes)]
    return sorted(range(len(sizes)), key=lambda place: (share[place], place))
