"""The instances of a run: for training, and for measuring its best pairs.

Each set has a random stream of its own, derived from the run's seed. So a `uniform:` set without a
seed differs from the other sets of the run and from those of `spo evaluate`.
"""

from collections.abc import Sequence
from dataclasses import replace

from spo_jax.config import Settings
from spo_jax.constants import STORED
from spo_jax.envs.files.labels import with_unique_names
from spo_jax.envs.files.reading import Reading
from spo_jax.envs.files.specs import is_uniform, parse_spec, sampled
from spo_jax.envs.problem import Instance, Problem
from spo_jax.errors import InputError
from spo_jax.seeding import derive

TINY, LARGE = 10, 500  # sizes on which a run's pair is tried, whatever it was trained on
FRESH = 4  # times the instances of discovery: half its noise


def training_instances(config: Settings, problem: Problem) -> list[Instance]:
    """What `on` names, by default `instances` of `size`. Raises InputError."""
    seed = derive(config.seed, "instances")
    reading = reading_of(config, problem)
    if config.evaluation.on:
        return _named(config.evaluation.on, reading, problem, seed)
    return sampled(problem, config.evaluation.size, config.evaluation.instances, seed)


def validation_instances(config: Settings, problem: Problem) -> list[Instance]:
    """What `validate_on` names, by default `validation_instances` of `validation_size`.

    Raises InputError.
    """
    seed = derive(config.seed, "validation")
    if config.evaluation.validate_on:
        return _named(config.evaluation.validate_on, reading_of(config, problem), problem, seed)
    return sampled(
        problem, config.evaluation.validation_size, config.evaluation.validation_instances, seed
    )


def fresh_instances(config: Settings, problem: Problem) -> list[Instance]:
    """FRESH times as many instances as the training has, like them, that it has not seen; none
    where it has files.
    """
    seed = derive(config.seed, "fresh")
    if not config.evaluation.on:
        return sampled(problem, config.evaluation.size, FRESH * config.evaluation.instances, seed)
    sets = [parse_spec(text, problem).uniform for text in config.evaluation.on]
    fresh = []
    for each in sets:
        if each is None:
            return []
        fresh += sampled(problem, each[0], FRESH * each[1], seed)
    return fresh


def other_sizes(config: Settings, problem: Problem, training: Sequence[Instance]) -> list[Instance]:
    """One instance each of sizes that the training has not: a tiny one, half of its smallest, and
    twice its largest, or LARGE where that is less; without those that the problem cannot sample.
    """
    seen = sorted({instance.size for instance in training})
    above = min(2 * seen[-1], max(LARGE, seen[-1]))
    found = []
    for size in sorted({TINY, seen[0] // 2, above}.difference(seen)):
        try:
            found += sampled(problem, size, 1, derive(config.seed, "other sizes", size))
        except InputError:  # a size that its instances cannot have
            continue
    return found


def reading_of(config: Settings, problem: Problem) -> Reading:
    """How a run reads instance files.

    Raises InputError for options that no file of the run takes.
    """
    evaluation = config.evaluation
    reading = Reading(evaluation.distances, evaluation.capacity, evaluation.vehicles)
    specs = (*config.evaluation.on, *config.evaluation.validate_on)
    if reading.given and all(is_uniform(text) or text.endswith(STORED) for text in specs):
        raise InputError(f"--{next(iter(reading.given))} is for instance files, and none is named")
    return reading


def _named(specs: Sequence[str], reading: Reading, problem: Problem, seed: int) -> list[Instance]:
    found: dict[str, Instance] = {}
    for text in specs:
        for instance in replace(parse_spec(text, problem), reading=reading).load(problem, seed):
            if instance.digest in found:
                raise InputError(
                    f"{text}: {instance.name} is the same instance as "
                    f"{found[instance.digest].name}, which is there already; name it once"
                )
            found[instance.digest] = instance
    return with_unique_names(list(found.values()))


def record(instances: Sequence[Instance]) -> list[dict[str, str | int]]:
    """Names, sizes and digests of some instances, for the manifest."""
    return [{"name": i.name, "size": i.size, "digest": i.digest} for i in instances]
