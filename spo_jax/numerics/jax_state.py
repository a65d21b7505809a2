"""Whether this process may compute with JAX. Importing this module does not load it."""

import os
import sys

_forked = False


def jax_ready() -> bool:
    """Whether JAX is loaded, and this process is not a fork of one that may have used it.

    Small results that NumPy gives with the same bits need not wait a second for JAX to load; and in
    a forked process the threads of JAX are missing, so that a call would never end. Frameworks that
    fork score programs in such processes.
    """
    return "jax" in sys.modules and not _forked


def _after_fork() -> None:
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_after_fork)
