"""What an evaluation returns: arrays over [pair, instance, seed], failures included as data."""

import math
import re
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from spo_jax.envs.run.states import Value


class Status(IntEnum):
    """How a rollout ended. Everything but OK has a reason and no score."""

    OK = 0
    REJECTED = 1  # refused by the static gate; never ran
    INVALID = 2  # returned something its contract forbids
    CRASH = 3  # raised, or died
    TIMEOUT = 4  # used up its CPU time
    MEMORY = 5  # ran out of its memory
    TAMPERED = 6  # reported a result that does not recompute
    HOST_FAULT = 7  # our side failed, each time it was tried; never trained on

    @property
    def label(self) -> str:
        """The name in lower case, as in reports and tables."""
        return self.name.lower()


@dataclass(frozen=True)
class Refusal:
    """Why the gate let a program not pass.

    Attributes:
        status: REJECTED, or HOST_FAULT where it could not judge it.
        reason: One clause.
    """

    status: Status
    reason: str

    def __str__(self) -> str:
        return self.reason


class Failed(NamedTuple):
    """How a rollout failed.

    Attributes:
        status: Anything but OK.
        reason: For people. It has the program's own words, which can carry an instance.
        role: Whose program did, empty where that is not known.
    """

    status: Status
    reason: str
    role: str

    @property
    def redacted_reason(self) -> str:
        """The reason as a model may read it: without a word or a value of the program's making.

        A model that learns an instance from failures could write its best tour into a program.
        """
        if self.status not in (Status.INVALID, Status.CRASH, Status.TAMPERED):
            return self.reason  # of the text, or of limits
        role = f"{self.role}: " if self.role else ""
        ours = self.reason.removeprefix(role).partition(": ")[0]
        if self.status != Status.CRASH:  # a user's rules may say anything
            ours = _VALUE.split(ours)[0].rstrip()
        return role + ours


@dataclass(frozen=True, eq=False)
class Rollouts:
    """Rollouts over axes: P pair, I instance, S seed, T step, L the longest code of any instance.

    Attributes:
        best_cost: [P, I, S, T+1] float64, best-so-far objective before each step and at the end;
            NaN throughout a failed rollout.
        state: [P, I, S, T] int32, z_t, the steps since best_cost last fell; it is the true one even
            where programs were shown another (`spo_jax.envs.run.observation`). -1 throughout a
            failed rollout.
        status: [P, I, S] int8, a Status.
        seconds: [P, I, S] float64, CPU seconds inside the worker; NaN where the rollout never ran
            or did not report.
        code: [P, I, S, L] int32, the best solution as a code (`Rules.encode`), and -1 after its
            end; -1 throughout a failed rollout.
        reason: [P, I, S] str, empty for OK.
        role: [P, I, S] str, the role of the program that failed; empty for OK, and where that is
            not known: a process that is killed at its CPU limit does not say in which program it
            was.
        shown: [P, I, S, T, K] float64, the K parts of another state than z_t before each step, as
            programs were shown them; NaN after the end and of a failed rollout. K is 0 where they
            were shown z_t, or values that were given. None of an evaluator that does not record it.
    """

    best_cost: np.ndarray
    state: np.ndarray
    status: np.ndarray
    seconds: np.ndarray
    code: np.ndarray
    reason: np.ndarray
    role: np.ndarray
    shown: np.ndarray | None = None

    @property
    def initial_cost(self) -> np.ndarray:
        """[P, I, S] float64, the objective of each rollout's start; NaN of a failed one."""
        return self.best_cost[..., 0]

    @property
    def final_cost(self) -> np.ndarray:
        """[P, I, S] float64, the best objective of each rollout; NaN of a failed one."""
        return self.best_cost[..., -1]

    @property
    def ok(self) -> np.ndarray:
        """[P] bool, pairs none of whose rollouts failed."""
        return (self.status == Status.OK).all(axis=(1, 2))

    def costs_of(self, pair: int) -> tuple[float, ...]:
        """A pair's best objectives.

        Args:
            pair: Its position, from 0.

        Returns:
            [I * S], the seeds of an instance side by side; empty where a rollout failed, or an
            evaluator gave no finite one.
        """
        costs = tuple(map(float, self.final_cost[pair].ravel()))
        return costs if bool(self.ok[pair]) and all(map(math.isfinite, costs)) else ()

    def code_of(self, pair: int, instance: int, seed: int) -> list[int]:
        """The code of a rollout's best solution, for `Problem.decode`.

        Args:
            pair: Its position, from 0.
            instance: Likewise.
            seed: Likewise.

        Returns:
            At most L integers, without padding; empty for a failed rollout.
        """
        return unpadded(self.code[pair, instance, seed])

    def shown_of(self, pair: int, instance: int, seed: int) -> list[Value]:
        """What programs were shown before each step that was played, of z_t or another state.

        Args:
            pair: Its position, from 0.
            instance: Likewise.
            seed: Likewise.

        Returns:
            At most T values; none for a failed rollout.
        """
        state = self.state[pair, instance, seed]
        steps = int((state >= 0).sum())
        if self.shown is None or not self.shown.shape[-1]:
            return [*state[:steps].tolist()]
        return values_of(self.shown[pair, instance, seed, :steps])

    def failure(self, pair: int) -> Failed | None:
        """A pair's first failed rollout, or None."""
        bad = np.argwhere(self.status[pair] != Status.OK)
        if not len(bad):
            return None
        i, s = bad[0]
        status = Status(int(self.status[pair, i, s]))
        return Failed(status, str(self.reason[pair, i, s]), str(self.role[pair, i, s]))


_VALUE = re.compile(r"""[\d'"`\[{<]""")  # where one begins


def values_of(shown: np.ndarray) -> list[Value]:
    """A state of K parts as programs were shown it, of its record [T, K]; whole parts as int."""
    rows = [tuple(int(x) if x.is_integer() else x for x in row) for row in shown.tolist()]
    return [row if len(row) > 1 else row[0] for row in rows]


def unpadded(code: np.ndarray) -> list[int]:
    """The integers [L] of a code before the first that is negative."""
    end = np.flatnonzero(code < 0)
    return code[: end[0] if len(end) else None].tolist()
