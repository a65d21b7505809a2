"""Names that tell instances apart: files may bear a name that another one bears, too."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import PurePath

from spo_jax.envs.instance import Instance

PATH = "path"  # what `Instance.file` calls the file that an instance was read from


def labels(instances: Sequence[Instance]) -> list[str]:
    """A name of each instance that no other one has.

    That is its own name; where several have it, with as much of its file's path as tells them
    apart, as in "day (mon/day.csv)", or with a number, as in "day (2)".
    """
    sharing: dict[str, list[int]] = {}
    for k, each in enumerate(instances):
        sharing.setdefault(each.name, []).append(k)
    found = [each.name for each in instances]
    for name, places in sharing.items():
        paths = [PurePath(instances[k].file.get(PATH, "")) for k in places]
        if len(places) > 1 and all(path.parts for path in paths) and len(set(paths)) == len(paths):
            for k, tail in zip(places, _tails(paths), strict=True):
                found[k] = f"{name} ({tail})"
    return numbered(found)


def with_unique_names(instances: Sequence[Instance]) -> list[Instance]:
    """The instances with their `labels` as names. References by name are looked up before."""
    pairs = zip(instances, labels(instances), strict=True)
    return [each if each.name == label else replace(each, name=label) for each, label in pairs]


def numbered(names: Iterable[str]) -> list[str]:
    """The names, each only once: a number is behind those that were there before."""
    found: dict[str, None] = {}
    for name in names:
        tries = (name if k == 1 else f"{name} ({k})" for k in count(1))
        found[next(each for each in tries if each not in found)] = None
    return list(found)


def _tails(paths: Sequence[PurePath]) -> list[str]:
    """The ends of different paths, of as few parts as make them different."""
    parts = [path.parts for path in paths]
    for length in count(1):
        tails = [str(PurePath(*each[-length:])) for each in parts]
        if len(set(tails)) == len(tails):
            return tails
    raise AssertionError
