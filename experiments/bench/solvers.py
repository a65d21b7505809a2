"""The shipped pairs against our ALNS, OR-Tools, PyVRP and LKH: gaps by group for equal time.

    SPO_DATA=FOLDER python experiments/bench/solvers.py --seconds 10 --count 2 --workers 2
    python experiments/bench/solvers.py --groups tsp-100 cvrp-100 --seconds 1 10 60

Each group and time is one `spo compare`, whose folder lies in --out with all solutions, tables and
curves; a comparison that is there is not made again. Uniform instances are those of seed 2026, of
which references ship up to 500 nodes and 200 customers; beyond, gaps are to the best found. X is
CVRPLIB's, --count of it spread over the sizes. Needs the solvers extra, and a quiet machine.

With --workers W each method has W cores: ours searches on all of them, the others, which use one
thread, run once on each with other seeds, and the best counts (OR-Tools draws nothing and runs
once).
"""

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spo_jax import compare
from spo_jax.envs.files.textfiles import write_atomically
from spo_jax.errors import InputError

SEED = 2026
SIZES = {"tsp": (100, 200, 500, 1000), "cvrp": (100, 200, 500)}
AGAINST = {"tsp": ("alns", "or-tools", "lkh"), "cvrp": ("alns", "or-tools", "pyvrp")}
GROUPS = (*(f"{problem}-{size}" for problem, sizes in SIZES.items() for size in sizes), "X")


def instances(group: str, count: int) -> tuple[str, list[str]]:
    """The problem of a group and what `compare` reads. Raises InputError."""
    if group != "X":
        problem, _, size = group.partition("-")
        return problem, [f"uniform:{size}x{count}@{SEED}"]
    folder = Path(os.environ.get("SPO_DATA", ".")) / "cvrplib" / "X"
    files = sorted(folder.glob("X-*.vrp"))
    if len(files) < count:
        raise InputError(f"{folder} has {len(files)} instances: set SPO_DATA")
    by_size = sorted(files, key=lambda path: int(path.stem.split("-")[1][1:]))
    return "cvrp", [str(by_size[(2 * k + 1) * len(files) // (2 * count)]) for k in range(count)]


def measured(group: str, seconds: float, args: argparse.Namespace) -> dict[str, Any]:
    """The record of a comparison, from its folder if it is there. Raises KeyboardInterrupt."""
    out = Path(args.out) / f"{group}-{seconds:g}s-{args.workers}w-{args.count}x{args.seeds}"
    record = out / "table.json"
    if not record.exists() or json.loads(record.read_text())["stopped"]:
        problem, on = instances(group, args.count)
        found = compare(
            on, problem=problem, against=AGAINST[problem], seconds=seconds, seeds=args.seeds,
            workers=args.workers, out=out,
        )  # fmt: skip
        if found.stop is not None:
            raise found.stop
    known: dict[str, Any] = json.loads(record.read_text())
    return known


def table(records: Sequence[tuple[str, float, dict[str, Any]]]) -> str:
    """A row for each group and time: mean gap of each method, and what its longest took."""
    methods = ["pair", *dict.fromkeys(each for names in AGAINST.values() for each in names)]
    lines = [f"| gap % | s | {' | '.join(methods)} |", f"|---|---:|{'---:|' * len(methods)}"]
    for group, seconds, record in records:
        summary = {each["method"]: each for each in record["summary"]}
        cells = []
        for method in methods:
            gap = summary.get(method, {}).get("gap")
            gap_text = "-" if gap is None else f"{gap:.2f}"
            over = max(
                (each["seconds"] or 0 for each in record["attempts"] if each["method"] == method),
                default=0,
            )
            cells.append(gap_text + (f" ({over:.0f} s)" if over > 1.05 * seconds + 0.5 else ""))
        lines.append(f"| {group} | {seconds:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--groups", nargs="+", default=GROUPS, choices=GROUPS)
    parser.add_argument("--seconds", nargs="+", type=float, default=[10.0])
    parser.add_argument("--count", type=int, default=2, help="instances of each group")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", default="runs/solvers")
    args = parser.parse_args()
    records = []
    for seconds in args.seconds:
        for group in args.groups:
            records.append((group, seconds, measured(group, seconds, args)))
            print(f"{group}, {seconds:g} s: done", flush=True)
    text = table(records)
    write_atomically(Path(args.out) / "table.md", text + "\n")
    print(f"\n{args.count} instance(s) of each group, {args.workers} core(s)\n\n{text}")


if __name__ == "__main__":
    main()
