"""`spo doctor`: whether this machine can run spo-jax, what is missing, and how to get it."""

import importlib.metadata
import importlib.util
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spo_jax import __version__
from spo_jax.cache import cache_folder
from spo_jax.errors import SpoError
from spo_jax.limits import address_space, needed

if TYPE_CHECKING:
    from rich.console import Console

# Import name, distribution, extra, what for.
EXTRAS = (
    ("elkai", "elkai", "solvers", "reference costs by LKH"),
    ("pyvrp", "pyvrp", "solvers", "reference costs by PyVRP"),
    ("ortools", "ortools", "solvers", "a baseline solver"),
    ("alns", "alns", "bench", "another LNS library to compare with"),
    ("ray", "ray", "ray", "evaluation on a cluster (--evaluator ray)"),
    ("tensorboard", "tensorboard", "tensorboard", "tracking of runs (--track tensorboard)"),
    ("wandb", "wandb", "wandb", "tracking of runs (--track wandb)"),
    ("mlflow", "mlflow-skinny", "mlflow", "tracking of runs (--track mlflow)"),
)
REQUIRED = ("numpy", "matplotlib", "rich", "chex")

# What to do about a layer that does not hold.
REMEDIES = {
    "seccomp": "needs Linux on x86-64 or arm64 with seccomp filters; in a container, allow them "
    "(docker run --security-opt seccomp=unconfined); spo runs without it only with "
    "--unsafe-sandbox",
    "landlock": "needs Linux 5.13 or newer with Landlock among the active security modules "
    "(kernel parameter lsm=landlock,...); the other layers stand without it",
    "namespaces": "optional: allow unprivileged user namespaces "
    "(sysctl kernel.unprivileged_userns_clone=1, or user.max_user_namespaces above 0)",
    "no_new_privs": "needs Linux 3.5 or newer",
    "zeroed_arrays": "needs CPython and a NumPy from 2.0 on with its own memory handler; "
    "spo runs without it only with --unsafe-sandbox",
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

    name: str
    ok: bool | None
    text: str
    remedy: str = ""


def examine() -> dict[str, list[Finding]]:
    """The findings of each section. Raises nothing."""
    return {"sandbox": sandbox(), "machine": machine(), "packages": packages()}


def healthy(findings: Iterable[Finding]) -> bool:
    """Whether `spo discover` can run: nothing required is missing."""
    return all(finding.ok is not False for finding in findings)


def sandbox() -> list[Finding]:
    """The layers that hold, measured by building a sandbox."""
    from spo_jax.envs.problems import get_problem, known_problems
    from spo_jax.envs.run.local import LocalEvaluator
    from spo_jax.envs.run.sandbox.process.confine import LAYERS, REQUIRED

    try:
        any_problem = get_problem(next(iter(known_problems())))
        with LocalEvaluator(any_problem, workers=1, unsafe=True) as evaluator:
            layers = evaluator.layers
    except (SpoError, OSError) as error:
        return [Finding("process", False, str(error), "programs cannot run here: see the message")]
    found = []
    for name in dict.fromkeys((*LAYERS, *layers)):
        text = LAYERS.get(name, "")
        if layers.get(name):
            found.append(Finding(name, True, text))
        else:
            ok = False if name in REQUIRED else None
            found.append(Finding(name, ok, text, REMEDIES.get(name, "")))
    return found


def machine() -> list[Finding]:
    python = sys.version_info >= (3, 11)
    remedy = "" if python else "install Python 3.11 or newer"
    cores = f"{len(os.sched_getaffinity(0))} usable of {os.cpu_count()}"
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    return [
        Finding("spo-jax", True, __version__),
        Finding("python", python, platform.python_version(), remedy),
        _jax(),
        Finding("cores", True, cores),
        Finding("system", True, system),
        _address_space(),
        _cache(),
        *_kits(),
    ]


def _kits() -> list[Finding]:
    """Whether the kits' functions are compiled, in one line."""
    from spo_jax.envs.kits import load_kit
    from spo_jax.envs.problems import get_problem, known_problems

    native: dict[bool, list[str]] = {True: [], False: []}
    for name in known_problems():
        try:
            kit = load_kit(get_problem(name))
        except SpoError as error:
            return [Finding("kit", False, str(error), "mend or uninstall the package it is in")]
        if kit is not None and kit.native is not None:
            native[kit.native].append(name)
    if not any(native.values()):
        return []
    if not native[False]:
        return [Finding("kit", True, f"compiled ({', '.join(native[True])})")]
    remedy = "install a C compiler and the headers of Python, then install spo-jax anew"
    names = ", ".join(native[False])
    return [Finding("kit", None, f"in Python, a hundred times slower ({names})", remedy)]


def _address_space() -> Finding:
    limit, due = address_space(), needed()
    text = "no limit" if limit is None else f"limited to {limit} MiB (ulimit -v)"
    if limit is None or limit >= due:
        return Finding("memory", True, text)
    return Finding("memory", False, text, f"about {due} MiB are needed: ulimit -v unlimited")


def _jax() -> Finding:
    remedy = "pip install --upgrade jax (accelerators: https://docs.jax.dev, Installation)"
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _JAX], capture_output=True, text=True, timeout=120
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("jax", False, f"does not answer: {error}", remedy)
    lines = done.stdout.strip().splitlines()
    words = lines[-1].split("\t") if lines else []
    if done.returncode != 0 or len(words) != 5:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return Finding("jax", False, f"does not work: {last}", remedy)
    version, jaxlib, where, count, kind = words
    return Finding("jax", True, f"{version} (jaxlib {jaxlib}), {count} {where} device(s): {kind}")


def _cache() -> Finding:
    folder = cache_folder()
    existing = next((each for each in (folder, *folder.parents) if each.exists()), folder)
    if existing.is_dir() and os.access(existing, os.W_OK):
        return Finding("cache", True, f"{folder} (kept between runs; $SPO_CACHE moves it)")
    remedy = "set SPO_CACHE to a folder that can be written"
    return Finding("cache", None, f"{folder} cannot be written", remedy)


def packages() -> list[Finding]:
    found = []
    for name in REQUIRED:
        version = _version(name)
        remedy = "" if version else "pip install --upgrade spo-jax"
        found.append(Finding(name, version is not None, version or "not installed", remedy))
    for module, name, extra, purpose in EXTRAS:
        version = _version(name)
        if version and importlib.util.find_spec(module):
            found.append(Finding(name, True, f"{version}: {purpose}"))
        else:
            broken = "installed, but cannot be imported" if version else "not installed"
            remedy = f"pip install 'spo-jax[{extra}]'"
            found.append(Finding(name, None, f"{broken}: {purpose}", remedy))
    return found


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def show_findings(sections: Mapping[str, Sequence[Finding]], out: "Console") -> bool:
    """Print findings by section, with a tick, a cross or (where it does no harm) a dash.

    Returns whether `spo discover` can run.
    """
    marks = {True: "✓", False: "✗", None: "-"}
    for section, findings in sections.items():
        out.print(section)
        for finding in findings:
            line = f"  {marks[finding.ok]} {finding.name:<15} {finding.text}"
            if finding.remedy:
                line += f"\n      {finding.remedy}"
            out.print(line, soft_wrap=True)
    ready = all(map(healthy, sections.values()))
    out.print("ready: spo discover tsp" if ready else "not ready: fix what is marked ✗")
    return ready
