"""Reports of children become arrays, once what they say recomputes."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import isclose

import numpy as np

from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.run.rollouts import Rollouts, Status, unpadded
from spo_jax.envs.run.sandbox.outcome import ChildReport
from spo_jax.envs.run.selfcheck import require_sound
from spo_jax.seeding import python_rng


class Results:
    """Rollouts of unique pairs under construction; R rollouts a pair, flat."""

    def __init__(
        self,
        problem: Problem,
        pairs: int,
        instances: Sequence[Instance],
        seeds: Sequence[int],
        steps: int,
        run_seed: int,
    ):
        self.problem, self.instances, self.seeds, self.steps = problem, instances, seeds, steps
        self.run_seed = run_seed
        self._starts: dict[int, float] = {}
        self._start_cost(0, instances[0])  # a problem's mistake is told before any program runs
        shape = (pairs, len(instances) * len(seeds))
        self.longest = max(map(problem.code_length, instances))
        self.best_cost = np.full((*shape, steps + 1), np.nan)
        self.state = np.full((*shape, steps), -1, np.int32)
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
        """Store one report, if what it says recomputes."""
        if report.status != Status.OK:
            self.fail(pair, report)
            return
        k, steps = report.index, self.steps
        instance = self.instances[k // len(self.seeds)]
        best = np.frombuffer(report.payload, "<f8", steps + 1)
        state = np.frombuffer(report.payload, "<i4", steps, 8 * (steps + 1))
        code = unpadded(np.frombuffer(report.payload, "<i4", offset=12 * steps + 8))
        lie = self._lie(k, instance, best, code)
        if lie is not None:
            self.fail(pair, replace(report, status=Status.TAMPERED, reason=lie))
            return
        self.best_cost[pair, k] = best
        self.state[pair, k] = state
        self.code[pair, k, : len(code)] = code
        self.status[pair, k] = Status.OK
        self.seconds[pair, k] = report.seconds

    def _lie(self, k: int, instance: Instance, best: np.ndarray, code: list[int]) -> str | None:
        """What in a report contradicts our own instance, or None."""
        if not np.isfinite(best).all() or (np.diff(best) > 0).any():
            return "the best costs are not a falling sequence"
        if not isclose(best[0], self._start_cost(k, instance), rel_tol=1e-9, abs_tol=1e-9):
            return "the initial cost is not that of the seeded start"
        try:
            solution = self.problem.decode(instance, code)
            cost = self.problem.cost(instance, solution)
        except Exception as error:  # a hostile code may break any problem's decoding
            return f"the best solution is infeasible: {error}"
        if not isclose(best[-1], cost, rel_tol=1e-9, abs_tol=1e-9):
            return f"the best solution costs {cost:.9g}, not {best[-1]:.9g}"
        return None

    def _start_cost(self, k: int, instance: Instance) -> float:
        if k not in self._starts:
            # All seeds of an instance at once: its rules are large and not kept.
            rules = self.problem.rules(instance.seen())
            first = k - k % len(self.seeds)
            rngs = [
                partial(python_rng, "start", self.run_seed, instance.digest, seed)
                for seed in self.seeds
            ]
            require_sound(self.problem, instance, rules, rngs[0])
            for s, rng in enumerate(rngs):
                self._starts[first + s] = float(rules.cost(rules.start(rng())))
        return self._starts[k]

    def rollouts(self, positions: list[int], fail_fast: bool) -> Rollouts:
        """The arrays for all pairs asked for, identical ones repeated."""
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
        )

    def _spread_failures(self) -> None:
        """The first failure of a pair stands for all after it, whether or not they were run."""
        for p in range(len(self.status)):
            bad = np.flatnonzero(self.status[p] > Status.OK)
            if len(bad) and bad[0] + 1 < self.status.shape[1]:
                first = bad[0]
                rest = slice(first + 1, None)
                self.status[p, rest] = self.status[p, first]
                self.reason[p, rest] = self.reason[p, first]
                self.role[p, rest] = self.role[p, first]
                self.seconds[p, rest] = np.nan
                self.best_cost[p, rest] = np.nan
                self.state[p, rest] = -1
                self.code[p, rest] = -1
