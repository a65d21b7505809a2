"""The reference costs that the gaps of a run are measured from. No result of a run depends on them.

Of each instance the first of these that there is: the cost in its file; the one that ships with the
problem; what the problem's solver finds with the effort "quick", if it is installed, for instances
of at most `Problem.quick_reference` and for MOST of them. These take less than a second each. Sizes
and counts limit the work, and no clock, so equal runs have equal references. A thread finds them
beside the first round. The run's folder keeps them in a file that `--references` reads too, and a
run that goes on takes them from there.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.report.reference_files import Row, read_references, write_references
from spo_jax.envs.report.references import known, solved
from spo_jax.errors import SpoError

FILE = "references.csv"
MOST = 24  # instances that a solver is asked about
EFFORT = "quick"


@dataclass(frozen=True)
class Found:
    """References by the digests of their instances; remark: why a solver found none, or ""."""

    rows: Mapping[str, Row]
    remark: str = ""


class References:
    """Finds the references of a run's instances, or reads them in its folder; a context manager."""

    def __init__(self, folder: Path, problem: Problem, instances: Sequence[Instance]):
        """instances: the first of them are asked about first."""
        self._path = folder / FILE
        self._problem, self._instances = problem, instances
        self._stop = Event()
        self._coming: Future[Found] | None = None

    def __enter__(self) -> "References":
        if not self._path.exists():
            self._thread = ThreadPoolExecutor(1)
            self._coming = self._thread.submit(find, self._problem, self._instances, self._stop)
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        if self._coming is not None:
            self._thread.shutdown(wait=False)

    def found(self) -> Found:
        """All of them, once the thread has them; the folder has them from then on.

        Raises InputError for a file that was edited or cannot be written.
        """
        if self._coming is None:
            return Found(kept(self._path.parent))
        found = self._coming.result()
        if found.rows and not self._path.exists():
            write_references(self._path, found.rows.values())
        return found


def kept(folder: Path) -> dict[str, Row]:
    """The references in a run's folder, by digest; empty where it has none. Raises InputError."""
    path = folder / FILE
    return {row.digest: row for row in read_references(path).rows} if path.exists() else {}


def find(problem: Problem, instances: Sequence[Instance], stop: Event) -> Found:
    """What is known of some instances, or found now, until `stop` is set.

    A solver that is missing or fails is asked no more, and ends no run.
    """
    rows, remark, asked = {}, "", 0
    solver = problem.offers("solve_reference")
    for instance in instances:
        if stop.is_set():
            break
        ask = solver and not remark and asked < MOST and instance.size <= problem.quick_reference
        try:
            found, effort = known(problem, instance, EFFORT), ""
            if found is None and ask:
                asked += 1
                found, effort = solved(problem, instance, EFFORT), EFFORT
        except SpoError as error:
            remark = remark or str(error)
        except Exception as error:
            remark = remark or f"{instance.name}: {type(error).__name__}: {error}"
        else:
            if found is not None and found.reference is not None:
                rows[instance.digest] = Row(
                    problem.name, instance.name, instance.digest, found.reference,
                    found.certified, effort, found.reference_source,
                )  # fmt: skip
    return Found(rows, remark)
