"""The errors that a user can cause or fix.

The command line prints a `SpoError` as one sentence and exits with code 2; any other exception is a
bug and keeps its traceback. Each class also inherits from a standard exception.
"""

import os

LONGEST_REASON = 300  # characters


class SpoError(Exception):
    """An error that the user can fix; the message says what is wrong, where, and what to do."""


class InputError(SpoError, ValueError):
    """A file, option or argument is missing, malformed or out of range."""


def require_kind(what: str, value: object, kinds: type | tuple[type, ...], due: str) -> None:
    """Check the type of an argument.

    Args:
        what: Its name in messages.
        value: The argument.
        kinds: The types that it may have.
        due: These, in words.

    Raises:
        InputError: It has none of them.
    """
    if not isinstance(value, kinds):
        raise InputError(f"{what} is {value!r:.80}; it must be {due}")


def require_path(what: str, value: object) -> None:
    """Check that an argument can be the path of a file or folder.

    Args:
        what: Its name in messages.
        value: The argument.

    Raises:
        InputError: It is neither a text nor a path.
    """
    require_kind(what, value, (str, os.PathLike), "a path, as a text or a pathlib.Path")


class Rejection(SpoError, ValueError):
    """A program was refused before it ran.

    Args:
        reason: One short clause. It may quote a name of any length from the program, so it is
            truncated to `LONGEST_REASON` characters.

    Attributes:
        reason: The clause, truncated.
    """

    def __init__(self, reason: str):
        self.reason = reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]}..."
        super().__init__(self.reason)


class MissingExtra(SpoError, ImportError):
    """An optional dependency is not installed.

    Args:
        package: The dependency.
        extra: Of spo-jax, which installs it.
    """

    def __init__(self, package: str, extra: str):
        super().__init__(f"{package} is not installed: pip install 'spo-jax[{extra}]'")


class SandboxUnavailable(SpoError, RuntimeError):
    """The kernel lacks a feature that the sandbox needs."""
