"""The errors a user can cause or mend.

The command line prints a `SpoError` as one sentence and exits with code 2; anything else is a bug
and keeps its traceback. Each class also inherits the standard one, so callers need not know ours.
"""

LONGEST_REASON = 300  # characters


class SpoError(Exception):
    """Something the user can mend; the message says what, where and how."""


class InputError(SpoError, ValueError):
    """A file, option or argument is missing, malformed or out of range."""


class Rejection(SpoError, ValueError):
    """A program was refused before it ran; `reason` is one short clause.

    It may quote the program, whose names can be as long as it is, so it is cut.
    """

    def __init__(self, reason: str):
        self.reason = reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]}..."
        super().__init__(self.reason)


class MissingExtra(SpoError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str):
        super().__init__(f"{package} is not installed: pip install 'spo-jax[{extra}]'")


class SandboxUnavailable(SpoError, RuntimeError):
    """The kernel does not offer what the sandbox needs."""
