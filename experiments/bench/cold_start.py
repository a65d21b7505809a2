"""The first run on a fresh machine: its seconds, and what XLA compiles in it, by function.

    python experiments/bench/cold_start.py             # spo discover tsp --preset smoke
    python experiments/bench/cold_start.py --quick     # and spo discover tsp --preset quick

Each run is a fresh process with an empty cache folder. CPU seconds are user time of the run with
its workers; other work on the machine lengthens the wall time more than them. Targets on two cores
that also have other work: smoke within 40 s and quick within 4 minutes of wall time.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

RUNS = {"smoke": ["tsp", "--preset", "smoke"], "quick": ["tsp", "--preset", "quick"]}
STEPS = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
LEAST = 0.5  # seconds of a function that has a line of its own


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="also tsp --preset quick")
    parser.add_argument("--inside", metavar="FILE", help=argparse.SUPPRESS)
    options, rest = parser.parse_known_args()
    if options.inside:
        sys.exit(inside(Path(options.inside), rest))
    for name in RUNS if options.quick else ["smoke"]:
        run(name, rest)


def run(name: str, more: list[str]) -> None:
    """One cold run in a process of its own. more: options of `spo discover`."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder, "compiled.json")
        line = [sys.executable, __file__, "--inside", str(found), "discover", *RUNS[name]]
        line += ["--out", str(Path(folder, "run")), *more]
        known = {k: v for k, v in os.environ.items() if not k.startswith("JAX_COMPILATION")}
        before, began = user_seconds(), time.perf_counter()
        subprocess.run(line, env={**known, "SPO_CACHE": folder}, check=True)
        wall, cpu = time.perf_counter() - began, user_seconds() - before
        report(name, wall, cpu, json.loads(found.read_text()))


def user_seconds() -> float:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def report(name: str, wall: float, cpu: float, found: dict[str, Any]) -> None:
    compiled: dict[str, dict[str, list[float]]] = found["compiled"]
    totals = {step: sum(sum(each[step]) for each in compiled.values()) for step in STEPS.values()}
    count = sum(len(each["compile"]) for each in compiled.values())
    print(f"{name}: {wall:.0f} s of wall time, {cpu:.0f} s of user CPU time, of which")
    print(f"  {found['user']:.0f} s in the process that compiles")
    lowering, xla = totals["lower"], totals["compile"]
    print(f"  {count} compilations: {lowering:.1f} s lowering, {xla:.1f} s XLA")
    print(f"  {'function':32s} {'number':>6s} {'trace':>7s} {'lower':>7s} {'XLA':>7s}  each")
    lines = sorted(compiled.items(), key=lambda item: -sum(item[1]["compile"]))
    for function, each in lines:
        if sum(each["compile"]) >= LEAST:
            seconds = " ".join(f"{sum(each[step]):7.1f}" for step in STEPS.values())
            single = ", ".join(f"{one:.1f}" for one in each["compile"])
            print(f"  {function:32s} {len(each['compile']):6d} {seconds}  {single}")
    print(flush=True)


def inside(out: Path, line: list[str]) -> int:
    """`spo` with this command line, and the seconds that each function took to compile."""
    import jax

    from spo_jax.cli import main as spo

    compiled: dict[str, dict[str, list[float]]] = defaultdict(
        lambda: {step: [] for step in STEPS.values()}
    )

    def heard(event: str, duration_secs: float, **more: str | int) -> None:
        if event in STEPS:
            name = str(more.get("fun_name", "")).removeprefix("jit(").removesuffix(")")
            compiled[name.strip("_")][STEPS[event]].append(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(heard)
    began = time.perf_counter()
    code = spo(line)
    wall = time.perf_counter() - began
    user = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    out.write_text(json.dumps({"wall": wall, "user": user, "compiled": compiled}))
    return code


if __name__ == "__main__":
    main()
