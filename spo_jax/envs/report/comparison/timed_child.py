"""One timed call of a solver: `python timed_child.py CONNECTION PARENT SYS_PATH_JSON`.

A script: it takes over the parent's import path before it imports anything of ours. The connection
brings a `Call`, then takes ("found", second, solution) for each solution that the solver reports,
and at last ("done", seconds, CPU seconds, solution) or ("failed", status, reason, seconds). The
clock starts when the solver's modules have been imported.
"""

import json
import os
import sys

REAPED = 1.0  # seconds in which processes of the solver's, which have been killed, must have ended


def main(descriptor: int, parent: int) -> None:
    import importlib
    import time
    from contextlib import suppress
    from multiprocessing.connection import Connection

    from spo_jax.envs.report.baselines import why_failed
    from spo_jax.envs.report.comparison.timed import INVALID, unread
    from spo_jax.envs.run.sandbox.process.confine import adopt_orphans, die_with_parent
    from spo_jax.errors import SpoError
    from spo_jax.registry import imported

    die_with_parent(parent)
    adopt_orphans()
    connection = Connection(descriptor)
    call = connection.recv()
    os.sched_setaffinity(0, call.cores)
    solve, options = call.solve, dict(call.options)
    if isinstance(solve, str):
        solve = imported("baseline", solve, "")
    for needed in call.modules:
        with suppress(ImportError):  # the solver says so in its own words
            importlib.import_module(needed)
    before, began = _spent(), time.monotonic()

    def passed() -> float:
        return time.monotonic() - began

    if call.reports:
        options["report"] = lambda solution: connection.send(("found", passed(), solution))
    try:
        solution = solve(call.instance, call.seed, **options)
    except SpoError as error:
        connection.send(("failed", "failed", str(error), passed()))
    except Exception as error:
        status, reason = why_failed(error)
        connection.send(("failed", status.label, reason, passed()))
    else:
        seconds = passed()
        _reap(time.monotonic() + REAPED)
        try:
            connection.send(("done", seconds, _spent() - before, solution))
        except Exception as error:  # nothing is sent before all of it is pickled
            connection.send(("failed", INVALID, unread(error), seconds))
    connection.close()


def _spent() -> float:
    """CPU seconds of this process and of all descendants that have been waited for."""
    import resource

    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(each.ru_utime + each.ru_stime for each in map(resource.getrusage, whose))


def _reap(end: float) -> None:
    """Wait for what the solver has started and left, at most until `end`."""
    import time

    try:
        while time.monotonic() < end:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.01)
    except ChildProcessError:  # there is none left
        return


if __name__ == "__main__":
    connection, parent, path = sys.argv[1:]
    sys.path[:] = json.loads(path)
    main(int(connection), int(parent))
