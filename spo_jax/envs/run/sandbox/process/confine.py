"""The kernel's restrictions, set with ctypes and no other library.

The zygote confines itself once, as far as it still can fork (`confine_zygote`): its children
inherit fixed addresses, empty user and network namespaces, no_new_privs and a Landlock ruleset
that denies everything. A child that has taken a job (`confine_job`) adds its own session, resource
limits, closed descriptors and a seccomp allow-list that still permits to read the job and to fork.
The process that is about to run a program (`confine_task`) drops these permissions, too.
"""

import contextlib
import ctypes
import fcntl
import mmap
import os
import platform
import resource
import signal
import struct
import sys

_libc = ctypes.CDLL(None, use_errno=True)

# The fixed descriptors of a child: the pipe for reports, the job, the instances.
RESULT_FD, JOB_FD, STORE_FD = 3, 4, 5
MOST_FDS = 1 << 16  # above any that a child inherits
STACK = 8 << 20  # bytes, whatever the shell of the user allows: how deep a program can nest calls
EXIT_SECCOMP = 99  # the exit code of a process that the kernel refuses its filter

_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2
_PR_SET_DUMPABLE = 4
_CLONE_NEWUSER, _CLONE_NEWNET, _CLONE_NEWIPC = 0x10000000, 0x40000000, 0x08000000

# The purpose of each layer, for `spo doctor` and the manifest.
LAYERS = {
    "seccomp": "a system-call allow-list: no open, exec, fork, socket or kill",
    "landlock": "no file can be opened, whatever the call",
    "namespaces": "empty user and network namespaces",
    "no_new_privs": "no privilege can be gained",
    "fixed_addresses": "object addresses do not vary between runs",
    "zeroed_arrays": "memory that NumPy hands out unwritten reads as zeros",
}
REQUIRED = ("seccomp", "zeroed_arrays")  # no program runs without these


def _syscall(number: int, *arguments: object) -> int:
    return _libc.syscall(ctypes.c_long(number), *arguments)


def _prctl(option: int, *arguments: int) -> bool:
    padded = [ctypes.c_ulong(a) for a in (*arguments, 0, 0, 0, 0)[:4]]
    return _libc.prctl(option, *padded) == 0


# --- the zygote's layers --------------------------------------------------------------------------


def confine_zygote() -> dict[str, bool]:
    """Drop all that a process needs not to fork; returns which layers hold."""
    _prctl(_PR_SET_DUMPABLE, 0)
    return {
        "namespaces": _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET | _CLONE_NEWIPC) == 0,
        "no_new_privs": _prctl(_PR_SET_NO_NEW_PRIVS, 1),
        "landlock": _landlock_deny_all(),
    }


def _landlock_deny_all() -> bool:
    create, restrict = 444, 446
    abi = _syscall(create, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    if abi < 1:
        return False
    files = (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(abi, 16)) - 1
    network = 0b11 if abi >= 4 else 0
    scoped = 0b11 if abi >= 6 else 0  # abstract sockets, signals to processes outside
    attributes = struct.pack("<QQQ", files, network, scoped)[
        : 8 if abi < 4 else 16 if abi < 6 else 24
    ]
    ruleset = _syscall(create, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    if ruleset < 0:
        return False
    try:
        return _syscall(restrict, ctypes.c_int(ruleset), ctypes.c_uint32(0)) == 0
    finally:
        os.close(ruleset)


# --- the child's layers ---------------------------------------------------------------------------

# name: (x86-64, arm64) numbers; None if the architecture has no such call.
_ALWAYS = {
    "munmap": (11, 215),
    "brk": (12, 214),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "futex": (202, 98),
    "rt_sigreturn": (15, 139),
    "rt_sigprocmask": (14, 135),
    "sched_yield": (24, 124),
    "clock_gettime": (228, 113),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "rseq": (334, 293),
}
# The additional calls of a child that reads its job and forks; none can open a file.
_FOR_JOBS = {
    "read": (0, 63),
    "close": (3, 57),
    "lseek": (8, 62),
    "rt_sigaction": (13, 134),
    "pread64": (17, 67),
    "wait4": (61, 260),
    "getppid": (110, 173),
    "prctl": (157, 167),
    "setrlimit": (160, 164),
    "set_robust_list": (273, 99),
    "prlimit64": (302, 261),
    "getrandom": (318, 278),
    "close_range": (436, 436),
}
_CLONE = (56, 220)
_NO_FORK = 0x7E030100  # flags of clone: threads, shared memory, new namespaces
_WRITE, _MMAP, _MPROTECT, _SETITIMER = (1, 64), (9, 222), (10, 226), (38, 103)
_READ = _FOR_JOBS["read"]
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

_LD, _JEQ, _JSET, _JGE, _RET = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM = 1
_PROT_EXEC = 4
_ITIMER_PROF = 2


def seccomp_filter(*, forks: bool = False, asks: bool = False) -> bytes | None:
    """The BPF program: a short allow-list, `write` to one descriptor only; None if unsupported.

    forks: for a child that still must read its job and fork; it never runs a program. asks: `read`
    from that same descriptor too, for a search that takes orders.
    """
    if platform.machine() not in _ARCHITECTURES or sys.byteorder != "little":
        return None
    column, audit = _ARCHITECTURES[platform.machine()]

    def op(code: int, jump_true: int, jump_false: int, value: int) -> bytes:
        return struct.pack("<HBBI", code, jump_true, jump_false, value)

    def argument(number: int, half: int) -> bytes:
        return op(_LD, 0, 0, 16 + 8 * number + 4 * half)

    allow, refuse = op(_RET, 0, 0, _ALLOW), op(_RET, 0, 0, _ERRNO | _EPERM)
    program = [
        op(_LD, 0, 0, 4),  # architecture
        op(_JEQ, 1, 0, audit),
        op(_RET, 0, 0, _KILL),
        op(_LD, 0, 0, 0),  # system call
        op(_JGE, 0, 1, 0x40000000),  # the x32 interface has other numbers
        op(_RET, 0, 0, _KILL),
    ]
    for numbers in (_ALWAYS | (_FOR_JOBS if forks else {})).values():
        program += [op(_JEQ, 0, 1, numbers[column]), allow]
    without = [(_MMAP, 2, _PROT_EXEC), (_MPROTECT, 2, _PROT_EXEC)]
    for numbers, place, flags in without + ([(_CLONE, 0, _NO_FORK)] if forks else []):
        program += [
            op(_JEQ, 0, 4, numbers[column]),
            argument(place, 0),
            op(_JSET, 1, 0, flags),
            allow,
            refuse,
        ]
    only = [(_WRITE, RESULT_FD), (_SETITIMER, _ITIMER_PROF)]
    for numbers, value in only + ([(_READ, RESULT_FD)] if asks else []):
        program += [
            op(_JEQ, 0, 6, numbers[column]),
            argument(0, 1),
            op(_JEQ, 0, 3, 0),
            argument(0, 0),
            op(_JEQ, 0, 1, value),
            allow,
            refuse,
        ]
    program.append(refuse)
    return b"".join(program)


def try_seccomp(program: bytes) -> bool:
    """Load a BPF program irrevocably; returns whether the kernel accepted it."""

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_void_p))

    buffer = ctypes.create_string_buffer(program, len(program))
    header = Filter(len(program) // 8, ctypes.addressof(buffer))
    return _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(header))


def address_space() -> int:
    """The bytes that this process maps, to the page, without reading a file.

    The smallest limit that permits one more page, minus that page.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    page = mmap.PAGESIZE
    low, high = 0, 1 << 30
    if hard != resource.RLIM_INFINITY:
        high = min(high, hard // page)
    while high - low > 1:
        middle = (low + high) // 2
        resource.setrlimit(resource.RLIMIT_AS, (middle * page, hard))
        try:
            mmap.mmap(-1, page, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
            high = middle
        except (OSError, MemoryError):
            low = middle
    free_address_space()
    return (high - 1) * page


def free_address_space() -> None:
    """Raise the limit on address space to its hard limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


class _Heap(ctypes.Structure):
    """What the C library tells of its heap: mallinfo2."""

    _fields_ = (
        ("others", ctypes.c_size_t * 8),
        ("free", ctypes.c_size_t),
        ("top", ctypes.c_size_t),
    )


if hasattr(_libc, "mallinfo2"):  # from glibc 2.33 on
    _libc.mallinfo2.restype = _Heap


def _free_heap() -> int:
    """The bytes that were freed and are still mapped, as far as the C library tells."""
    return _libc.mallinfo2().free if hasattr(_libc, "mallinfo2") else 0


def _set_limits(limits: dict[int, int | tuple[int, int]]) -> None:
    for limit, value in limits.items():
        with contextlib.suppress(ValueError, OSError):  # a lower hard limit may stay
            resource.setrlimit(limit, value if isinstance(value, tuple) else (value, value))


def die_with_parent(parent: int) -> None:
    """Make the kernel kill this process when its parent `parent` ends or has ended."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parent ends, and so see their CPU time."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def confine_job(
    result: int, job: int, store: int, address_space: int, seccomp: bytes | None
) -> None:
    """The layers of a child that has taken a job. From here on it holds three descriptors.

    address_space: total bytes while programs are checked. Exits with EXIT_SECCOMP if the kernel
    refuses the filter that it accepted at start.
    """
    # First to where no two of them meet: a parent of many workers gives any numbers.
    spares = [fcntl.fcntl(fd, fcntl.F_DUPFD, STORE_FD + 1) for fd in (result, job, store)]
    for spare, place in zip(spares, (RESULT_FD, JOB_FD, STORE_FD), strict=True):
        os.dup2(spare, place)
    os.closerange(0, RESULT_FD)
    os.closerange(STORE_FD + 1, MOST_FDS)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    _set_limits(
        {
            resource.RLIMIT_AS: (address_space, hard),
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_FSIZE: 0,
            resource.RLIMIT_MEMLOCK: 0,
            resource.RLIMIT_MSGQUEUE: 0,
        }
    )
    if seccomp is not None and not try_seccomp(seccomp):
        os._exit(EXIT_SECCOMP)


def confine_task(
    memory: int, cpu_seconds: int, seccomp: bytes | None, *, shared: bool = False
) -> None:
    """The layers of a process that is about to run a program. It keeps only `RESULT_FD`.

    memory: bytes on top of what it maps now. shared: whether several tasks run here. Then what is
    free of it counts, too, as it hangs on their instances: no task has more here than alone.
    cpu_seconds: the last resort if the timer fails; its
    signal comes a second before SIGKILL, so a SIGKILL is always from outside. Exits with
    EXIT_SECCOMP if the kernel refuses the filter.
    """
    os.close(JOB_FD)
    os.close(STORE_FD)
    space = address_space() - (min(_free_heap(), memory) if shared else 0)
    _set_limits(
        {
            resource.RLIMIT_AS: space + memory,
            resource.RLIMIT_STACK: STACK,
            resource.RLIMIT_CPU: (cpu_seconds, cpu_seconds + 1),
            resource.RLIMIT_NPROC: 0,
        }
    )
    if seccomp is not None and not try_seccomp(seccomp):
        os._exit(EXIT_SECCOMP)
