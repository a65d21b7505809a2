"""An instance of a problem: its data, its name and its reference."""

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from spo_jax.envs.canonical import canonical
from spo_jax.errors import InputError

_TILE = 1024  # rows and columns that fit into a cache with their transposes


@dataclass(frozen=True, eq=False)
class Instance:
    """One problem instance. Arrays are read-only.

    Attributes:
        problem: Its problem's name.
        name: As in the file, or "uniform-50-0@1" (size, index, seed).
        size: What the problem counts (`Problem.unit`): nodes, customers, jobs.
        coords: [N, 2] float64, or None; for pictures only: no rules can read them (see `seen`).
        dist: [N, N] float64 in the instance's own edge-weight convention, or None; dist[a, b] is
            the way from a to b. N = size, or size + 1 with a depot as node 0.
        demands: [N] int64, demands[0] = 0; None where the problem has none.
        capacity: Of a vehicle, in units of demand; None where the problem has none.
        reference: Best known cost, or None.
        reference_source: Where it comes from, or why there is none.
        extra: Other data for the problem's rules, such as time windows, of the types that
            `canonical` accepts. It must not be changed.
        certified: Whether the reference is proven optimal.
        file: Other data of the instance's file, such as node ids; no rules can read it.

    Raises:
        InputError: Demands are not whole numbers.
    """

    problem: str
    name: str
    size: int
    # May be None; typed as arrays for the problems that have them.
    coords: np.ndarray = None  # type: ignore[assignment]
    dist: np.ndarray = None  # type: ignore[assignment]
    demands: np.ndarray | None = None
    capacity: int | None = None
    reference: float | None = None
    reference_source: str = "unknown"
    extra: dict[str, Any] = field(default_factory=dict)
    certified: bool = False
    file: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # `digest` writes the bytes of one dtype, so there is no other.
        for name, dtype in (("coords", np.float64), ("dist", np.float64), ("demands", np.int64)):
            given = getattr(self, name)
            if given is not None:
                array = np.asarray(given, dtype)
                if name == "demands" and not np.array_equal(array, given):
                    raise InputError(f"{self.name}: demands must be whole numbers")
                object.__setattr__(self, name, array)
        for array in (self.coords, self.dist, self.demands, *self.extra.values()):
            if isinstance(array, np.ndarray):
                array.setflags(write=False)

    @cached_property
    def digest(self) -> str:
        """Hex digest of the data that rules can read: no coordinates, names, references or `file`.

        Workers identify an instance by it; seeds and references depend on it.

        Raises:
            InputError: `extra` has a value of an unsupported type.
        """
        h = hashlib.blake2b(digest_size=16)
        shape = None if self.dist is None else self.dist.shape
        head = f"{self.problem}:{shape}:{self.capacity}"
        # References that ship are found by digests without the next two, of the common instances
        # whose size follows from the distances and that have nothing extra.
        if shape is None or shape[0] != self.size + (self.demands is not None):
            head += f":{self.size}:{None if self.demands is None else len(self.demands)}"
        if self.extra:
            head += ":extra"
        h.update(head.encode())
        if self.dist is not None:
            h.update(np.ascontiguousarray(self.dist, dtype="<f8").data)
        if self.demands is not None:
            h.update(np.ascontiguousarray(self.demands, dtype="<i8").tobytes())
        if self.extra:
            h.update(canonical(self.extra, f"`extra` of the instance {self.name}"))
        return h.hexdigest()

    @cached_property
    def directed(self) -> bool:
        """Whether some way is not as long as the way back: the TSP is then called asymmetric."""
        if self.dist is None:
            return False
        tiles = [slice(k, k + _TILE) for k in range(0, len(self.dist), _TILE)]
        halves = combinations_with_replacement(tiles, 2)
        return any(not np.array_equal(self.dist[i, j], self.dist[j, i].T) for i, j in halves)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that rules can read."""
        arrays = (self.dist, self.demands, *self.extra.values())
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))

    def seen(self) -> "Instance":
        """The instance as rules see it: only the data that its digest covers."""
        return replace(self, coords=None, file={}, reference=None, certified=False)  # type: ignore[arg-type]
