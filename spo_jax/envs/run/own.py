"""Functions of the user's that workers call, besides the problem's: acceptance rules and states."""

from collections.abc import Callable
from typing import Any

KINDS = ("acceptance '", "state '", "Rules.destroyed ")  # how the message of an OwnError begins


class OwnError(Exception):
    """Such a function raised, or returned what it may not; the message says which and what."""


def guarded(what: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose exceptions are an OwnError that names it.

    what: its option and name. A lack of memory may be the programs' and stays what it is.
    """

    def called(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (MemoryError, OwnError):
            raise
        except (Exception, SystemExit) as error:
            message = " ".join(str(error).split())[:200]
            raise OwnError(f"{what} raised {type(error).__name__}: {message}") from error

    return called
