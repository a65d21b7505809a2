"""The shipped pairs against our ALNS, OR-Tools, PyVRP, VROOM and LKH: gaps by group for equal time.

    SPO_DATA=FOLDER python experiments/bench/solvers.py --seconds 1 10 --count 4 --seeds 3
    python experiments/bench/solvers.py --groups tsp-100 cvrp-100 --seconds 1 10 60 --workers 2

Each group and time is one `spo compare`, whose folder lies in --out with all solutions, tables and
curves; a comparison that is there is not made again, so several commands with groups of their own
may share --out, and one more prints the whole table. Uniform instances are those of seed 2026;
where no reference ships, gaps are to the best found. `cvrp-limits` are CVRPs of 100 customers whose
routes may be as long as 2.2 times the way to the farthest customer. Of CVRPLIB, `A-B-P` spreads
--count files over the sizes of the three sets, `X-1`, `X-2` and `X-3` over the thirds of X. Four
groups are files of names that are given below, in folders of FOLDER: those of the CMT and Golden
sets with limits on routes (cvrplib/CMT, cvrplib/Golden), and Solomon's and Homberger's of 100 and
1,000 customers with time windows (vrptw), as text.

Needs the extras solvers and bench (VROOM is in the latter) and a quiet machine.
Seconds are wall-clock time on cores that the method has for itself. With --workers W each method
has W cores: ours searches on all of them, the others, which use one thread, run once on each with
other seeds, and the best counts (OR-Tools and VROOM draw nothing and run once).
"""

import argparse
import importlib.util
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

import numpy as np

from spo_jax import compare
from spo_jax.envs.files.textfiles import write_atomically
from spo_jax.envs.problem import Instance
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.intervals import mean_interval
from spo_jax.errors import InputError

SEED = 2026
LONGEST_ROUTE = 2.2  # times the distance of the farthest customer from the depot
VROOM = "vroom_solver:vroom"
LKH_NODES = 1000  # beyond, LKH cannot be stopped in reasonable time
PAIR = "pair"
Item = TypeVar("Item")


def uniform(problem: str, size: int, count: int) -> list[str]:
    return [f"uniform:{size}x{count}@{SEED}"]


def limited(size: int, count: int) -> list[Instance]:
    """CVRPs whose routes have a longest length."""
    found = []
    for each in get_problem("cvrp").sample(size, count, SEED):
        limits = {
            "max_distance": LONGEST_ROUTE * float(each.dist[0].max()),
            "max_duration": float("inf"),
            "max_vehicles": len(each.dist),
            "service": (0.0,) * len(each.dist),
        }
        found.append(replace(each, name=f"{each.name}-limit", extra=limits, reference=None))
    return found


def files(sets: Sequence[str], third: int | None, count: int) -> list[str]:
    """Files of CVRPLIB's sets, spread over the sizes of all or of a third. Raises InputError."""
    folder = Path(os.environ.get("SPO_DATA", ".")) / "cvrplib"
    found = [path for each in sets for path in folder.glob(f"{each}/{each}-*.vrp")]
    found.sort(key=lambda path: (int(path.stem.split("-")[1][1:]), path.stem))
    if third is not None:
        found = found[third * len(found) // 3 : (third + 1) * len(found) // 3]
    if len(found) < count:
        raise InputError(f"{folder} has {len(found)} instances of a group: set SPO_DATA")
    return list(map(str, spread(found, count)))


def spread(items: Sequence[Item], count: int) -> list[Item]:
    return [items[(2 * k + 1) * len(items) // (2 * count)] for k in range(count)]


def named(folder: str, names: Sequence[str], count: int) -> list[str]:
    """Files of these names, spread over them. Raises InputError where one is missing."""
    home = Path(os.environ.get("SPO_DATA", ".")) / folder
    paths = [home / name for name in spread(names, count)]
    missing = [str(path) for path in paths if not path.is_file()]
    if missing:
        raise InputError(f"there is no {', '.join(missing)}: set SPO_DATA")
    return [str(path) for path in paths]


CMT = [f"CMT{k}.vrp" for k in (6, 7, 8, 9, 10, 13, 14)]
GOLDEN = [f"Golden_{k}.vrp" for k in range(1, 9)]
SOLOMON = [
    f"{kind}{k:02}.txt"
    for kind, most in (("C1", 9), ("C2", 8), ("R1", 12), ("R2", 11), ("RC1", 8), ("RC2", 8))
    for k in range(1, most + 1)
]
HOMBERGER = [
    f"{kind}_10_{k}.txt" for kind in ("C1", "C2", "R1", "R2", "RC1", "RC2") for k in range(1, 11)
]

Group = Callable[[int], Sequence[str | Instance]]
GROUPS: dict[str, tuple[str, Group]] = {
    **{f"tsp-{n}": ("tsp", partial(uniform, "tsp", n)) for n in (100, 200, 500, 1000, 2000, 5000)},
    **{f"cvrp-{n}": ("cvrp", partial(uniform, "cvrp", n)) for n in (100, 200, 500, 1000)},
    "cvrp-limits": ("cvrp", partial(limited, 100)),
    "A-B-P": ("cvrp", partial(files, "ABP", None)),
    **{f"X-{k + 1}": ("cvrp", partial(files, "X", k)) for k in range(3)},
    "CMT": ("cvrp", partial(named, "cvrplib/CMT", CMT)),
    "Golden": ("cvrp", partial(named, "cvrplib/Golden", GOLDEN)),
    **{f"vrptw-{n}": ("vrptw", partial(uniform, "vrptw", n)) for n in (25, 100, 200, 1000)},
    "Solomon": ("vrptw", partial(named, "vrptw", SOLOMON)),
    "Homberger": ("vrptw", partial(named, "vrptw", HOMBERGER)),
}


def against(group: str) -> list[str]:
    """What a group is compared with."""
    problem, size = GROUPS[group][0], group.rpartition("-")[2]
    if problem == "tsp":
        return ["alns", "or-tools", *(["lkh"] if int(size) <= LKH_NODES else [])]
    vroom = [VROOM] if importlib.util.find_spec("vroom") else []
    return ["alns", "or-tools", "pyvrp", *vroom]


def measured(group: str, seconds: float, args: argparse.Namespace) -> dict[str, Any]:
    """The record of a comparison, from its folder if it is there. Raises KeyboardInterrupt."""
    out = Path(args.out) / f"{group}-{seconds:g}s-{args.workers}w-{args.count}x{args.seeds}"
    record = out / "table.json"
    if not record.exists() or json.loads(record.read_text())["stopped"]:
        problem, instances = GROUPS[group]
        found = compare(
            instances(args.count), problem=problem, against=against(group), seconds=seconds,
            seeds=args.seeds, workers=args.workers, out=out,
        )  # fmt: skip
        if found.stop is not None:
            raise found.stop
    known: dict[str, Any] = json.loads(record.read_text())
    return known


def table(records: Sequence[tuple[str, float, dict[str, Any]]]) -> str:
    """A row for each group and time: the mean gap of each method, with the seconds of its longest
    call where it took more than it was given, and by how much the pair is behind the best other.
    """
    found = {each["method"]: None for *_, record in records for each in record["summary"]}
    methods = [PAIR, *sorted(each for each in found if each != PAIR)]
    shown = [each.rpartition(":")[2] for each in methods]
    head = ["gap %", "s", *shown, f"{PAIR} behind by (95% interval)"]
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    for group, seconds, record in records:
        gaps = {each["method"]: each["gap"] for each in record["summary"]}
        known = {name: gap for name, gap in gaps.items() if gap is not None}
        cells = []
        for method in methods:
            text = f"{known[method]:.2f}" if method in known else "-" if method in gaps else ""
            if method in known and round(known[method], 2) == round(min(known.values()), 2):
                text = f"**{text}**"
            took = max((each["seconds"] or 0 for each in of_method(record, method)), default=0)
            cells.append(text + (f" ({took:.0f} s)" if took > 1.05 * seconds + 0.5 else ""))
        lines.append(f"| {group} | {seconds:g} | {' | '.join(cells)} | {behind(record, known)} |")
    return "\n".join(lines)


def of_method(record: dict[str, Any], method: str) -> list[dict[str, Any]]:
    """The calls of a method."""
    return [each for each in record["attempts"] if each["method"] == method]


def behind(record: dict[str, Any], gaps: dict[str, float]) -> str:
    """The pair's mean gap over that of the method with the least among the others.

    With the interval of the differences of the instances, of each the mean over seeds.
    """
    others = [name for name in gaps if name != PAIR]
    if PAIR not in gaps or not others:
        return ""
    by_instance = []
    for method in (PAIR, min(others, key=gaps.__getitem__)):
        own: dict[str, list[float]] = {}
        for each in of_method(record, method):
            if each["gap"] is not None:
                own.setdefault(each["instance"], []).append(each["gap"])
        by_instance.append({name: fmean(several) for name, several in own.items()})
    ours, theirs = by_instance
    apart = [ours[name] - theirs[name] for name in ours if name in theirs]
    if len(apart) < 2:
        return "".join(f"{each:.2f}" for each in apart)
    low, high = mean_interval(np.array(apart))
    return f"{fmean(apart):.2f} ({low:.2f} to {high:.2f})"


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
