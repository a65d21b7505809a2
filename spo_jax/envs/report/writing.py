"""The files that `spo solve` writes, and what it leaves alone.

A file that exists is replaced only by a better or an equal solution of the same instance. Solution
files are read and checked by the problem. The other files cannot be, so they carry a mark: the
digest of the instance and the cost of the solution that they show. A file of another origin is
refused before the search begins.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from spo_jax.envs.problem import Instance, Problem, Solution
from spo_jax.envs.report.plot import plot_solution, require_picture
from spo_jax.envs.textfiles import MAX_BYTES, shown_cost
from spo_jax.errors import InputError

_MARK = re.compile(rb"spo solve: ([0-9a-f]{32}) (-?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?)\b")
_FORCE = "(--force overwrites it)"


@dataclass(frozen=True, eq=False)
class Outputs:
    """Where a solution of `instance` goes, and what of the files there may be replaced.

    solution: a file in the problem's format. plot: a picture of it, or None. force: whether all of
    them are overwritten, whatever they hold.

    Raises InputError for a picture that cannot be drawn, and without `force` for a file that is
    there and holds no solution of the instance.
    """

    problem: Problem
    instance: Instance
    solution: Path
    plot: Path | None = None
    force: bool = False

    def __post_init__(self) -> None:
        if self.plot is not None:
            require_picture(self.problem, self.plot)
        self._standing()
        for path in self._others():
            self._marked(path)

    def write(self, solution: Solution, cost: float) -> list[str]:
        """Write the files; a line about each. A better solution that is there is kept and shown.

        So the other files tell of the solution that is in the solution file afterwards.
        """
        standing = self._standing()
        if standing is not None and standing[1] < cost:
            lines = [self._kept(self.solution, standing[1], cost)]
            solution, cost = standing
        else:
            self.problem.write(self.solution, self.instance, solution)
            lines = [f"solution: {self.solution}"]
            if standing is not None and standing[1] > cost:
                lines[0] += f" (in place of one of cost {shown_cost(standing[1])})"
        for path, what in self._others().items():
            known = self._marked(path)
            if known is not None and known < cost:
                lines.append(self._kept(path, known, cost))
            else:
                self._write_other(path, solution, cost)
                lines.append(f"{what}: {path}")
        return lines

    def _others(self) -> dict[Path, str]:
        return {} if self.plot is None else {self.plot: "picture"}

    def _write_other(self, path: Path, solution: Solution, cost: float) -> None:
        mark = mark_of(self.instance, cost)
        plot_solution(self.problem, self.instance, solution, path, mark=mark)

    def _kept(self, path: Path, old: float, new: float) -> str:
        return f"kept: {path}, whose cost {shown_cost(old)} is below {shown_cost(new)} {_FORCE}"

    def _standing(self) -> tuple[Solution, float] | None:
        """The solution in the solution file and its cost; None where there is nothing to keep."""
        path = self.solution
        if self.force or not _filled(path):
            return None
        try:
            solution = self.problem.read_solution(path, self.instance)
            return solution, self.problem.cost(self.instance, solution)
        except InputError:
            self._refuse(path, "no solution")

    def _marked(self, path: Path) -> float | None:
        """The cost that a file's mark tells; None where there is nothing to keep."""
        if self.force or not _filled(path):
            return None
        found = _MARK.search(path.read_bytes()) if path.stat().st_size <= MAX_BYTES else None
        if found is None or found[1].decode() != self.instance.digest:
            self._refuse(path, "nothing that spo solve wrote")
        return float(found[2])

    def _refuse(self, path: Path, what: str) -> NoReturn:
        raise InputError(
            f"{path} is there and is {what} of {self.instance.name}: name another file, or add "
            "--force to overwrite it"
        )


def mark_of(instance: Instance, cost: float) -> str:
    """What tells that `spo solve` wrote a file: the digest of the instance, and a cost."""
    return f"spo solve: {instance.digest} {float(cost)!r}"


def _filled(path: Path) -> bool:
    """Whether there is a regular file that holds something; a device or a pipe holds nothing."""
    return path.is_file() and path.stat().st_size > 0
