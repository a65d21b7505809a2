"""The errors a user can cause or mend.

The command line prints a `SpoError` as one sentence and exits with code 2; anything else is a bug
and keeps its traceback. Each class also inherits the standard one, so callers need not know ours.
"""


class SpoError(Exception):
    """Something the user can mend; the message says what, where and how."""


class InputError(SpoError, ValueError):
    """A file, option or argument is missing, malformed or out of range."""


class Rejection(SpoError, ValueError):
    """A program was refused before it ran; `reason` is one short clause."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


class MissingExtra(SpoError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str):
        super().__init__(f"{package} is not installed: pip install 'spo-jax[{extra}]'")


class SandboxUnavailable(SpoError, RuntimeError):
    """The kernel does not offer what the sandbox needs."""
