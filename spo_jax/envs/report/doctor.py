"""`spo doctor`: whether this machine can run spo-jax, what is missing, and how to get it."""

import importlib.metadata
import importlib.util
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from spo_jax import __version__
from spo_jax.envs.report.evaluation import cache_folder
from spo_jax.errors import SpoError
from spo_jax.limits import address_space, needed

# Import name, distribution, extra, what for.
EXTRAS = (
    ("elkai", "elkai", "solvers", "reference costs by LKH"),
    ("pyvrp", "pyvrp", "solvers", "reference costs by PyVRP"),
    ("ortools", "ortools", "solvers", "a baseline solver"),
    ("alns", "alns", "bench", "another LNS library to compare with"),
)
REQUIRED = ("numpy", "matplotlib", "vrplib", "rich", "chex")

# What to do about a layer that does not hold.
REMEDIES = {
    "seccomp": "needs Linux on x86-64 or arm64 with seccomp filters; in a container, allow them "
    "(docker run --security-opt seccomp=unconfined); spo runs without only if told "
    "--unsafe-sandbox",
    "landlock": "needs Linux 5.13 or newer with Landlock among the active security modules "
    "(kernel parameter lsm=landlock,...); the other layers stand without it",
    "namespaces": "optional: allow unprivileged user namespaces "
    "(sysctl kernel.unprivileged_userns_clone=1, or user.max_user_namespaces above 0)",
    "no_new_privs": "needs Linux 3.5 or newer",
    "zeroed_arrays": "needs CPython and a NumPy from 2.0 on with its own memory handler; "
    "spo runs without only if told --unsafe-sandbox",
    "fixed_addresses": "needs the right to switch address randomisation off (personality)",
}

# In a process of its own: a broken installation may abort instead of raising.
_JAX = (
    "import jax, jaxlib; d = jax.devices(); "
    "print(jax.__version__, jaxlib.__version__, d[0].platform, len(d), d[0].device_kind, sep='\\t')"
)


@dataclass(frozen=True)
class Finding:
    """One line of the report. ok: None where a missing thing does no harm. remedy: what to do."""

    section: str
    name: str
    ok: bool | None
    text: str
    remedy: str = ""


def examine() -> tuple[Finding, ...]:
    """Everything worth knowing, nothing raised."""
    return (*sandbox(), *machine(), *packages())


def healthy(findings: tuple[Finding, ...]) -> bool:
    """Whether `spo discover` can run: nothing required is missing."""
    return not any(finding.ok is False for finding in findings)


def sandbox() -> tuple[Finding, ...]:
    """The layers that hold, found by building a sandbox."""
    from spo_jax.envs.problems import get_problem, known_problems
    from spo_jax.envs.run.local import LocalEvaluator
    from spo_jax.envs.run.sandbox.confine import LAYERS, REQUIRED

    try:
        any_problem = get_problem(next(iter(known_problems())))
        with LocalEvaluator(any_problem, workers=1, unsafe=True) as evaluator:
            layers = evaluator.layers
    except (SpoError, OSError) as error:
        remedy = "programs cannot be run here: see the message"
        return (Finding("sandbox", "process", False, str(error), remedy),)
    return tuple(
        Finding(
            "sandbox",
            name,
            True if layers.get(name) else False if name in REQUIRED else None,
            LAYERS.get(name, ""),
            "" if layers.get(name) else REMEDIES.get(name, ""),
        )
        for name in dict.fromkeys((*LAYERS, *layers))
    )


def machine() -> tuple[Finding, ...]:
    cores = len(os.sched_getaffinity(0))
    python = sys.version_info >= (3, 11)
    remedy = "" if python else "install Python 3.11 or newer"
    folder = cache_folder()
    return (
        Finding("machine", "spo-jax", True, __version__),
        Finding("machine", "python", python, platform.python_version(), remedy),
        _jax(),
        Finding("machine", "cores", True, f"{cores} usable of {os.cpu_count()}"),
        Finding(
            "machine",
            "system",
            True,
            f"{platform.system()} {platform.release()} {platform.machine()}",
        ),
        _address_space(),
        _cache(folder),
    )


def _address_space() -> Finding:
    limit, due = address_space(), needed()
    text = "no limit" if limit is None else f"limited to {limit} MiB (ulimit -v)"
    remedy = f"about {due} MiB are needed: ulimit -v unlimited"
    enough = limit is None or limit >= due
    return Finding("machine", "memory", enough, text, "" if enough else remedy)


def _jax() -> Finding:
    remedy = "pip install --upgrade jax (accelerators: https://docs.jax.dev, Installation)"
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _JAX], capture_output=True, text=True, timeout=120
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("machine", "jax", False, f"does not answer: {error}", remedy)
    lines = done.stdout.strip().splitlines()
    words = lines[-1].split("\t") if lines else []
    if done.returncode != 0 or len(words) != 5:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return Finding("machine", "jax", False, f"does not work: {last}", remedy)
    version, jaxlib, where, count, kind = words
    text = f"{version} (jaxlib {jaxlib}), {count} {where} device(s): {kind}"
    return Finding("machine", "jax", True, text)


def _cache(folder: Path) -> Finding:
    existing = next((each for each in (folder, *folder.parents) if each.exists()), folder)
    if existing.is_dir() and os.access(existing, os.W_OK):
        return Finding(
            "machine", "cache", True, f"{folder} (kept between runs; $SPO_CACHE moves it)"
        )
    remedy = "set SPO_CACHE to a folder that can be written"
    return Finding("machine", "cache", None, f"{folder} cannot be written", remedy)


def packages() -> tuple[Finding, ...]:
    found = [
        Finding(
            "packages",
            name,
            version is not None,
            version or "not installed",
            "" if version else "pip install --upgrade spo-jax",
        )
        for name in REQUIRED
        for version in [_version(name)]
    ]
    for module, name, extra, purpose in EXTRAS:
        version = _version(name)
        broken = _broken(module) if version else ""
        if version and not broken:
            found.append(Finding("packages", name, True, f"{version}: {purpose}"))
        else:
            text = f"{broken or 'not installed'}: {purpose}"
            remedy = f"pip install 'spo-jax[{extra}]'"
            found.append(Finding("packages", name, None, text, remedy))
    return tuple(found)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _broken(module: str) -> str:
    """Why an installed package cannot be used, or an empty text."""
    if importlib.util.find_spec(module) is None:
        return "installed, but cannot be imported"
    return ""
