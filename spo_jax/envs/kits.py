"""A problem's kit: the operators' inner loops that its programs import as `lns`.

A kit is a module, named by `Problem.kit`, whose `__all__` lists functions. Programs can call these
and nothing else of it. Five more things in it are optional. `prepare(*arguments)` is called with
the instance's leading arguments (`Rules.prepared`) before programs run, and `release(*arguments)`
once none will run on them. `forget()` is called between rollouts in one process: it drops what
programs' calls have left. `work()` is the work of all calls so far, in units of
`spo_jax.envs.run.sandbox.meter`. `reference` is a module with the same functions in plain
Python, of which `spo export` writes what a pair uses; without it, it writes the kit's own.
"""

import hashlib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from spo_jax.envs.problem import Problem
from spo_jax.errors import InputError
from spo_jax.program import Role


@dataclass(frozen=True)
class Kit:
    """What programs see of a kit.

    names: of its functions. members: the functions. prepare, release, forget: see above. native:
    whether they are compiled; None if the kit does not say. work: see above; None if the kit does
    not count.
    """

    names: tuple[str, ...]
    members: SimpleNamespace
    prepare: Callable[..., object]
    native: bool | None
    work: Callable[[], int] | None = None
    forget: Callable[[], object] = lambda: None
    release: Callable[..., object] = lambda *arguments: None


def load_kit(problem: Problem, counts: bool = False) -> Kit | None:
    """The kit of a problem; None if it has none.

    counts: whether it must count its work. Raises InputError for a module that cannot be imported,
    that lists no functions, or that does not count, and for one whose C sources have changed since
    it was compiled.
    """
    if not problem.kit:
        return None
    what = f"the kit of problem {problem.name}, {problem.kit!r},"
    try:
        module = importlib.import_module(problem.kit)
    except ImportError as error:
        raise InputError(f"{what} cannot be imported: {error}") from error
    names = getattr(module, "__all__", None)
    if not names or not all(callable(getattr(module, name, None)) for name in names):
        raise InputError(f"{what} needs a list __all__ with the names of its functions")
    if (stale := changed_sources(module)) is not None:
        raise InputError(
            f"{what} was compiled before its C sources in {stale} changed; build it again: "
            "pip install -e . in the folder of the checkout"
        )
    if counts and not hasattr(module, "work"):
        raise InputError(
            f"work cannot be counted: {what} has no function work here, as the package's own have "
            "where they are compiled; leave out work, or take kit none"
        )
    return Kit(
        tuple(names),
        SimpleNamespace(**{name: getattr(module, name) for name in names}),
        getattr(module, "prepare", _nothing),
        getattr(module, "NATIVE", None),
        getattr(module, "work", None),
        getattr(module, "forget", _nothing),
        getattr(module, "release", _nothing),
    )


def changed_sources(kit: ModuleType) -> Path | None:
    """The folder of a compiled kit whose C sources are not what it was compiled from.

    None if they are, if they are not at hand, as in an installed package, or if the kit does not
    say: its module `_native` has the digest SOURCES, which setup.py works out.
    """
    native = getattr(kit, "_native", None)
    known = getattr(native, "SOURCES", "")
    if not known or native is None or not native.__file__:
        return None
    folder = Path(native.__file__).parent
    if not any(folder.glob("*.[ch]")):
        return None
    problems = folder.parents[1]  # a kit may be made of another one's sources
    sources = [*sorted(problems.glob("*.h")), *sorted(problems.glob(f"*/{folder.name}/*.[ch]"))]
    texts = b"".join(each.read_bytes() for each in sources)
    return folder if hashlib.sha256(texts).hexdigest() != known else None


def kit_texts(folder: Path, role: Role, kit: bool) -> Mapping[str, str]:
    """`Problem.kit_texts` from files.

    With the kit: kit-ROLE.txt and optimisation-kit.txt; else nothing and optimisation.txt.
    """
    allowed = folder / f"optimisation{'-kit' if kit else ''}.txt"
    return {
        "kit": (folder / f"kit-{role}.txt").read_text("utf-8") if kit else "",
        "optimisation": allowed.read_text("utf-8"),
    }


def _nothing(*arguments: Any) -> None:
    pass
