"""Start a zygote: `python launch.py CONTROL,JOBS,JOB,STORE SYS_PATH_JSON`.

A separate script: it turns address randomisation off by executing the interpreter again, before
it imports anything else.
"""

import ctypes
import json
import os
import sys
from collections.abc import Iterable
from importlib import machinery

ADDR_NO_RANDOMIZE = 0x0040000
LOADERS: tuple[tuple[type, list[str]], ...] = (
    (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
    (machinery.SourceFileLoader, machinery.SOURCE_SUFFIXES),
    (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
)


class _Everything:
    """A listing that has every name."""

    def __contains__(self, name: str) -> bool:
        return True


class Finder(machinery.FileFinder):
    """Looks for a module's files in a folder, which it does not list.

    A listing takes memory. It would move all later objects when a folder on the path gets a file,
    and addresses are to be the same in workers that start before and after that.
    """

    def _fill_cache(self) -> None:
        self._path_cache = self._relaxed_path_cache = _Everything()


def fix_addresses() -> bool:
    """Execute this script again without address randomisation; True if it is already off."""
    personality = ctypes.CDLL(None).personality
    current = personality(ctypes.c_ulong(0xFFFFFFFF))
    if current < 0 or current & ADDR_NO_RANDOMIZE:
        return current >= 0
    if personality(ctypes.c_ulong(current | ADDR_NO_RANDOMIZE)) < 0:
        return False
    os.execv(sys.executable, sys.orig_argv)


def set_path(path: Iterable[str]) -> None:
    """Import from `path`, its zip files as before, its folders with a `Finder`."""
    sys.path[:] = path
    sys.path_hooks[1:] = [Finder.path_hook(*LOADERS)]
    sys.path_importer_cache.clear()


if __name__ == "__main__":
    fixed = fix_addresses()
    descriptors, path = sys.argv[1:]
    set_path(json.loads(path))
    from spo_jax.envs.run.sandbox.process.zygote import Ends, main

    main(Ends(*map(int, descriptors.split(","))), fixed)
