"""The base class of a problem, and what it is made of: `Problem`, `Rules` and `Instance`.

`Problem` lives in the parent process: it samples and reads instances, recomputes costs and declares
optional parts. `Rules` lives in the sandboxed worker: it holds one instance, provides the arguments
of a program and checks what it returns. A new problem is a module that subclasses both, loaded by
`spo_jax.envs.problems.get_problem("package.module:NAME")`. It may not import JAX.
"""

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from spo_jax.envs.instance import Instance as Instance
from spo_jax.envs.rules import Infeasible as Infeasible
from spo_jax.envs.rules import Layout as Layout
from spo_jax.envs.rules import OverLimit as OverLimit
from spo_jax.envs.rules import Rules as Rules
from spo_jax.envs.rules import Solution as Solution
from spo_jax.envs.rules import decoded as decoded
from spo_jax.envs.rules import without as without
from spo_jax.errors import InputError
from spo_jax.program import Argument, Interface, Program, Role
from spo_jax.program.grammar.base import Grammar

DIST = Argument("dist", "matrix", "the square matrix of distances")
_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Part:
    """A smaller instance made of a part of a solution; see `Problem.part`.

    Costs of the whole differ as those of the part do.

    Attributes:
        instance: Has only what rules read.
        solution: Of `instance`, what the part is now.
        whole: Puts another solution of `instance` in the place of the part; None for one that does
            not fit there.
    """

    instance: Instance
    solution: Solution
    whole: Callable[[Solution], Solution | None]


@dataclass(frozen=True)
class Baseline:
    """A method to compare the pairs of a problem with.

    Attributes:
        function: "package.module:NAME" of (instance, seed) -> solution, with the optional keywords
            `steps`, `seconds`, `report` and `workers` (`spo_jax.envs.report.comparison.methods`).
        seeded: Whether the seed matters.
        needs: A module, and the extra that installs its package.
        symmetric: Whether it is for distances that are alike both ways alone.
    """

    function: str
    seeded: bool = False
    needs: tuple[str, str] | None = None
    symmetric: bool = False


OR_TOOLS = ("ortools.constraint_solver.pywrapcp", "solvers")


class Problem:
    """The parent's half of a problem: subclass it.

    Required are `name`, `interface`, `sample` and `rules`. The other methods either have a default
    for the solutions that `Rules` handles, or raise InputError with a sentence that the problem has
    no such part; `offers` tells which parts it has.

    Attributes:
        name: A word.
        interface: What its programs are called with.
        maximise: Whether the cost is to be maximised, as a profit. Everything that a user gives or
            is shown has the cost as it is; searches, `Rollouts` and the database of a run have its
            negative, which they minimise (`turned`).
        unit: What an instance's size counts.
        cpu_seconds: CPU-time limit of a rollout of 500 steps.
        suffixes: Of instance files, such as ".tsp".
        tables: Suffixes such as ".csv", which count in a folder only if it has none of `suffixes`.
        reading: The options of `spo_jax.envs.files.reading.Reading` that `read` takes by name.
        solution_suffix: Of written solutions.
        settings: Default settings of a discovery that differ for this problem.
        baselines: By name.
        references: The path of the file with the best known costs by digest.
        quick_reference: The largest size whose reference `solve_reference` finds in less than a
            second with the effort "quick"; a discovery shows gaps to these. 0: it asks for none.
        kit: The module that its programs import as `lns`; see `spo_jax.envs.kits`.
        pair: The path of a pair file: what `spo solve` takes where it is given none.
        simple: The path of a pair file: a trivial design, for methods that begin with one.
        first: The path of operators that G-LNS begins with: destroy_..., repair_...
        whole: The largest instance that `spo solve` shows programs as a whole.
        region: About the size of the parts that it shows of larger ones; 0: all.
        acceptances: Names of ACCEPTANCES that its searches have by turns.
        directed: Whether `dist` may depend on the direction (`Instance.directed`).
        found_as: "package.module:NAME" of a problem that is an object of a module.
    """

    name: str
    interface: Interface
    maximise: bool = False
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
    kit: str = ""
    pair: str = ""
    simple: str = ""
    first: str = ""
    whole: int = 0
    region: int = 0
    acceptances: tuple[str, ...] = ("record-to-record",)
    directed: bool = False
    found_as: str = ""

    @property
    def spec(self) -> str:
        """The "package.module:NAME" by which a worker finds the problem: `found_as` or its class's.

        Raises:
            InputError: No worker can import the class.
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
        """Draw random instances.

        Args:
            size: Of each, in `unit`.
            count: How many.
            seed: Of the random stream.

        Returns:
            [count] instances; instance k is the same whatever the count.
        """
        raise NotImplementedError

    def rules(self, instance: Instance) -> Rules:
        """The worker's half, of one instance."""
        raise NotImplementedError

    # --- solutions, recomputed by the parent ----------------------------------------------------

    def code_length(self, instance: Instance) -> int:
        """The longest code of a solution (`Rules.encode`), in integers."""
        return 2 * instance.size

    def decode(self, instance: Instance, code: Sequence[int]) -> Solution:
        """Turn a code into its solution.

        Args:
            instance: What it is a solution of.
            code: As `Rules.encode` has it, without padding; it may be forged.

        Returns:
            The solution, complete and feasible.

        Raises:
            Infeasible: It is not.
        """
        return _rules(self, instance).repaired(decoded(code))

    def encode(self, instance: Instance, solution: Solution) -> list[int]:
        """The code of a solution, as `Rules.encode` has it."""
        return _rules(self, instance).encode(solution)

    def cost(self, instance: Instance, solution: Solution) -> float:
        """The exact float64 objective of a feasible solution, as `Rules.cost` has it."""
        return float(_rules(self, instance).cost(solution))

    def turned(self, cost: Any) -> Any:
        """What searches minimise, of a cost; and the cost, of what they minimise.

        Args:
            cost: A number or an array.

        Returns:
            Its negative if the problem maximises, else the same.
        """
        return 0.0 - cost if self.maximise else cost  # so that 0 stays 0, and is not -0

    @property
    def word(self) -> str:
        """What a cost is called where it is shown."""
        return "value" if self.maximise else "cost"

    @property
    def sense(self) -> dict[str, bool]:
        """What files with costs say of a problem that maximises: their costs are values."""
        return {"maximise": True} if self.maximise else {}

    def minimised(self, instance: Instance, solution: Solution) -> float:
        """What searches minimise, of a solution: `cost`, turned."""
        return float(self.turned(self.cost(instance, solution)))

    def costs(
        self, instances: Sequence[Instance], codes: np.ndarray, whose: np.ndarray
    ) -> np.ndarray:
        """Price many solutions in one call, with the bits that `cost` gives.

        Called in the parent alone, so it may import JAX (`spo_jax.envs.pricing`). Without it
        solutions are priced one by one.

        Args:
            instances: What they are solutions of.
            codes: [B, L] int32, each as `Rules.encode` has it, and -1 after its end; they may be
                forged.
            whose: [B] int, the number of each one's instance.

        Returns:
            [B] float64. NaN for what is infeasible, and where the call cannot tell: `decode` and
            `cost` judge it then.
        """
        return np.full(len(codes), np.nan)

    # --- optional -------------------------------------------------------------------------------

    def offers(self, what: str) -> bool:
        """Whether the problem has its own `what`: a method or an attribute named here."""
        return getattr(type(self), what) is not getattr(Problem, what)

    def require(self, instance: Instance) -> None:
        """Refuse an instance that `rules` does not take, before a worker gets it.

        Raises:
            InputError: `rules` does not take it.
        """

    def read(self, path: str | Path) -> Instance:
        """Read an instance file.

        Args:
            path: The file. A problem takes the options in `reading` by name besides.

        Returns:
            The instance.

        Raises:
            InputError: It cannot be read. One clear sentence says why.
        """
        raise self._without("instance files", "implement read")

    def write(self, path: str | Path, instance: Instance, solution: Solution) -> None:
        """Write a solution in the format that the field's other tools read; JSON by default."""
        from spo_jax.envs.files.textfiles import jsonable, write_atomically

        write_atomically(path, json.dumps(jsonable(solution, strict=True)) + "\n")

    def read_solution(self, path: str | Path, instance: Instance) -> Solution:
        """Read a solution that `write` wrote.

        Args:
            path: The file.
            instance: What it is a solution of.

        Returns:
            The solution.

        Raises:
            InputError: It is not complete and feasible, or cannot be read.
        """
        if self.offers("write"):
            raise self._without("way to read solutions", "implement read_solution")
        from spo_jax.envs.files.textfiles import load_json

        try:
            return _rules(self, instance).repaired(load_json(Path(path)))
        except Infeasible as error:
            raise InputError(f"{path} is no solution of {instance.name}: {error}") from None

    def construct(self, instance: Instance, until: float = math.inf) -> Solution:
        """Find a good solution at once; the same for the same instance.

        Args:
            instance: What to solve.
            until: The time.monotonic() after which a construction that improves its solution gives
                what it has. One that is always quick need not look at it.

        Returns:
            A complete and feasible solution.
        """
        raise self._without("construction", "implement construct, or start at random")

    def trivial(self, instance: Instance) -> Solution | None:
        """The best solution of an instance that is too small to be searched; None of others.

        Of fewer than three nodes 35% are less than one: a program has nothing to take out. Of a few
        more it may be too little to leave a local optimum.
        """
        return None

    def part(self, instance: Instance, solution: Solution, center: int, size: int) -> Part:
        """About `size` of a larger instance around one item, as an instance of its own.

        Called in workers, often: it takes no longer than a few steps of a search.

        Args:
            instance: The larger one.
            solution: Of it.
            center: Which item, from 0 to instance.size - 1.
            size: About how many items, 2 at least.

        Returns:
            The smaller instance, its solution and the way back.

        A problem with `shares` has a keyword `within` here: the items of a share, which it holds
        nothing else of.
        """
        raise self._without("parts", "implement part")

    def shares(
        self, instance: Instance, solution: Solution, count: int, luck: random.Random
    ) -> list[list[int]]:
        """Divide a solution, so that searches side by side each improve a share of it.

        Parts within one share and parts within another can change at once (`joined`).

        Args:
            instance: What it is a solution of.
            solution: Complete and feasible.
            count: Of shares, 2 at least.
            luck: Draws the borders: each call has others.

        Returns:
            The items of each share, as `center` of `part` counts them, about as many in each; fewer
            shares, or one, where it cannot be divided so far.
        """
        raise self._without("shares", "implement shares and joined")

    def joined(self, shares: Sequence[Sequence[int]], solutions: Sequence[Solution]) -> Solution:
        """Join searches of shares: what solution k has for the items of share k, of all shares."""
        raise self._without("shares", "implement shares and joined")

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
        """A bound on the cost that no solution is better than; infinite: none.

        It is from below, and from above for a problem that maximises. A reference that is better
        is of another instance.
        """
        return float(self.turned(-math.inf))

    def solve_reference(self, instance: Instance, effort: str) -> tuple[Solution, str, bool]:
        """Find a reference solution.

        Args:
            instance: What to solve.
            effort: "quick", "standard" or "paper".

        Returns:
            The solution, its source (solver, version, settings), and whether it is optimal.
        """
        raise self._without("reference solver", "implement solve_reference")

    def classical_destroys(self) -> tuple[Program, ...]:
        """Fixed classical destroy programs for the repair panel (Appendix A.5); may be empty."""
        return ()

    def contract(self, role: Role) -> str:
        """The text of a role's contract for prompts.

        Returns:
            A string.Template with the placeholders of spo_jax/search/writing/prompts.
        """
        hint = f"implement contract, or write {self.name}-{role}.txt into a folder of --prompts"
        raise self._without(f"contract of a {role}", hint)

    def frame(self, role: Role) -> str:
        """The contract in fewer words, for prompts of the style "frame".

        Returns:
            A line "#frame" and a frame of the function to complete. "" without one: prompts then
            have the contract.
        """
        return ""

    def kit_texts(self, role: Role, kit: bool) -> Mapping[str, str]:
        """The placeholders of its contracts that depend on the kit.

        Args:
            role: Of the contract.
            kit: Whether programs may import the kit.

        Returns:
            The text of each placeholder by its name.
        """
        return _NONE

    def limits(self, role: Role, instances: Sequence[Instance], kit: bool) -> str:
        """What bounds the solutions of some instances besides what every contract says.

        Args:
            role: Of the contract.
            instances: Of a discovery.
            kit: Whether programs may import the kit.

        Returns:
            The last lines of the contract, as plain text; "" for instances without such limits.
        """
        return ""

    def grammar(self, role: Role, kit: bool = False) -> Grammar:
        """The grammar that writes programs of a role without a model, for `--generator grammar`.

        Args:
            role: "destroy" or "repair".
            kit: Whether they are programs that use the problem's kit.

        Returns:
            Slots, each a choice, and `render`, which turns choices into (strategy, source).
        """
        hint = "implement grammar, or use --generator openai or vllm, which need a contract only"
        raise self._without("grammar, which --generator grammar needs", hint)

    def operators(self) -> str:
        """The template with which `spo_jax.envs.glns_operators` turns operators into programs."""
        raise self._without("way to take operators of G-LNS", "implement operators")

    def export(self) -> str:
        """The four functions that `spo export --for` needs of the problem, as the text of a module.

        `instance_of(...)` of what a user has returns what programs are called with, each matrix and
        row by `seen(array)` and all by `prepared(...)`; the docstring of the text describes both.
        It may call `distances(places)`, which turns distances or coordinates into distances [N, N].
        `construct(*instance)` is a first solution, `complete(*instance, solution)` the solution in
        plain lists, or None if it breaks a rule, and `cost_of(*instance, solution)` its cost, as
        `Rules.cost` has it.
        """
        raise self._without("export for other programs", "leave out --for, or implement export")

    def _without(self, what: str, hint: str) -> InputError:
        return InputError(f"problem {self.name} has no {what}: {hint}")


def rules_of(problem: Problem, instance: Instance) -> Rules:
    """The rules of an instance as searches use them: they know whether the problem maximises, and
    what the leader of its game hands on.

    Raises:
        InputError: The problem returned something else.
    """
    rules = problem.rules(instance)
    if not isinstance(rules, Rules):
        raise InputError(
            f"problem {problem.name}: its rules returned a {type(rules).__name__}, not Rules"
        )
    rules.maximise = problem.maximise
    rules.hands = problem.interface.game.handed
    return rules


@lru_cache(maxsize=16)  # rules are large
def _rules(problem: Problem, instance: Instance) -> Rules:
    return problem.rules(instance.seen())
