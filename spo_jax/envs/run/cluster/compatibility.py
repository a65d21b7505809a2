"""What a machine must have in common with another for programs to give the same bits on both."""

import hashlib
import math
import os
import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

import spo_jax
from spo_jax.envs.run.sandbox.process.confine import REQUIRED

# What a result depends on, and how a difference is described.
WHAT = {
    "spo_jax": "spo-jax {}",
    "code": "other code of spo-jax (digest {})",
    "python": "Python {}",
    "numpy": "NumPy {}",
    "arithmetic": "arithmetic with other last bits (digest {})",
}


@cache
def fingerprint() -> Mapping[str, str]:
    """Of this machine: versions, a digest of the package's source, and one of some arithmetic."""
    return {
        "spo_jax": spo_jax.__version__,
        "code": code_digest(Path(spo_jax.__file__).parent),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "arithmetic": arithmetic(),
    }


def difference(theirs: Mapping[str, str], ours: Mapping[str, str]) -> str:
    """Why results there may differ from those here, as a clause; "" where they do not."""
    for name, words in WHAT.items():
        if theirs.get(name) != ours[name]:
            there, here = (words.format(each) for each in (theirs.get(name), ours[name]))
            return f"it has {there}, and the machine of the run has {here}"
    return ""


def missing(layers: Mapping[str, bool]) -> str:
    """The required layers of the sandbox that do not hold, as a clause; "" where all do."""
    names = [name for name in REQUIRED if not layers.get(name)]
    return f"it offers no {' and no '.join(names)}" if names else ""


def code_digest(package: Path) -> str:
    """Of the sources that programs are run by."""
    found = hashlib.blake2b(digest_size=8)
    patterns = ("*.py", "envs/**/*.py", "envs/**/*.[ch]", "program/**/*.py")
    for path in sorted(each for pattern in patterns for each in package.glob(pattern)):
        name = path.relative_to(package).as_posix().encode()
        body = path.read_bytes()
        found.update(b"%d %s %d " % (len(name), name, len(body)) + body)
    return found.hexdigest()


def arithmetic() -> str:
    """A digest of what sums, products and functions give on this CPU.

    NumPy and the C library choose their code by the CPU, and then the last bits can differ.
    """
    line = np.linspace(0.1, 9.7, 1013)
    square = np.outer(line[:23], np.sqrt(line[-23:]))
    functions = (np.exp, np.log, np.sin, np.tanh, np.sqrt, np.cbrt, np.log1p)
    arrays = [function(line) for function in functions]
    arrays += [line**1.7, square @ square, np.array([line.sum(), line.mean(), line.std()])]
    arrays += [line @ line[::-1], np.cumsum(line), np.linalg.norm(square, axis=0)]
    plain = (math.exp, math.log, math.sin, math.tan, math.sqrt)
    numbers = [function(value) for function in plain for value in line[:97].tolist()]
    found = hashlib.blake2b(np.array(numbers).tobytes(), digest_size=8)
    for array in arrays:
        found.update(np.ascontiguousarray(array, np.float64).tobytes())
    return found.hexdigest()


def cpu_name() -> str:
    """The model of this machine's CPU, for the record."""
    try:
        for row in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if row.startswith("model name"):
                return row.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def usable(path: list[str]) -> bool:
    """Whether all places of an import path are on this machine."""
    return all(map(os.path.exists, path))
