"""The arguments of a problem's programs, as the problem declares them.

The gate counts the arguments and chooses the view of each; a pair file documents them.
"""

from dataclasses import dataclass
from keyword import iskeyword
from typing import Literal, get_args

from spo_jax.errors import InputError
from spo_jax.program.game import DESTROY_REPAIR, RESERVED, Game
from spo_jax.program.types import ROLES, Role

Kind = Literal["matrix", "row", "scalar", "object"]


@dataclass(frozen=True)
class Argument:
    """One of an instance's arguments.

    Attributes:
        name: An identifier.
        kind: "matrix" [N, M] or "row" [N] of numbers, which a program gets as tuples if every use
            of it allows that, else as an ndarray; "scalar", one number; "object", anything else.
            The last two are the same in both views.
        about: Its description in the head of a pair file: "the square matrix of distances", or for
            a row the meaning of its entry i.

    Raises:
        InputError: `kind` is none of these.
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
    """The positional arguments of both functions of a pair: the instance's arguments, then

        destroy(..., current solution, steps since the best cost fell, rng)
        repair(..., partial solution, what was removed, steps, rng)

    or, in another game, what its sides are called with.

    Attributes:
        arguments: The instance's, in order.
        current: A name for the current solution.
        game: Who leads and who follows.

    Raises:
        InputError: `arguments` is no tuple of Arguments, or a name is no identifier, occurs twice,
            is one of RESERVED or of what the game hands on.
    """

    arguments: tuple[Argument, ...]
    current: str = "current"
    game: Game = DESTROY_REPAIR

    def __post_init__(self) -> None:
        given = self.arguments
        if type(given) is not tuple or not all(isinstance(each, Argument) for each in given):
            raise InputError(
                f"Interface takes a tuple of Arguments, not {given!r:.80}: a tuple of one ends "
                "with a comma, as (Argument(...),)"
            )
        if not isinstance(self.game, Game):
            raise InputError(f"Interface takes a Game, not {self.game!r:.80}")
        reserved = (*RESERVED, *self.game.handed)
        names = [*(each.name for each in given), self.current]
        for name in names:
            plain = isinstance(name, str) and name.isidentifier() and not iskeyword(name)
            if not plain or name in reserved or names.count(name) > 1:
                raise InputError(
                    f"Interface: {name!r} names an argument, so it is an identifier, given once "
                    f"and none of {', '.join(reserved)}"
                )

    def function(self, role: Role) -> str:
        """The name of a role's function."""
        return self.game.side(role).function

    def parameters(self, role: Role) -> list[str]:
        """Names for the positional arguments of a role's function."""
        own = (self.current,) if role == ROLES[0] else self.game.handed
        return [*(each.name for each in self.arguments), *own, "steps", "rng"]

    def arity(self, role: Role) -> int:
        """The number of positional arguments of a role's function."""
        return len(self.parameters(role))
