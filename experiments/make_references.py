"""The reference values that ship in the packages of the problems.

    python experiments/make_references.py                        # all sets, hours
    python experiments/make_references.py --sets tsp:100 cvrp:50 --effort paper
    python experiments/make_references.py --sets tsp:presets cvrp:presets

Standard test sets are uniform:SIZEx32@2026; `presets` has the training and validation instances of
the presets at their own seed, so that a first discovery tells true gaps where no solver is.

Each instance's solution is kept in the cache as it is found, so that a run that was stopped goes
on, and a set is written when it is complete. A value that is in the file already stays unless the
new one is lower, proven, or was made with at least the same effort. One process.
"""

import argparse
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from common import cli
from spo_jax.cache import cache_folder
from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.reference_files import Row, read_references, write_references
from spo_jax.envs.report.references import EFFORTS, solved
from spo_jax.errors import InputError
from spo_jax.presets import PRESETS, problem_of, settings
from spo_jax.search.instances import training_instances, validation_instances

SEED, COUNT = 2026, 32
_NAME = re.compile(r"uniform-([0-9]+)-([0-9]+)@([0-9]+)")
OF_PRESETS = "presets"
SETS = ["tsp:50", "tsp:100", "tsp:200", "tsp:500", "cvrp:50", "cvrp:100", "cvrp:150", "cvrp:200"]
SETS += [f"tsp:{OF_PRESETS}", f"cvrp:{OF_PRESETS}"]


def instances_of(name: str) -> tuple[Problem, list[Instance]]:
    """The problem and the instances of the set "PROBLEM:SIZE" or "PROBLEM:presets".

    Raises InputError.
    """
    problem, _, size = name.partition(":")
    if problem not in ("tsp", "cvrp") or not (size.isdigit() or size == OF_PRESETS):
        raise InputError(f"{name!r} is no set: use PROBLEM:SIZE, e.g. {SETS[0]}, or {SETS[-1]}")
    found = get_problem(problem)
    if size != OF_PRESETS:
        return found, found.sample(int(size), COUNT, SEED)
    configs = [
        settings(problem, preset, generator="grammar")
        for preset in PRESETS
        if problem_of(preset) in (None, problem)
    ]
    seen = [
        instance
        for config in configs
        for instance in (*training_instances(config, found), *validation_instances(config, found))
    ]
    return found, list({instance.digest: instance for instance in seen}.values())


def better(new: Row, old: Row | None) -> Row:
    """The row to keep of one instance's two."""
    if old is None or new.cost != old.cost:
        return new if old is None or new.cost < old.cost else old
    if new.certified != old.certified:
        return new if new.certified else old
    efforts = ["", *EFFORTS]
    return new if efforts.index(new.effort) >= efforts.index(old.effort) else old


def read_own(path: Path) -> Sequence[Row]:
    """The rows of a file that is added to. Raises InputError unless this script has made them."""
    rows = read_references(path).rows if path.exists() else ()
    for row in rows:
        if not (row.digest and _NAME.fullmatch(row.name) and row.effort in ("", *EFFORTS)):
            raise InputError(
                f"{row.where}: this row is not of the standard test sets; give --out another file"
            )
    return rows


def merged(rows: Sequence[Row], made: Sequence[Row]) -> list[Row]:
    """Rows with those `made`: by problem, size and number, each instance once."""
    kept = {row.digest: row for row in rows}
    for row in made:
        kept[row.digest] = better(row, kept.get(row.digest))

    def order(row: Row) -> tuple[bool, bool, int, int, int]:
        size, number, seed = map(int, _NAME.fullmatch(row.name).groups())  # type: ignore[union-attr]
        return row.problem != "tsp", seed != SEED, size, seed, number

    return sorted(kept.values(), key=order)


def make(name: str, effort: str, cache: Path) -> list[Row]:
    """The rows of one set; prints each."""
    rows = []
    problem, instances = instances_of(name)
    for instance in instances:
        start = time.process_time()
        found = solved(problem, instance, effort, cache)
        assert found.reference is not None
        rows.append(
            Row(
                instance.problem, instance.name, instance.digest, found.reference, found.certified,
                effort, found.reference_source,
            )
        )  # fmt: skip
        print(
            f"{instance.problem} {instance.name}: {found.reference:.6f}, {found.reference_source} "
            f"({time.process_time() - start:.1f} CPU s)",
            flush=True,
        )
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    parser = cli.plain_parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS, metavar="PROBLEM:SIZE")
    parser.add_argument("--effort", choices=EFFORTS, default="standard")
    parser.add_argument("--out", type=Path, help="instead of those that ship")
    parser.add_argument("--cache", type=Path, default=cache_folder())
    return cli.main(parser, run, argv)


def run(args: argparse.Namespace) -> None:
    """Make set after set; what is complete is written."""
    files = {}
    for name in args.sets:  # for the complaints, before hours of work
        problem, _ = instances_of(name)
        files[name] = args.out or Path(problem.references)
        read_own(files[name])
    for name, out in files.items():
        made = make(name, args.effort, args.cache)
        write_references(out, merged(read_own(out), made))
        print(f"{out}: {name} is complete", flush=True)


if __name__ == "__main__":
    sys.exit(main())
