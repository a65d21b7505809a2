"""The budgets of an experiment (smoke, small, study, paper) and the groups of its instances.

The groups are the columns of the paper's Table 1. What Appendix B leaves open is chosen here:
kroA100 belongs to TSPLIB 50-100 and kroA200 to 100-200; where a budget has fewer files than there
are, it takes files spread evenly over the group in the order of their sizes.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spo_jax.errors import InputError

INSTANCE_SEED = 2026  # of all uniform test instances, as in docs/research/methods_tsp.md
PROBLEMS = ("tsp", "cvrp")
BENCH = Path(__file__).parent.parent / "configs" / "learning.toml"


@dataclass(frozen=True)
class Group:
    """One column of the tables.

    key: its name in files, as "uniform-50", "tsplib-50-100" or "cvrplib-A". label: its heading;
    block: the heading over it and its neighbours. specs: as of `spo evaluate --on`. total: files
    that exist. missing: why specs is empty.
    """

    key: str
    label: str
    block: str
    specs: tuple[str, ...] = ()
    total: int = 0
    missing: str = ""

    @property
    def heading(self) -> str:
        return f"{self.block.split()[0]} {self.label}"


@dataclass(frozen=True)
class Budget:
    """What an experiment may spend.

    presets: of `spo discover`, by problem, names or files; settings: those above the preset's.
    discovery_seeds: independent runs of every discovery method, of seeds first_seed, +1, ...
    uniform: by problem, instances of each size. files: most files of a benchmark group; largest:
        nodes or customers of its largest file; None for no limit.
    evaluation_seeds: rollouts of an instance; steps: LNS iterations of a rollout. patience: CPU
        limit of an evaluation rollout over the problem's own, more above 500 nodes.
    solver_seconds: of OR-Tools, None for the paper's limits. effort: of the reference solvers.
    """

    name: str
    presets: Mapping[str, str]
    uniform: Mapping[str, Mapping[int, int]]
    discovery_seeds: int = 1
    first_seed: int = 0
    files: int | None = None
    largest: int | None = None
    evaluation_seeds: int = 3
    steps: int = 500
    patience: float = 10.0
    solver_seconds: float | None = None
    effort: str = "standard"
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def seeds(self) -> range:
        """Of the discovery runs of a method."""
        return range(self.first_seed, self.first_seed + self.discovery_seeds)

    def groups(self, problem: str, data: str | Path | None = None) -> list[Group]:
        """The columns of a problem in the paper's order. data: folder of tsplib/ and cvrplib/."""
        if problem not in PROBLEMS:
            raise InputError(f"{problem} has no columns: use {' or '.join(PROBLEMS)}")
        return [*self.uniform_groups(problem), *self.benchmark_groups(problem, data)]

    def uniform_groups(self, problem: str) -> list[Group]:
        what = {"tsp": "nodes", "cvrp": "customers"}[problem]
        return [
            Group(
                f"uniform-{size}",
                str(size),
                f"Uniform instances (number of {what} n)",
                (f"uniform:{size}x{count}@{INSTANCE_SEED}",),
                count,
            )
            for size, count in self.uniform[problem].items()
        ]

    def benchmark_groups(self, problem: str, data: str | Path | None = None) -> list[Group]:
        """The TSPLIB or CVRPLIB columns, without specs where their files are not there."""
        folder = data_folder(data)
        if problem == "tsp":
            block = "TSPLIB (instance-size range)"
            found, why = _files(folder, "tsplib", ".tsp")
            return [
                self._taken(
                    Group(f"tsplib-{key}", label, block, (), missing=why),
                    [(n, path) for n, path in found if low <= n <= high],
                )
                for key, label, low, high in TSPLIB_RANGES
            ]
        block, groups = "CVRPLIB (instance family)", []
        for family in CVRPLIB_FAMILIES:
            found, why = _files(folder, f"cvrplib/{family}", ".vrp")
            group = Group(f"cvrplib-{family}", family, block, (), missing=why)
            groups.append(self._taken(group, found))
        return groups

    def _taken(self, group: Group, found: list[tuple[int, Path]]) -> Group:
        """The group with the files that the budget has room for."""
        if not found:
            return replace(group, missing=group.missing or "no file of that size")
        room = [path for n, path in found if self.largest is None or n <= self.largest]
        if not room:
            why = f"all {len(found)} files are larger than {self.largest}"
            return replace(group, total=len(found), missing=why)
        if self.files is not None and len(room) > self.files:
            last, most = len(room) - 1, max(1, self.files - 1)
            room = [room[round(k * last / most)] for k in range(self.files)]
        return replace(group, specs=tuple(map(str, room)), total=len(found))

    def summary(self, problem: str) -> str:
        """The budget in one sentence, for captions."""
        own = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        return (
            f"Budget {self.name}: preset {Path(self.presets[problem]).stem}"
            f"{f' ({own})' if own else ''}; "
            f"discovery runs per method: {self.discovery_seeds}"
            f"{f' from seed {self.first_seed}' if self.first_seed else ''}; rollouts per instance: "
            f"{self.evaluation_seeds}, {self.steps} steps."
        )


# TSPLIB's columns of Table 1: key, label, smallest and largest number of nodes.
TSPLIB_RANGES = (
    ("50-100", "50–100", 50, 100),
    ("100-200", "100–200", 101, 200),
    ("200-", ">200", 201, 10**9),
)
CVRPLIB_FAMILIES = ("A", "B", "P", "X")
_SIZES = {"tsp": (50, 100, 200, 500), "cvrp": (50, 100, 150, 200)}


def _each(count: int, largest: int) -> dict[str, dict[int, int]]:
    """`count` instances of every size, `largest` of the largest size."""
    return {
        problem: {size: largest if size == sizes[-1] else count for size in sizes}
        for problem, sizes in _SIZES.items()
    }


BUDGETS = {
    # Everything once, to see that it runs; its numbers mean nothing.
    "smoke": Budget(
        "smoke",
        presets={"tsp": "smoke", "cvrp": "smoke"},
        settings={
            "generator": "grammar",
            "update": "none",
            "size": 20,
            "steps": 20,
            "validation_size": 20,
        },
        uniform=_each(2, 1),
        files=2,
        largest=300,
        evaluation_seeds=2,
        steps=20,
        solver_seconds=0.2,
        effort="quick",
    ),
    # What two cores do in two hours with the model that ships: less of `standard` a discovery.
    "small": Budget(
        "small",
        presets={"tsp": "standard", "cvrp": "standard"},
        settings={"rounds": 3, "finalists": 8},
        uniform=_each(16, 8),
        files=8,
        largest=500,
        evaluation_seeds=2,
        patience=3.0,
    ),
    # Eight runs of each method on the bench of the learning studies, so that the table can tell
    # methods from runs.
    "study": Budget(
        "study",
        presets=dict.fromkeys(PROBLEMS, str(BENCH)),
        uniform=_each(8, 4),
        discovery_seeds=8,
        files=4,
        largest=500,
        evaluation_seeds=2,
        patience=3.0,
    ),
    # The paper's numbers, where it gives them (Section 5, Appendices A.3, B and C): six runs are
    # those of Figure 2 (a1). It does not say how many evaluation seeds there were.
    "paper": Budget(
        "paper",
        presets={"tsp": "paper-tsp", "cvrp": "paper-cvrp"},
        uniform=_each(32, 32),
        discovery_seeds=6,
        effort="paper",
    ),
}


def data_folder(data: str | Path | None = None) -> Path | None:
    """The folder of benchmark instances: `data`, else $SPO_DATA, else None. Raises InputError."""
    named = data or os.environ.get("SPO_DATA")
    if named and not Path(named).is_dir():
        raise InputError(f"{named} is no folder; it should hold tsplib/ and cvrplib/")
    return Path(named) if named else None


def _files(folder: Path | None, part: str, suffix: str) -> tuple[list[tuple[int, Path]], str]:
    """(size, path) of a folder's instances by size and name, and why there are none, or ""."""
    if folder is None:
        return [], "no files: set SPO_DATA, or give --data, a folder with tsplib/ and cvrplib/"
    paths = sorted((folder / part).glob(f"*{suffix}"))
    return sorted((_size(path), path) for path in paths), (
        "" if paths else f"no files: {folder / part} holds none"
    )


def _size(path: Path) -> int:
    """The DIMENSION line of an instance file; 0 without one: the error comes when it is read."""
    found = re.search(r"^DIMENSION\s*:\s*(\d+)", path.read_text("utf-8", "replace"), re.M | re.I)
    return int(found[1]) if found else 0
