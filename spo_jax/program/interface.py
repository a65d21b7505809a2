"""What a problem's programs are called with, as the problem declares it.

The gate reads it to count arguments and to choose the view that each is handed in; a pair file says
it to whoever calls the pair.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from spo_jax.errors import InputError
from spo_jax.program.nouns import Role

Kind = Literal["matrix", "row", "scalar", "object"]


@dataclass(frozen=True)
class Argument:
    """One of an instance's arguments.

    kind: "matrix" [N, M] or "row" [N] of numbers, which a program gets as tuples where every use of
    it allows that, else as an ndarray; "scalar", one number; "object", anything else. The last two
    are the same in both views.
    about: what it is, for the head of a pair file: "the square matrix of distances", or of a row
    what its entry i is.
    """

    name: str
    kind: Kind
    about: str = ""

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            known = ", ".join(get_args(Kind))
            raise InputError(f"argument {self.name!r} is of kind {self.kind!r}: use {known}")


@dataclass(frozen=True)
class Interface:
    """What both functions of a pair are called with, by position: the instance's arguments, then

        destroy(..., current solution, steps since the best cost fell, rng)
        repair(..., partial solution, what was removed, steps, rng)

    current: a name for the current solution.
    """

    arguments: tuple[Argument, ...]
    current: str = "current"

    def arity(self, role: Role) -> int:
        """How many positional arguments the function of a role gets."""
        return len(self.arguments) + (3 if role == "destroy" else 4)
