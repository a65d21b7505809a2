"""The base classes of a problem: `Problem`, `Rules` and `Instance`.

`Problem` lives in the parent process: it samples and reads instances, recomputes costs and declares
optional parts. `Rules` lives in the sandboxed worker: it holds one instance, provides the arguments
of a program and checks what it returns. A new problem is a module that subclasses both, loaded by
`spo_jax.envs.problems.get_problem("package.module:NAME")`. It may not import JAX.
"""

import hashlib
import json
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import chain, filterfalse
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from spo_jax.envs.canonical import canonical
from spo_jax.envs.views import frozen, node_list, nodes_of, rows
from spo_jax.errors import InputError
from spo_jax.program import Argument, Interface, Program, Role

Solution = Any  # a list of integers (a tour), or a list of such lists (routes); or what you like
Layout = Literal["rows", "array"]
DIST = Argument("dist", "matrix", "the square matrix of distances")
_NONE: Mapping[str, Any] = MappingProxyType({})


class Infeasible(Exception):
    """A program violated its contract; the message says how."""


@dataclass(frozen=True, eq=False)
class Instance:
    """One problem instance. Arrays are read-only.

    name: as in the file, or "uniform-50-0@1" (size, index, seed).
    size: what the problem counts (`Problem.unit`): nodes, customers, jobs.
    coords: [N, 2] float64, or None; for pictures only: no rules can read them (see `seen`).
    dist: [N, N] float64 in the instance's own edge-weight convention, or None. N = size, or
        size + 1 with a depot as node 0.
    demands: [N] int64, demands[0] = 0; None where the problem has none.
    capacity: vehicle capacity in units of demand; None where the problem has none.
    reference: best known cost, or None; reference_source says where it comes from, or why none.
    extra: other data for the problem's rules, such as time windows, of the types that `canonical`
        accepts. It must not be changed.
    certified: whether the reference is proven optimal.
    file: other data of the instance's file, such as node ids; no rules can read it.

    Raises InputError for demands that are not whole numbers.
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

        Workers identify an instance by it; seeds and references depend on it. Raises InputError
        for an `extra` of unsupported types.
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
            h.update(np.ascontiguousarray(self.dist, dtype="<f8").tobytes())
        if self.demands is not None:
            h.update(np.ascontiguousarray(self.demands, dtype="<i8").tobytes())
        if self.extra:
            h.update(canonical(self.extra, f"`extra` of the instance {self.name}"))
        return h.hexdigest()

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that rules can read."""
        arrays = (self.dist, self.demands, *self.extra.values())
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))

    def seen(self) -> "Instance":
        """The instance as rules see it: only the data that its digest covers."""
        return replace(self, coords=None, file={}, reference=None, certified=False)  # type: ignore[arg-type]


class Rules:
    """One instance inside a worker: arguments of programs, checks and objective, in plain Python.

    A subclass writes `start`, `repaired` and `cost`; the rest is defined for solutions that are
    lists of integers of at least 0, or lists of such lists. All methods run at least once per step,
    so they are written for speed. Checks raise `Infeasible`. Outputs of programs are hostile: check
    exact types first (`spo_jax.envs.views.node_list`, `nodes_of`).

    arguments: the instance's leading arguments of both roles, e.g. (dist, demands, capacity), as
    the problem's `interface` declares them: arrays [N, M] or [N], or anything else.
    """

    partial = "the partial solution"  # what destroy returns first, and what it removes: for reasons
    item = "item"

    def __init__(self, instance: Instance, *arguments: Any):
        self.most = instance.size * 35 // 100
        self.size = instance.size
        self._arguments: dict[Layout, tuple[Any, ...]] = {
            "rows": tuple(map(rows, arguments)),
            "array": tuple(map(frozen, arguments)),
        }

    def arguments(self, layout: Layout) -> tuple[Any, ...]:
        """A matrix is a tuple of tuples of Python numbers in "rows" and a read-only ndarray in
        "array", a row a tuple or an ndarray, and anything else the same in both.
        """
        return self._arguments[layout]

    def start(self, rng: random.Random) -> Solution:
        """A seeded random feasible solution."""
        raise NotImplementedError

    def repaired(self, output: Any) -> Solution:
        """The checked complete solution that a repair program returned."""
        raise NotImplementedError

    def cost(self, solution: Solution) -> float:
        """Exact float64 objective, to be minimised: a sum correctly rounded (math.fsum)."""
        raise NotImplementedError

    def copy(self, solution: Solution) -> Solution:
        """A copy that a program may mutate."""
        return [part[:] for part in solution] if _nested(solution) else solution[:]

    def destroyed(self, current: Solution, output: Any) -> tuple[Solution, list[int]]:
        """The checked (partial solution, removed) that a destroy program returned.

        Removed are 1 to floor(0.35 size) items of the solution; the others keep their order. A list
        that is emptied may stay as [] or be dropped.
        """
        if type(output) not in (tuple, list) or len(output) != 2:
            raise Infeasible(f"returned no ({self.partial}, removed_{self.item}s)")
        nested = _nested(current)
        partial = (nodes_of if nested else node_list)(output[0])
        removed = node_list(output[1])
        if partial is None:
            kind = "a list of lists" if nested else "a list"
            raise Infeasible(f"{self.partial} must be {kind} of integers")
        if removed is None:
            raise Infeasible(f"removed_{self.item}s must be a list of integers")
        gone = set(removed)
        if len(gone) != len(removed):
            raise Infeasible(f"removed_{self.item}s repeats one")
        if not gone:
            raise Infeasible(f"removed no {self.item}")
        if len(gone) > self.most:
            raise Infeasible(
                f"removed {len(gone)} of {self.size} {self.item}s (at most {self.most})"
            )
        kept = without(current, gone)
        # Equality here and in the count leaves no room for an item that is not in the solution.
        if nested:
            same = partial == kept or [*filter(None, partial)] == [*filter(None, kept)]
            count = sum(map(len, current)) - sum(map(len, kept))
        else:
            same, count = partial == kept, len(current) - len(kept)
        if not same or count != len(gone):
            raise Infeasible(
                f"{self.partial} is not the solution without removed_{self.item}s, in its order"
            )
        return partial, removed

    def encode(self, solution: Solution) -> list[int]:
        """The code of a solution: at most `Problem.code_length` integers from 0 to 2**31 - 1."""
        if _nested(solution):
            return [*chain.from_iterable([*(v + 1 for v in part), 0] for part in solution)]
        return [v + 1 for v in solution]


def _nested(solution: Solution) -> bool:
    return bool(solution) and type(solution[0]) is list


def without(solution: Solution, gone: set[int]) -> Solution:
    """A list, or a list of lists, without some items; emptied lists stay."""
    if _nested(solution):
        return [[*filterfalse(gone.__contains__, part)] for part in solution]
    return [*filterfalse(gone.__contains__, solution)]


def decoded(code: Iterable[int]) -> Solution:
    """The list, or list of lists, that `Rules.encode` writes as `code`."""
    flat: list[int] = []
    nested: list[list[int]] = []
    for number in code:
        if number:
            flat.append(number - 1)
        else:
            nested.append(flat)
            flat = []
    return [*nested, flat] if nested and flat else nested or flat


@dataclass(frozen=True)
class Part:
    """A smaller instance made of a part of a solution; see `Problem.part`.

    instance: has only what rules read. solution: of it, what the part is now. whole: puts another
    solution of it in the place of the part; None for one that does not fit there. Costs of the
    whole differ as those of the part do.
    """

    instance: Instance
    solution: Solution
    whole: Callable[[Solution], Solution | None]


@dataclass(frozen=True)
class Baseline:
    """A method to compare the pairs of a problem with.

    function: "package.module:NAME" of (instance, seed) -> solution, with an optional parameter
    `steps`. seeded: whether the seed matters. needs: a package, and the extra that installs it.
    """

    function: str
    seeded: bool = False
    needs: tuple[str, str] | None = None


class Problem:
    """The parent's half of a problem: subclass it.

    Required are `name`, `interface`, `sample` and `rules`. The other methods either have a default
    for the solutions that `Rules` handles, or raise InputError with a sentence that the problem has
    no such part; `offers` tells which parts it has.

    name: a word. unit: what an instance's size counts. cpu_seconds: CPU-time limit of a rollout of
    500 steps. suffixes: of instance files, such as ".tsp"; solution_suffix: of written solutions.
    tables: suffixes such as ".csv", which count in a folder only if it has none of `suffixes`.
    reading: the options of `spo_jax.envs.reading.Reading` that `read` takes by name.
    settings: default settings of a discovery that differ for this problem.
    baselines: by name. references: the path of the file with the best known costs by digest.
    quick_reference: the largest size whose reference `solve_reference` finds in less than a second
        with the effort "quick"; a discovery shows gaps to these. 0: it asks for none.
    """

    name: str
    interface: Interface  # what its programs are called with
    unit: str = "nodes"
    cpu_seconds: float = 10.0
    suffixes: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()
    solution_suffix: str = ".json"
    settings: Mapping[str, Any] = _NONE
    baselines: Mapping[str, Baseline] = _NONE
    references: str = ""
    quick_reference: int = 0
    kit: str = ""  # the module that its programs import as `lns`; see spo_jax.envs.kits
    pair: str = ""  # the path of a pair file: what `spo solve` takes where it is given none
    whole: int = 0  # the largest instance that `spo solve` shows programs as a whole, ...
    region: int = 0  # ... and about the size of the parts that it shows of larger ones; 0: all
    found_as: str = ""  # "package.module:NAME" of a problem that is an object of a module

    @property
    def spec(self) -> str:
        """The "package.module:NAME" by which a worker finds the problem: `found_as` or its class's.

        Raises InputError for a class that no worker can import.
        """
        if self.found_as:
            return self.found_as
        kind = type(self)
        if kind.__module__ == "__main__" or "." in kind.__qualname__:
            raise InputError(
                f"problem {self.name}: workers cannot import {kind.__qualname__} of "
                f"{kind.__module__}; define it at the top of a module on PYTHONPATH"
            )
        return f"{kind.__module__}:{kind.__qualname__}"

    # --- required -----------------------------------------------------------------------------

    def sample(self, size: int, count: int, seed: int) -> list[Instance]:
        """`count` random instances of `size`; instance k is the same whatever the count."""
        raise NotImplementedError

    def rules(self, instance: Instance) -> Rules:
        """The worker's half."""
        raise NotImplementedError

    # --- solutions, recomputed by the parent ----------------------------------------------------

    def code_length(self, instance: Instance) -> int:
        """The longest code of a solution (`Rules.encode`)."""
        return 2 * instance.size

    def decode(self, instance: Instance, code: Sequence[int]) -> Solution:
        """The solution of a code. Raises Infeasible unless it is complete and feasible."""
        return _rules(self, instance).repaired(decoded(code))

    def cost(self, instance: Instance, solution: Solution) -> float:
        """The exact float64 objective of a feasible solution."""
        return float(_rules(self, instance).cost(solution))

    # --- optional -------------------------------------------------------------------------------

    def offers(self, what: str) -> bool:
        """Whether the problem has its own `what`: a method or an attribute named here."""
        return getattr(type(self), what) is not getattr(Problem, what)

    def read(self, path: str | Path) -> Instance:
        """Read an instance file. Raises InputError with one clear sentence."""
        raise self._without("instance files", "implement read")

    def write(self, path: str | Path, instance: Instance, solution: Solution) -> None:
        """Write a solution in the format that the field's other tools read; JSON by default."""
        from spo_jax.envs.textfiles import write_atomically

        text = json.dumps(solution, allow_nan=False, default=lambda number: number.item())
        write_atomically(path, text + "\n")

    def read_solution(self, path: str | Path, instance: Instance) -> Solution:
        """The solution of `instance` in a file that `write` wrote. Raises InputError unless it is
        complete and feasible.
        """
        if self.offers("write"):
            raise self._without("way to read solutions", "implement read_solution")
        from spo_jax.envs.textfiles import load_json

        try:
            return _rules(self, instance).repaired(load_json(Path(path)))
        except Infeasible as error:
            raise InputError(f"{path} is no solution of {instance.name}: {error}") from None

    def construct(self, instance: Instance) -> Solution:
        """A good solution that is found at once; the same for the same instance."""
        raise self._without("construction", "implement construct, or start at random")

    def part(self, instance: Instance, solution: Solution, center: int, size: int) -> Part:
        """About `size` (2 at least) of a larger instance around one, as an instance of its own.

        center: which, from 0 to instance.size - 1. Called in workers, often: it takes no longer
        than a few steps of a search.
        """
        raise self._without("parts", "implement part")

    def rewritten(self, solution: Solution, rng: random.Random) -> Solution:
        """The same solution written in another way, such as a tour from another node on."""
        return solution

    def draw(self, axes: Any, instance: Instance, solution: Solution) -> None:
        """Draw a solution on matplotlib axes."""
        raise self._without("picture", "implement draw")

    def walks(self, instance: Instance, solution: Solution) -> list[list[int]]:
        """The closed walks of a solution through nodes (rows of `dist`): a tour, or each route."""
        raise self._without("walks through nodes", "implement walks")

    def lower_bound(self, instance: Instance) -> float:
        """A lower bound on the cost; a reference below it belongs to another instance."""
        return -math.inf

    def solve_reference(self, instance: Instance, effort: str) -> tuple[Solution, str, bool]:
        """A reference solution, its source (solver, version, settings), whether it is optimal.

        effort: "quick", "standard" or "paper".
        """
        raise self._without("reference solver", "implement solve_reference")

    def classical_destroys(self) -> tuple[Program, ...]:
        """Fixed classical destroy programs for the repair panel (Appendix A.5); may be empty."""
        return ()

    def contract(self, role: Role) -> str:
        """The text of a role's contract for prompts: a string.Template with the placeholders of
        spo_jax/search/writing/prompts.
        """
        hint = f"implement contract, or write {self.name}-{role}.txt into a folder of --prompts"
        raise self._without(f"contract of a {role}", hint)

    def kit_texts(self, role: Role, kit: bool) -> Mapping[str, str]:
        """The placeholders of its contracts that depend on the kit: with it, or without it."""
        return _NONE

    def grammar(self, role: Role, kit: bool = False) -> Any:
        """The grammar that writes programs of a role without a model.

        kit: whether they are programs that use the problem's kit.
        """
        raise self._without("grammar", "use another generator, or implement grammar")

    def operators(self) -> str:
        """The template with which `spo_jax.envs.glns_operators` turns operators into programs."""
        raise self._without("way to take operators of G-LNS", "implement operators")

    def _without(self, what: str, hint: str) -> InputError:
        return InputError(f"problem {self.name} has no {what}: {hint}")


@lru_cache(maxsize=16)  # rules are large
def _rules(problem: Problem, instance: Instance) -> Rules:
    return problem.rules(instance.seen())
