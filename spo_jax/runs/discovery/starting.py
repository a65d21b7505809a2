"""The start pairs that a run's settings name."""

from pathlib import Path

from spo_jax.config import Settings
from spo_jax.constants import SHIPPED
from spo_jax.envs.problem import Problem
from spo_jax.envs.report.solve import shipped_pair
from spo_jax.errors import InputError
from spo_jax.runs.pairs import is_shipped, resolve
from spo_jax.search.sampling.start import StartPair


def absolute_pairs(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names with the paths of files and folders made absolute."""
    return tuple(name if is_shipped(name) else str(Path(name).resolve()) for name in names)


def start_pairs(config: Settings, problem: Problem) -> list[StartPair]:
    """What `start_pairs` names: files of pairs, the best pairs of runs, or the pair that ships.

    Raises InputError for one that cannot be read, is of a run for another problem, or is there
    twice.
    """
    found: dict[str, StartPair] = {}
    for name in config.search.start_pairs:
        # A file of that name has an absolute path by now, and the run may be resumed elsewhere.
        if name == SHIPPED:
            each = StartPair.of(name, shipped_pair(problem))
        else:
            _, pair, own = resolve(name, problem)
            each = StartPair.of(name, pair, own.generator.state)
        if each.pair.digest in found:
            raise InputError(
                f"--start-pairs: {name} is the same pair as {found[each.pair.digest].name}; "
                "name it once"
            )
        found[each.pair.digest] = each
    return list(found.values())
