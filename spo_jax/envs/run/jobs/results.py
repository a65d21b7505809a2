"""Reports of children become arrays, once what they say recomputes."""

from collections.abc import Sequence
from functools import partial
from math import isclose

import numpy as np

from spo_jax.envs.problem import Instance, Problem, rules_of
from spo_jax.envs.run.jobs.selfcheck import require_sound
from spo_jax.envs.run.rollouts import Rollouts, Status, unpadded
from spo_jax.envs.run.sandbox.outcome import ChildReport
from spo_jax.envs.run.starts import Starts
from spo_jax.numerics.jax_state import jax_ready
from spo_jax.seeding import python_rng


class Results:
    """Rollouts of unique pairs under construction; R rollouts a pair, flat.

    parts: of the state that is shown, 0 where none is recorded.
    """

    def __init__(
        self,
        problem: Problem,
        pairs: int,
        instances: Sequence[Instance],
        seeds: Sequence[int],
        steps: int,
        run_seed: int,
        starts: Starts | None = None,
        parts: int = 0,
    ):
        self.problem, self.instances, self.seeds, self.steps = problem, instances, seeds, steps
        self.run_seed = run_seed
        self._sent = starts or Starts(problem, run_seed)
        self._starts: dict[int, float] = {}
        self._unjudged: list[tuple[int, int]] = []
        self._start_cost(0)  # a problem's mistake is reported before any program runs
        shape = (pairs, len(instances) * len(seeds))
        self.longest = max(map(problem.code_length, instances))
        self.best_cost = np.full((*shape, steps + 1), np.nan)
        self.state = np.full((*shape, steps), -1, np.int32)
        self.shown = np.full((*shape, steps, parts), np.nan)
        self.status = np.full(shape, -1, np.int8)
        self.seconds = np.full(shape, np.nan)
        self.code = np.full((*shape, self.longest), -1, np.int32)
        self.reason = np.full(shape, "", object)
        self.role = np.full(shape, "", object)

    def failed_before(self, pair: int, index: int) -> bool:
        return bool((self.status[pair, :index] > Status.OK).any())

    def fail(self, pair: int, report: ChildReport) -> None:
        self.status[pair, report.index] = report.status
        self.role[pair, report.index] = report.role or ""
        self.reason[pair, report.index] = report.what
        self.seconds[pair, report.index] = report.seconds

    def record(self, pair: int, report: ChildReport) -> None:
        """Store one report. What it says is believed only once `rollouts` has recomputed it."""
        if report.status != Status.OK:
            self.fail(pair, report)
            return
        k, steps, shown = report.index, self.steps, self.shown[pair, report.index]
        code = unpadded(np.frombuffer(report.payload, "<i4", offset=12 * steps + 8 + shown.nbytes))
        self.best_cost[pair, k] = np.frombuffer(report.payload, "<f8", steps + 1)
        self.state[pair, k] = np.frombuffer(report.payload, "<i4", steps, 8 * (steps + 1))
        shown.flat = np.frombuffer(report.payload, "<f8", shown.size, 12 * steps + 8)
        self.code[pair, k, : len(code)] = code
        self.status[pair, k] = Status.OK
        self.seconds[pair, k] = report.seconds
        self._unjudged.append((pair, k))

    def _judge(self) -> None:
        """Find the reports that contradict our own instances: all that are new in one batch."""
        new, self._unjudged = self._unjudged, []
        if not new:
            return
        p, k = np.array(new).T
        whose = k // len(self.seeds)
        best = self.best_cost[p, k]
        starts = np.array([self._start_cost(i) for i in k.tolist()])
        costs = self._costs(self.code[p, k], whose)
        with np.errstate(invalid="ignore", over="ignore"):
            falling = np.isfinite(best).all(axis=1) & (np.diff(best) <= 0).all(axis=1)
            sound = falling & _close(best[:, 0], starts) & _close(best[:, -1], costs)
        for at in np.flatnonzero(~sound):
            pair, index = int(p[at]), int(k[at])
            code = unpadded(self.code[pair, index])
            lie = self._lie(index, best[at], code)
            if lie is not None:
                self._clear(pair, slice(index, index + 1))
                self.status[pair, index], self.reason[pair, index] = Status.TAMPERED, lie

    def _costs(self, codes: np.ndarray, whose: np.ndarray) -> np.ndarray:
        """[B] float64, NaN for what is infeasible or is to be judged alone.

        That is all where JAX is not in use: to load it takes longer than one by one.
        """
        # A problem that has rules or costs of its own and inherits the batch's would not be heard.
        names = ("costs", "rules", "decode", "cost")
        depth = [_depth(type(self.problem), name) for name in names]
        if depth[0] > min(depth) or not jax_ready():
            return np.full(len(codes), np.nan)
        found: np.ndarray = self.problem.turned(self.problem.costs(self.instances, codes, whose))
        return found

    def _lie(self, k: int, best: np.ndarray, code: list[int]) -> str | None:
        """What in a report contradicts our own instance, or None."""
        instance = self.instances[k // len(self.seeds)]
        if not np.isfinite(best).all() or (np.diff(best) > 0).any():
            return "the best costs are not a falling sequence"
        if not isclose(best[0], self._start_cost(k), rel_tol=1e-9, abs_tol=1e-9):
            return "the initial cost is not that of the seeded start"
        try:
            solution = self.problem.decode(instance, code)
            cost = self.problem.minimised(instance, solution)
        except Exception as error:  # a hostile code may break any problem's decoding
            return f"the best solution is infeasible: {error}"
        if not isclose(best[-1], cost, rel_tol=1e-9, abs_tol=1e-9):
            return f"the best solution costs {cost:.9g}, not {best[-1]:.9g}"
        return None

    def _start_cost(self, k: int) -> float:
        if k not in self._starts:
            # All seeds of an instance at once: its rules are large and not kept.
            instance = self.instances[k // len(self.seeds)]
            rules = rules_of(self.problem, instance.seen())
            first = k - k % len(self.seeds)
            rngs = [
                partial(python_rng, "start", self.run_seed, instance.digest, seed)
                for seed in self.seeds
            ]
            require_sound(self.problem, instance, rules, rngs[0])
            for s, (seed, rng) in enumerate(zip(self.seeds, rngs, strict=True)):
                sent = self._sent.sent(instance, seed)
                start = rules.start(rng()) if sent is None else sent
                self._starts[first + s] = float(rules.minimised(start))
        return self._starts[k]

    def rollouts(self, positions: list[int], fail_fast: bool) -> Rollouts:
        """The arrays for all pairs asked for, identical ones repeated."""
        self._judge()
        if fail_fast:
            self._spread_failures()
        shape = (len(positions), len(self.instances), len(self.seeds))

        def take(array: np.ndarray) -> np.ndarray:
            return array[positions].reshape(shape + array.shape[2:])

        return Rollouts(
            best_cost=take(self.best_cost),
            state=take(self.state),
            status=take(self.status),
            seconds=take(self.seconds),
            code=take(self.code),
            reason=take(self.reason),
            role=take(self.role),
            shown=take(self.shown),
        )

    def _spread_failures(self) -> None:
        """The first failure of a pair stands for all after it, whether or not they were run."""
        for p in range(len(self.status)):
            bad = np.flatnonzero(self.status[p] > Status.OK)
            if len(bad) and bad[0] + 1 < self.status.shape[1]:
                first = bad[0]
                rest = slice(first + 1, None)
                self._clear(p, rest)
                self.seconds[p, rest] = np.nan
                self.status[p, rest] = self.status[p, first]
                self.reason[p, rest] = self.reason[p, first]
                self.role[p, rest] = self.role[p, first]

    def _clear(self, pair: int, which: slice) -> None:
        """Leave nothing of what some rollouts reported."""
        self.best_cost[pair, which] = np.nan
        self.state[pair, which] = -1
        self.shown[pair, which] = np.nan
        self.code[pair, which] = -1


def _close(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """`math.isclose` of both tolerances 1e-9, of arrays."""
    apart = 1e-9 * np.maximum(np.maximum(np.abs(one), np.abs(two)), 1.0)
    return np.abs(one - two) <= apart


def _depth(kind: type, name: str) -> int:
    """How many classes up the one is that defines a method."""
    return next(i for i, each in enumerate(kind.__mro__) if name in vars(each))
