"""Parses SPECs of instances for training, validation, evaluation and baselines.

A SPEC is `uniform:SIZExCOUNT[@SEED]`, an instance file, or a folder of them, and gives one group.
Instances in memory are a group too. References come from the user's file, the instance's file, the
package or a solver.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spo_jax.constants import STORED
from spo_jax.envs.files.labels import PATH
from spo_jax.envs.files.reading import AS_STATED, Reading
from spo_jax.envs.files.stored import load_instances
from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.report.reference_files import ReferenceFile, read_references
from spo_jax.errors import InputError, MissingExtra

LARGEST_GROUP = 8 << 30  # bytes of distance matrices, or of recorded costs and states

_UNIFORM = re.compile(r"uniform:([0-9]{1,6})x([0-9]{1,6})(?:@([0-9]{1,18}))?", re.IGNORECASE)


@dataclass(frozen=True)
class Spec:
    """One group of instances before it is loaded.

    text: the user's SPEC. uniform: (size, count, seed or None); or instances: themselves; or paths:
    the instance files, and reading: how they are read.
    """

    text: str
    uniform: tuple[int, int, int | None] | None = None
    paths: tuple[Path, ...] = ()
    reading: Reading = AS_STATED
    instances: tuple[Instance, ...] = ()

    @property
    def count(self) -> int:
        return len(self.instances or self.paths) if self.uniform is None else self.uniform[1]

    def load(self, problem: Problem, seed: int = 0) -> list[Instance]:
        """seed: of a uniform set that names none."""
        if self.uniform is not None:
            size, count, own = self.uniform
            return sampled(problem, size, count, seed if own is None else own)
        if self.instances:
            return list(self.instances)
        return [read_instance(problem, path, self.reading) for path in self.paths]


def sampled(problem: Problem, size: int, count: int, seed: int) -> list[Instance]:
    """`Problem.sample`. Raises InputError unless it returns a list of `count` of its instances."""
    found = problem.sample(size, count, seed)
    what = f"problem {problem.name}: its sample({size}, {count}, {seed})"
    if type(found) is not list or len(found) != count:
        got = f"{len(found)} of them" if type(found) is list else f"a {type(found).__name__}"
        raise InputError(f"{what} returned {got}, not a list of {count} instances")
    return [_require_instance(problem, what, each) for each in found]


def read_instance(problem: Problem, path: str | Path, reading: Reading = AS_STATED) -> Instance:
    """`Problem.read`. Raises InputError unless it takes the options of `reading` that are given and
    returns an instance of the problem.
    """
    found = problem.read(path, **reading.options_for(problem))
    read = _require_instance(problem, f"problem {problem.name}: its read", found)
    return replace(read, file={**read.file, PATH: str(path)})


def _require_instance(problem: Problem, what: str, found: object) -> Instance:
    if not isinstance(found, Instance):
        raise InputError(f"{what} returned {found!r:.80}, not an Instance")
    if not isinstance(found.size, int) or found.problem != problem.name:
        raise InputError(
            f"{what} returned an instance of {found.problem!r} and of size {found.size!r}: they "
            f"must be {problem.name!r} and an int"
        )
    return found


def absolute(specs: Sequence[str]) -> tuple[str, ...]:
    """The specs with the paths of files and folders made absolute."""
    return tuple(s if is_uniform(s) else str(Path(s).resolve()) for s in specs)


def is_uniform(text: str) -> bool:
    """Whether a SPEC asks for instances that are drawn."""
    return text.lower().startswith("uniform:")


def parse_spec(text: str, problem: Problem) -> Spec:
    """The group of one SPEC. Raises InputError."""
    if is_uniform(text):
        found = _UNIFORM.fullmatch(text)
        if found is None:
            raise InputError(f"{text!r} is not uniform:SIZExCOUNT[@SEED], e.g. uniform:50x32@1")
        size, count = int(found[1]), int(found[2])
        if count < 1:
            raise InputError(f"{text!r} asks for no instance: COUNT is at least 1")
        if 8 * count * size * size > LARGEST_GROUP:
            raise InputError(
                f"{text!r} needs more than {LARGEST_GROUP >> 30} GB: use smaller groups"
            )
        sampled(problem, size, 0, 0)  # for its own limits on the size
        return Spec(text, uniform=(size, count, None if found[3] is None else int(found[3])))
    path = Path(text)
    if text.endswith(STORED) and path.exists():
        return Spec(text, instances=require_instances(load_instances(path), problem))
    try:
        if path.is_dir():
            return Spec(text, paths=_files(path, problem))
        if path.exists():
            return Spec(text, paths=(path,))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {text!r}: {error}") from None
    raise InputError(
        f"{text} does not exist; instances are uniform:SIZExCOUNT[@SEED], a file or a folder"
    )


def _files(folder: Path, problem: Problem) -> tuple[Path, ...]:
    """The problem's instance files in a folder and below, by path."""
    suffixes = problem.suffixes
    if not suffixes:
        raise InputError(f"{folder}: name the files, as {problem.name!r} has no file suffix")
    found: list[Path] = []
    for kinds in (suffixes, problem.tables):
        found = found or sorted(p for p in folder.rglob("*") if p.suffix.lower() in kinds)
    if not found:
        listed = " or ".join(suffixes)
        raise InputError(f"{folder} holds no instance of {problem.name} (no {listed} file)")
    return tuple(path for path in found if path.is_file())


def in_memory(given: object) -> list[Any]:
    """What is given in the place of SPECs where that is instances, or one; empty for SPECs.

    Raises InputError for both at once.
    """
    listed = list(given) if isinstance(given, list | tuple) else [given]
    if not any(isinstance(each, Instance) for each in listed):
        return []
    for each in listed:
        if not isinstance(each, Instance):
            raise InputError(
                f"on takes instances, or files, folders and uniform:SIZExCOUNT, but not both: "
                f"{each!r:.80} is no Instance"
            )
    return listed


def require_instances(given: Sequence[Instance], problem: Problem) -> tuple[Instance, ...]:
    """Instances in memory. Raises InputError for those of another problem, of a class of their own,
    and for one that is there twice.
    """
    found: dict[str, Instance] = {}
    for each in given:
        if each.problem != problem.name:
            raise InputError(f"{each.name} is an instance of {each.problem}, not of {problem.name}")
        if type(each) is not Instance or type(each.size) is not int:
            raise InputError(
                f"{each.name} is a {type(each).__name__} of size {each.size!r:.20}: it must be an "
                "Instance itself, and its size an int"
            )
        if each.digest in found:
            raise InputError(
                f"{each.name} is the same instance as {found[each.digest].name}, which is there "
                "already; give it once"
            )
        found[each.digest] = each
    return tuple(found.values())


def parse_specs(
    specs: Sequence[str] | Sequence[Instance],
    problem: Problem,
    references: str,
    reading: Reading = AS_STATED,
) -> list[Spec]:
    """The groups of `specs`, or the group of some instances. Reads all files once, to fail early.

    Raises InputError.
    """
    own_references(references)
    if not specs:
        raise InputError(
            "there is nothing to evaluate on: name an instance, a folder or uniform:..."
        )
    if given := in_memory(specs):
        plans = [Spec("instances", instances=require_instances(given, problem))]
    else:
        texts = map(str, specs)
        plans = [replace(parse_spec(text, problem), reading=reading) for text in texts]
    if reading.given and not any(plan.paths for plan in plans):
        raise InputError(f"--{next(iter(reading.given))} is for instance files, and none is named")
    for plan in plans:
        if plan.paths:
            plan.load(problem)  # fail now on a bad file, not an hour later
    return plans


# --- references -----------------------------------------------------------------------------------


def with_references(
    problem: Problem,
    instances: list[Instance],
    cache: Path,
    progress: Callable[[int, int], None],
    effort: str = "standard",
    own: ReferenceFile | None = None,
) -> list[Instance]:
    """Instances with reference costs, or with the reason why there is none in reference_source."""
    from spo_jax.envs.report.references import reference

    known = []
    for done, instance in enumerate(instances, 1):
        try:
            known.append(reference(problem, instance, effort, cache, own))
        except MissingExtra as error:
            known.append(replace(instance, reference_source=f"none: {error}"))
        progress(done, len(instances))
    return known


def own_references(references: str) -> ReferenceFile | None:
    """The user's references, if `references` names a file of them. Raises InputError."""
    if references in ("solve", "none"):
        return None
    if not os.path.exists(references):
        raise InputError(
            f"{references} does not exist: references are solve, none or a file of references"
        )
    return read_references(references)


def reference_settings(references: str, effort: str) -> dict[str, str]:
    """The settings of a report that concern references. Raises InputError."""
    from spo_jax.envs.report.references import require_effort

    require_effort(effort)
    if references == "none":
        return {"references": references}
    return {"references": references, "reference_effort": effort}


def remarks_on(
    own: ReferenceFile | None, plans: Sequence[Spec], problem: Problem
) -> tuple[str, ...]:
    """How many of the user's references apply and how many are refused.

    Raises InputError if one belongs to another instance.
    """
    from spo_jax.envs.report.references import known, worse

    if own is None:
        return ()
    found, refused = 0, []
    for plan in plans:
        for instance in plan.load(problem):
            row, best = own.find(problem, instance), known(problem, instance, own=own)
            if row is None or best is None or best.reference is None:
                continue
            found += 1
            if worse(problem, row.cost, best.reference):
                refused.append(
                    f"{row.where}: {row.cost:.9g} for {instance.name}, where "
                    f"{best.reference:.9g} is known"
                )
    total = sum(plan.count for plan in plans)
    lines = [f"{own.label} has references of {found} of {total} instances"]
    if refused:
        lines.append(
            f"{len(refused)} of them are worse than what is known and are not used; the first, "
            f"{refused[0]}"
        )
    return tuple(lines)
