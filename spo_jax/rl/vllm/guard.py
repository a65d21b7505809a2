"""Runs a server as `guard.py OWNER COMMAND...`, and ends all its processes when the owner ends.

A killed process cannot clean up, so the guard does. It is a separate file that imports only the
standard library, so it starts fast and has no threads, and can prepare a child between fork and
exec. It ends on SIGTERM, on the death of its parent OWNER, or with the server. After its end no
process of the server is left, and the card is free.
"""

import ctypes
import glob
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

TICK = 0.1  # seconds between two checks
GRACE = 30.0  # seconds for a server to end by itself
GONE = 30.0  # seconds for its killed processes to release a card
PR_SET_PDEATHSIG = 1


def main(owner: int, command: list[str]) -> int:
    """The server's exit code, or 0 after a requested end."""
    asked = []
    signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number))
    for other in (signal.SIGINT, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)
    prctl = ctypes.CDLL(None).prctl

    def prepare() -> None:
        for other in (signal.SIGINT, signal.SIGHUP):
            signal.signal(other, signal.SIG_DFL)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # in case the guard itself is killed

    server = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, process_group=0, preexec_fn=prepare
    )
    while server.poll() is None and not asked and os.getppid() == owner:
        time.sleep(TICK)
    code = server.poll()
    if code is None:
        server.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.wait(GRACE)
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)  # and its remaining processes
    server.wait()
    until = time.monotonic() + GONE
    while lives(server.pid) and time.monotonic() < until:
        time.sleep(TICK)
    return 0 if code is None else code


def lives(group: int) -> bool:
    """Whether a thread of a process group runs; zombies hold no resources."""
    for path in glob.iglob("/proc/[0-9]*/task/[0-9]*/stat"):
        try:
            with open(path, errors="replace") as file:
                state, _, found, *_ = file.read().rpartition(")")[2].split()
        except (OSError, ValueError):  # it has just ended
            continue
        if int(found) == group and state not in "ZX":
            return True
    return False


if __name__ == "__main__":
    code = main(int(sys.argv[1]), sys.argv[2:])
    sys.exit(128 - code if code < 0 else code)
