"""The cores that a process may use, and whether the limit on its address space suffices.

Under too low a limit (`ulimit -v`) libraries abort in many ways without a message of ours:
std::bad_alloc, a segment that cannot be mapped, a thread that cannot start. So check it before
importing them. This module is cheap to import.
"""

import os
import resource

from spo_jax.errors import InputError

MIB = 2**20

# MiB, and MiB per usable core, whose threads reserve stacks and arenas. Measured on two cores:
# NumPy alone needs between 500 and 700, XLA between 1,400 and 1,600 (2,000 with a model); a large
# model needs more.
WITHOUT_XLA = (600, 75)
WITH_XLA = (1500, 250)
MAX_WORKERS = 1024
WORKER = 200  # MiB of a sandbox worker's interpreter, without the program's memory


def usable_cores() -> int:
    """The CPUs this process may use."""
    return min(len(os.sched_getaffinity(0)), MAX_WORKERS)


def address_space() -> int | None:
    """The limit on this process's address space in MiB, None without one."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft // MIB


def needed(each: tuple[int, int] = WITH_XLA, program: int = 0) -> int:
    """MiB of address space. each: as above. program: MiB that a sandboxed program may map."""
    fixed, per_core = each
    return max(fixed + per_core * len(os.sched_getaffinity(0)), WORKER + program)


def require_address_space(amount: int) -> None:
    """Raises InputError if the limit is below `amount` MiB."""
    limit = address_space()
    if limit is not None and limit < amount:
        raise InputError(
            f"this shell limits address space to {limit} MiB, and this command needs about "
            f"{amount} MiB: raise it with ulimit -v, or ulimit -v unlimited"
        )
