"""ALNS with its best cost at every iteration, where a baseline says its solution alone."""

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from spo_jax.envs.problem import Instance, Solution
from spo_jax.envs.problems.alns import Settings
from spo_jax.envs.run.rollouts import Rollouts, Status


@dataclass(frozen=True)
class WithCurve:
    """ALNS as a baseline that leaves its best cost at every iteration in `folder`.

    A baseline returns its solution alone, perhaps from another process; so the curve is a file.
    function: "module:alns", whose module also has `alns_search`.
    """

    function: str
    steps: int
    folder: str

    def __call__(self, instance: Instance, seed: int) -> Solution:
        module = importlib.import_module(self.function.partition(":")[0])
        found = module.alns_search(instance, seed, Settings(iterations=self.steps))
        np.save(self._path(instance, seed), found.best_cost)
        solution = found.solution
        return solution.tolist() if isinstance(solution, np.ndarray) else solution

    def completed(self, rollouts: Rollouts, instances: Sequence[Instance]) -> Rollouts:
        """The rollouts [1, I, S] with best_cost [1, I, S, T+1] from the files.

        The solutions' own costs are recomputed; they stand at the end.
        """
        shape = rollouts.status.shape
        curves = np.full((*shape, self.steps + 1), math.nan)
        for i, instance in enumerate(instances):
            for s in range(shape[2]):
                if rollouts.status[0, i, s] == Status.OK:
                    curves[0, i, s] = np.load(self._path(instance, s))
                    curves[0, i, s, -1] = rollouts.best_cost[0, i, s, -1]
        state = np.full((*shape, self.steps), -1, np.int32)
        return replace(rollouts, best_cost=curves, state=state)

    def _path(self, instance: Instance, seed: int) -> Path:
        return Path(self.folder) / f"{instance.digest}-{seed}.npy"
