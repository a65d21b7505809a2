"""What a problem is to the rest of the system.

A problem has two halves. `Problem` lives in the parent process: it makes and reads instances,
recomputes costs and writes solutions. `Rules` lives in the sandboxed worker: it holds one
instance, calls a program with the arguments of its interface and checks what it returns. Neither
may import JAX. A third problem is a module that implements both and is found by
`spo_jax.envs.problems.get_problem("package.module:NAME")`.
"""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from spo_jax.envs.canonical import canonical
from spo_jax.program import Argument, Interface, Program

Solution = Any  # TSP: list of N nodes. CVRP: list of routes, each a list of customers.
Layout = Literal["rows", "array"]
# Problems whose rules read the distances, demands and capacity of fixed types, and no coordinates;
# the references that ship are found by digests of these alone.
_BY_DISTANCES = ("tsp", "cvrp")
DIST = Argument("dist", "matrix", "the square matrix of distances")


class Infeasible(Exception):
    """A program returned something that its contract forbids; the message says what."""


@dataclass(frozen=True, eq=False)
class Instance:
    """One problem instance. Arrays are read-only.

    name: as in the file, or "uniform-50-0@1" (size, index, seed).
    size: nodes (TSP) or customers (CVRP).
    coords: [N, 2] float64; N = size for TSP, size + 1 for CVRP (the depot is node 0).
    dist: [N, N] float64, symmetric, zero diagonal, in the instance's own edge-weight convention.
    demands: [N] int64, demands[0] = 0; None where the problem has none.
    capacity: vehicle capacity in units of demand; None where the problem has none.
    reference: best known cost, or None; reference_source says where it comes from, or why none.
    extra: whatever else the problem's rules read, as time windows; see `canonical` for what it may
        hold. It must not be changed.
    certified: whether the reference is proven optimal.
    file: what the instance's file says besides, as the ids of its nodes; no rule may read it.
    """

    problem: str
    name: str
    size: int
    coords: np.ndarray
    dist: np.ndarray
    demands: np.ndarray | None = None
    capacity: int | None = None
    reference: float | None = None
    reference_source: str = "unknown"
    extra: dict[str, Any] = field(default_factory=dict)
    certified: bool = False
    file: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for array in (self.coords, self.dist, self.demands, *self.extra.values()):
            if isinstance(array, np.ndarray):
                array.setflags(write=False)

    @cached_property
    def digest(self) -> str:
        """Hex digest of what a rollout can see; names, references and `file` do not count.

        Workers find an instance by it, and seeds and references depend on it. Raises InputError
        for an `extra` that has no digest.
        """
        h = hashlib.blake2b(digest_size=16)
        if self.problem not in _BY_DISTANCES:
            seen = (self.size, self.coords, self.dist, self.demands, self.capacity)
            h.update(canonical((self.problem, *seen), f"the instance {self.name}"))
        else:
            h.update(f"{self.problem}:{self.dist.shape}:{self.capacity}".encode())
            h.update(np.ascontiguousarray(self.dist, dtype="<f8").tobytes())
            if self.demands is not None:
                h.update(np.ascontiguousarray(self.demands, dtype="<i8").tobytes())
        if self.extra:
            h.update(canonical(self.extra, f"`extra` of the instance {self.name}"))
        return h.hexdigest()


class Rules(Protocol):
    """One instance inside a worker: interface, checks and objective, in plain Python.

    Everything here runs once a step or more, so it is written for speed. Checks raise
    `Infeasible`. Outputs of programs are hostile: exact types are checked before anything else.
    """

    def arguments(self, layout: Layout) -> tuple[Any, ...]:
        """The instance's leading arguments of both roles, e.g. (dist, demands, capacity).

        They are as the problem's `interface` declares them: a matrix is a tuple of tuples of Python
        numbers in "rows" and a read-only ndarray in "array", a row a tuple or an ndarray, and
        anything else the same in both.
        """

    def start(self, rng: random.Random) -> Solution:
        """A seeded random feasible solution."""

    def copy(self, solution: Solution) -> Solution:
        """A copy that a program may mutate."""

    def destroyed(self, current: Solution, output: Any) -> tuple[Solution, list[int]]:
        """The checked (partial solution, removed) that a destroy program returned."""

    def repaired(self, output: Any) -> Solution:
        """The checked complete solution that a repair program returned."""

    def cost(self, solution: Solution) -> float:
        """Exact float64 objective: the correctly rounded sum (math.fsum), whatever the order."""

    def encode(self, solution: Solution) -> list[int]:
        """The walk of node indices, at most `walk_length` long, whose steps sum to the cost."""


class Problem(Protocol):
    """The parent's half of a problem."""

    name: str
    spec: str  # "module:NAME", by which a worker finds this object
    interface: Interface  # what its programs are called with
    cpu_seconds: float  # CPU-time limit of a rollout of 500 steps

    def sample(self, size: int, count: int, seed: int) -> list[Instance]:
        """`count` uniform instances of `size`; instance k is the same whatever the count."""

    def read(self, path: str | Path) -> Instance:
        """Read an instance file. Raises InputError with one clear sentence."""

    def rules(self, instance: Instance) -> Rules:
        """The worker's half."""

    def cost(self, instance: Instance, solution: Solution) -> float:
        """The exact float64 objective of a feasible solution."""

    def walk_length(self, instance: Instance) -> int:
        """The longest encoding of a solution."""

    def decode(self, instance: Instance, walk: Sequence[int]) -> Solution:
        """The solution of a walk. Raises Infeasible unless it is complete and feasible."""

    def write(self, path: str | Path, instance: Instance, solution: Solution) -> None:
        """Write a solution in the format that the field's other tools read."""

    def classical_destroys(self) -> tuple[Program, ...]:
        """Fixed classical destroy programs for the repair panel (Appendix A.5); may be empty."""
