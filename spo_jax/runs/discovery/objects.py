"""Objects that a caller passes to a run: parts instead of names, and a second observer."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from spo_jax.envs.problem import Problem
from spo_jax.errors import InputError
from spo_jax.search.rounds import Observer, Round

IN_WORKERS = ("acceptance", "state")  # options whose parts workers call


class Objects:
    """Objects passed instead of names.

    known: by their names in the settings, for `named.known_by`. names: by option, the names of
    those that cannot be imported again.
    """

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.known: dict[str, Any] = {}

    def name(self, option: str, part: Any) -> Any:
        """The value of the setting for `part`: its name, or a plain value itself."""
        if part is None or isinstance(part, str | int | float | list | tuple | dict):
            return part
        full = called(part)
        module, _, name = full.partition(":")
        if module == "__main__" or getattr(sys.modules.get(module), name, None) is not part:
            if option in IN_WORKERS:
                raise InputError(
                    f"{option} is {part!r:.60}, which workers cannot import: define it at the top "
                    "of a module, and name it as 'package.module:NAME'"
                )
            while self.known.setdefault(full, part) is not part:
                full += "'"
            self.names[option] = full
        return full


def called(part: Any) -> str:
    """ "package.module:NAME" of a function or class, or of an object's class."""
    owner = part if hasattr(part, "__qualname__") else type(part)
    return f"{owner.__module__}:{owner.__qualname__}"


def name_of(problem: Any) -> str:
    """The name by which `get_problem` finds a problem: its own if it is of the package.

    Raises InputError for what is neither a name nor a Problem, or the class of one.
    """
    from spo_jax.envs.problems import known_problems

    if isinstance(problem, str):
        return problem
    if isinstance(problem, type) and issubclass(problem, Problem):
        problem = problem()
    if not isinstance(problem, Problem):
        raise InputError(f"problem is {problem!r:.80}; it must be a name or a spo_jax.Problem")
    return problem.name if known_problems().get(problem.name) == problem.spec else problem.spec


class Both(Observer):
    """Several observers, called in turn."""

    def __init__(self, *observers: Observer):
        self._observers = observers

    def stage(self, number: int, name: str, total: int) -> None:
        for each in self._observers:
            each.stage(number, name, total)

    def advance(self, done: int) -> None:
        for each in self._observers:
            each.advance(done)

    @contextlib.contextmanager
    def working(self, name: str) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for each in self._observers:
                stack.enter_context(each.working(name))
            yield

    def remark(self, line: str) -> None:
        for each in self._observers:
            each.remark(line)

    def finished(self, done: Round) -> None:
        for each in self._observers:
            each.finished(done)
