"""Time and memory of `spo solve` on instances of 10,000 nodes.

    python experiments/bench/large.py
    python experiments/bench/large.py --sizes 5000 10000 --time 10 --workers 2

Places are random, whole numbers below 10,000. Of each command it prints the wall-clock time over
the time that it was given, and the highest memory of all its processes together, in which pages
that several share count once (PSS). Targets at 10,000 nodes, ten seconds and two workers on an idle
machine: at most 1.2 times the time and 1.5 GB.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


def instance(problem: str, size: int, folder: Path) -> Path:
    """A file with `size` random nodes, or customers and a depot."""
    rng = np.random.default_rng(size)
    count = size + (problem == "cvrp")
    places = rng.integers(0, 10_000, (count, 2)).tolist()
    head = [f"TYPE : {problem.upper()}", f"DIMENSION : {count}", "EDGE_WEIGHT_TYPE : EUC_2D"]
    rows = [f"{k} {x} {y}" for k, (x, y) in enumerate(places, 1)]
    more: list[str] = []
    if problem == "cvrp":
        head.append("CAPACITY : 30")
        demands = [0, *rng.integers(1, 4, size).tolist()]
        more = ["DEMAND_SECTION", *(f"{k} {d}" for k, d in enumerate(demands, 1))]
        more += ["DEPOT_SECTION", "1", "-1"]
    path = folder / f"{problem}{size}.{'vrp' if problem == 'cvrp' else 'tsp'}"
    path.write_text("\n".join([*head, "NODE_COORD_SECTION", *rows, *more, "EOF"]) + "\n")
    return path


def measured(path: Path, seconds: float, workers: int) -> tuple[float, int, str]:
    """Wall-clock seconds and the peak of memory in bytes of solving it, and its line on steps."""
    command = [sys.executable, "-m", "spo_jax", "solve", path.name, "--force"]
    command += ["--time", str(seconds), "--workers", str(workers)]
    began, peak = time.monotonic(), 0
    with subprocess.Popen(command, cwd=path.parent, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            peak = max(peak, sum(map(proportional, tree(process.pid))))
            time.sleep(0.05)
        wall = time.monotonic() - began
        assert process.stdout is not None
        lines = process.stdout.read().splitlines()
    if process.returncode:
        raise SystemExit(process.returncode)
    return wall, peak, lines[1]


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        for child in children:
            found += tree(int(child))
    return found


def proportional(pid: int) -> int:
    """Bytes of a process, pages that several share divided by how many do."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000])
    parser.add_argument("--time", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for problem in ("tsp", "cvrp"):
            for size in args.sizes:
                path = instance(problem, size, Path(folder))
                wall, peak, steps = measured(path, args.time, args.workers)
                print(
                    f"{path.name}: {wall / args.time:.2f} of the time, {peak / 1e9:.2f} GB; {steps}"
                )


if __name__ == "__main__":
    main()
