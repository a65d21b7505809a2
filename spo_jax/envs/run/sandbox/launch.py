"""Start a zygote: `python launch.py CONTROL,JOBS,JOB,BOARD PROBLEM SYS_PATH_JSON`.

A separate script: it turns address randomisation off by executing the interpreter again, before
it imports anything else.
"""

import ctypes
import json
import os
import sys

ADDR_NO_RANDOMIZE = 0x0040000


def fix_addresses() -> bool:
    """Execute this script again without address randomisation; True if it is already off."""
    personality = ctypes.CDLL(None).personality
    current = personality(ctypes.c_ulong(0xFFFFFFFF))
    if current < 0 or current & ADDR_NO_RANDOMIZE:
        return current >= 0
    if personality(ctypes.c_ulong(current | ADDR_NO_RANDOMIZE)) < 0:
        return False
    os.execv(sys.executable, sys.orig_argv)


if __name__ == "__main__":
    fixed = fix_addresses()
    descriptors, problem, path = sys.argv[1:]
    sys.path[:] = json.loads(path)
    from spo_jax.envs.run.sandbox.zygote import Ends, main

    main(Ends(*map(int, descriptors.split(","))), problem, fixed)
