"""How much an experiment may do: smoke, small or paper; and the groups of instances it is told on.

A budget says what discovery costs (a preset of `spo discover` and what is set besides), from how
many seeds it is repeated, and what a pair is then evaluated on: how many instances of each uniform
size, which benchmark files, how many rollouts of how many steps. Every experiment takes the same
three, and with the same --out they share what has been discovered and evaluated.

The groups are the columns of the paper's Table 1. What Appendix B leaves open is chosen here:
TSPLIB is grouped by low <= n <= 100 and low < n <= high otherwise, so kroA100 is among 50-100 and
kroA200 among 100-200; where a budget has fewer files than there are, it takes files spread evenly
over the group in the order of their sizes. Files come from --data, or from $SPO_DATA.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spo_jax.errors import InputError

INSTANCE_SEED = 2026  # of all uniform test instances, as in docs/results.md
PROBLEMS = ("tsp", "cvrp")


@dataclass(frozen=True)
class Group:
    """One column of the tables.

    key: its name in files, as "uniform-50", "tsplib-50-100" or "cvrplib-A". label: its heading;
    block: the heading above its neighbours', too. specs: what `spo evaluate --on` would be given.
    total: instances there are for it (files found; for uniform ones, as many as are used).
    missing: why specs is empty, in words, or "".
    """

    key: str
    label: str
    block: str
    specs: tuple[str, ...]
    total: int = 0
    missing: str = ""


@dataclass(frozen=True)
class Budget:
    """What an experiment may spend.

    presets, settings: by problem, the preset of `spo discover` and what is set besides (names of
        `Settings`). discovery_seeds: independent runs of every discovery method, seeds 0, 1, ...
    uniform: by problem, instances of each size of the paper's columns. files: most files of a
        benchmark group, None for all; largest: nodes or customers of the largest, None for any.
    evaluation_seeds: rollouts of an instance; steps: LNS iterations of a rollout. patience: CPU
        limit of an evaluation rollout over the problem's own (10 s TSP, 30 s CVRP for 500 steps),
        more above 500 nodes. solver_seconds: of OR-Tools, None for the paper's table of limits.
    effort: of the solvers of references, where none of that effort ship.
    """

    name: str
    presets: Mapping[str, str]
    uniform: Mapping[str, Mapping[int, int]]
    discovery_seeds: int = 1
    files: int | None = None
    largest: int | None = None
    evaluation_seeds: int = 3
    steps: int = 500
    patience: float = 10.0
    solver_seconds: float | None = None
    effort: str = "standard"
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def groups(self, problem: str, data: str | Path | None = None) -> list[Group]:
        """The columns of a problem, in the paper's order. data: folder of tsplib/ and cvrplib/.

        Raises InputError for another problem than the paper's.
        """
        if problem not in PROBLEMS:
            raise InputError(
                f"{problem} has no columns: experiments are of {' and '.join(PROBLEMS)}"
            )
        return [*self.uniform_groups(problem), *self.benchmark_groups(problem, data)]

    def uniform_groups(self, problem: str) -> list[Group]:
        """The uniform columns; Appendix B.1 and B.2 say how their instances are sampled."""
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

    def told(self, problem: str) -> str:
        """The budget in one sentence, for captions."""
        own = ", ".join(f"{name} {value}" for name, value in self._own(problem).items())
        seeds = _count(self.discovery_seeds, "discovery run")
        solver = self.solver_seconds
        limit = (
            f" OR-Tools has {solver:g} s, not the paper's." if solver and problem == "cvrp" else ""
        )
        return (
            f"Budget {self.name}: preset {self.presets[problem]}{f' ({own})' if own else ''}, "
            f"{seeds} a method; {_count(self.evaluation_seeds, 'evaluation seed')}, "
            f"{self.steps} steps, with {self.patience:g} times the problem's CPU limit, more above "
            f"500 nodes.{limit}"
        )

    def _own(self, problem: str) -> Mapping[str, Any]:
        return self.settings.get(problem, {})

    def given(self, problem: str) -> dict[str, Any]:
        """Settings of `spo discover` above the preset's."""
        return dict(self._own(problem))


def find_group(key: str, groups: Sequence[Group]) -> Group:
    """The group of this key. Raises InputError for another."""
    found = {each.key: each for each in groups}
    if key not in found:
        raise InputError(f"--group {key}: use one of {', '.join(found)}")
    return found[key]


# TSPLIB's columns of Table 1: key, label, smallest and largest number of nodes.
TSPLIB_RANGES = (
    ("50-100", "50–100", 50, 100),
    ("100-200", "100–200", 101, 200),
    ("200-", ">200", 201, 10**9),
)
CVRPLIB_FAMILIES = ("A", "B", "P", "X")
_SIZES = {"tsp": (50, 100, 200, 500), "cvrp": (50, 100, 150, 200)}


def _each(count: int, **fewer: int) -> dict[str, dict[int, int]]:
    """So many instances of every size; fewer: of the largest size of a problem."""
    return {
        problem: {size: fewer.get(problem, count) if size == sizes[-1] else count for size in sizes}
        for problem, sizes in _SIZES.items()
    }


_GRAMMAR = {"generator": "grammar", "update": "none"}

BUDGETS = {
    # Everything once, to see that it runs; its numbers mean nothing.
    "smoke": Budget(
        "smoke",
        presets={"tsp": "smoke", "cvrp": "smoke"},
        settings={
            problem: {**_GRAMMAR, "size": 20, "steps": 20, "validation_size": 20}
            for problem in PROBLEMS
        },
        uniform=_each(2, tsp=1, cvrp=1),
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
        settings={problem: {"rounds": 3, "finalists": 8} for problem in PROBLEMS},
        uniform=_each(16, tsp=8, cvrp=8),
        files=8,
        largest=500,
        evaluation_seeds=2,
        patience=3.0,
    ),
    # The paper's numbers, where it gives them (Section 5, Appendices A.3, B and C): six runs are
    # those of Figure 2 (a1). It does not say how many evaluation seeds there were.
    "paper": Budget(
        "paper",
        presets={"tsp": "paper-tsp", "cvrp": "paper-cvrp"},
        uniform=_each(32),
        discovery_seeds=6,
        effort="paper",
    ),
}


# --- files ----------------------------------------------------------------------------------------


def data_folder(data: str | Path | None = None) -> Path | None:
    """The folder of benchmark instances: `data`, else $SPO_DATA, else None. Raises InputError."""
    named = data or os.environ.get("SPO_DATA")
    if not named:
        return None
    path = Path(named)
    if not path.is_dir():
        raise InputError(f"{path} is no folder; it should hold tsplib/ and cvrplib/")
    return path


def _files(folder: Path | None, part: str, suffix: str) -> tuple[list[tuple[int, Path]], str]:
    """(size, path) of a folder's instances by size and name, and why there are none, or ""."""
    if folder is None:
        return [], "no files: set SPO_DATA, or give --data, a folder with tsplib/ and cvrplib/"
    paths = sorted((folder / part).glob(f"*{suffix}")) if (folder / part).is_dir() else []
    if not paths:
        return [], f"no files: {folder / part} holds none"
    return sorted((_size(path), path) for path in paths), ""


def _size(path: Path) -> int:
    """The DIMENSION line of an instance file; a file without one is read, and refused, later."""
    from spo_jax.envs.textfiles import read_text

    for line in read_text(path).splitlines():
        word, _, value = line.partition(":")
        if word.strip().upper() == "DIMENSION" and value.strip().isdigit():
            return int(value)
    return 0


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
