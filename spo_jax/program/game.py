"""The game of two programs as data: who leads, who follows, and what the leader hands on.

`destroy` and `repair` are the keys of its two positions, the first and the second mover, whatever
a game calls its programs: in databases, `Pair`, `Program.role`, folders of adapters, metrics,
settings and the names of random streams.
"""

import builtins
import re
from collections.abc import Mapping
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any

from spo_jax.errors import InputError
from spo_jax.program.types import ROLES, Role

RESERVED = ("steps", "rng")  # names in the head of a pair file, besides what is handed


@dataclass(frozen=True)
class Side:
    """One of the two positions of a game.

    Attributes:
        function: The name of its programs' function.
        noun: What people and writers call such a program, by default as its function.
        plural: Several of them, by default with an s.

    Raises:
        InputError: `function` is no name that programs may give, or a word is no text of one line.
    """

    function: str
    noun: str = ""
    plural: str = ""

    def __post_init__(self) -> None:
        name = self.function
        if not _is_name(name) or hasattr(builtins, name):
            raise InputError(
                f"Side: {name!r:.80} names a function, so it is an identifier in ASCII that does "
                "not begin with __ and is no name of Python's own"
            )
        if not _is_line(self.noun) or not _is_line(self.plural):
            raise InputError(f"Side {name!r}: its noun and its plural are texts of one line, no $")
        object.__setattr__(self, "noun", self.noun or name)
        object.__setattr__(self, "plural", self.plural or f"{self.noun}s")


@dataclass(frozen=True)
class Game:
    """Two programs that make each step of a search, the leader first.

        handed = leader(*instance, copy of the current solution, state, rng)
        candidate = follower(*instance, *handed, state, rng)

    `Rules.destroyed` checks what the leader returns and gives the follower's arguments,
    `Rules.repaired` checks the candidate.

    Attributes:
        leader: The first mover, whose key is "destroy".
        follower: The second mover, whose key is "repair".
        handed: Names of what the leader hands to the follower, in order.
        search: What the two make together, in words.

    Raises:
        InputError: Both functions or both sides have one name, `handed` is no tuple of different
            identifiers, or has one of theirs or of RESERVED.
    """

    leader: Side
    follower: Side
    handed: tuple[str, ...]
    search: str = "large neighbourhood search"

    def __post_init__(self) -> None:
        if not isinstance(self.leader, Side) or not isinstance(self.follower, Side):
            raise InputError("Game: its leader and its follower are Sides")
        if self.leader.function == self.follower.function:
            raise InputError(f"Game: both functions are named {self.leader.function!r}")
        sides = (self.leader, self.follower)
        called = [{side.noun, side.plural} for side in sides]
        if same := called[0] & called[1]:
            raise InputError(f"Game: both sides are called {min(same)!r}")
        given = self.handed
        fine = type(given) is tuple and all(map(_is_name, given))
        if not fine or not given or len(set(given)) < len(given):
            raise InputError(
                f"Game: handed is {given!r:.80}: name what the leader hands to the follower, in a "
                "tuple of different identifiers; one of one ends with a comma"
            )
        if taken := {*given} & {*RESERVED, *self.functions}:
            raise InputError(
                f"Game: handed names {sorted(taken)[0]!r}, which is a function or an argument of "
                "both: choose another name"
            )
        if not _is_line(self.search) or not self.search:
            raise InputError("Game: search is what the two make together, in words on one line")

    @property
    def functions(self) -> tuple[str, str]:
        """The names of both functions, the leader's first."""
        return self.leader.function, self.follower.function

    def side(self, role: Role) -> Side:
        """The side of a key."""
        return self.leader if role == ROLES[0] else self.follower

    def named(self, role: str) -> str:
        """What people call a program of a role; another text as it is."""
        return self.side(role).noun if role in ROLES else role

    def told(self, reason: str) -> str:
        """Say why a pair failed.

        Args:
            reason: As rollouts have it, which may begin with the role of the program at fault.

        Returns:
            The reason, with what people call that program in place of its role.
        """
        role, colon, why = reason.partition(": ")
        return f"{self.named(role)}{colon}{why}"

    @property
    def returned(self) -> str:
        """What the leader returns, as a writer reads it: its one value, or a tuple."""
        return self.handed[0] if len(self.handed) == 1 else f"({', '.join(self.handed)})"

    def words(self, text: str) -> str:
        """Put a text about destroys and repairs into the words of this game.

        Args:
            text: Of ours: no program, and nothing that a user wrote.

        Returns:
            The text, with placeholders as they are.
        """
        if self == DESTROY_REPAIR:
            return text
        words = {"large neighbourhood search": self.search}
        for ours, own in zip((DESTROY, REPAIR), (self.leader, self.follower), strict=True):
            words |= {ours.noun: own.noun, ours.plural: own.plural}
        words |= {_capital(ours): _capital(own) for ours, own in words.items()}
        listed = "|".join(sorted(words, key=len, reverse=True))

        def own_words(found: re.Match[str]) -> str:
            word = words[found[2]]
            article = "" if found[1] is None else f"{found[1][0]}{'n' * (word[0] in 'AEIOUaeiou')} "
            return f"{article}{word}"

        return re.sub(rf"(?<![$\w])(\b[Aa]n? )?({listed})(?!\w)", own_words, text)

    # --- as a run keeps it ------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any] | None:
        """As plain values; None for destroy and repair."""
        if self == DESTROY_REPAIR:
            return None
        sides = (self.leader, self.follower)
        return {
            "sides": [[each.function, each.noun, each.plural] for each in sides],
            "handed": list(self.handed),
            "search": self.search,
        }

    @classmethod
    def of_json(cls, found: Mapping[str, Any] | None) -> "Game":
        """Make a game of plain values.

        Args:
            found: As `to_json` has them; None: destroy and repair.

        Returns:
            The game.

        Raises:
            ValueError: They are none.
        """
        if found is None:
            return DESTROY_REPAIR
        try:
            leader, follower = (Side(*each) for each in found["sides"])
            return cls(leader, follower, tuple(found["handed"]), found["search"])
        except (InputError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"game is none ({error})") from None


def _is_name(name: object) -> bool:
    """Whether the sandbox's gate lets a program give this name."""
    return (
        isinstance(name, str)
        and name.isascii()
        and name.isidentifier()
        and not iskeyword(name)
        and not name.startswith("__")
    )


def _is_line(text: object) -> bool:
    """Whether a text can stand in a prompt's template and in a message."""
    return isinstance(text, str) and text.isprintable() and "$" not in text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


DESTROY, REPAIR = Side("destroy"), Side("repair")
DESTROY_REPAIR = Game(DESTROY, REPAIR, ("rest", "removed"))
