"""The errors that a user can cause or fix.

The command line prints a `SpoError` as one sentence and exits with code 2; any other exception is a
bug and keeps its traceback. Each class also inherits from a standard exception.
"""

LONGEST_REASON = 300  # characters


class SpoError(Exception):
    """An error that the user can fix; the message says what is wrong, where, and what to do."""


class InputError(SpoError, ValueError):
    """A file, option or argument is missing, malformed or out of range."""


class Rejection(SpoError, ValueError):
    """A program was refused before it ran; `reason` is one short clause.

    It may quote a name of any length from the program, so it is truncated to `LONGEST_REASON`.
    """

    def __init__(self, reason: str):
        self.reason = reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]}..."
        super().__init__(self.reason)


class MissingExtra(SpoError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str):
        super().__init__(f"{package} is not installed: pip install 'spo-jax[{extra}]'")


class SandboxUnavailable(SpoError, RuntimeError):
    """The kernel lacks a feature that the sandbox needs."""
