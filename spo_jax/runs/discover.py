"""A discovery run as a function call; `spo discover` and the experiments call it too.

Heavy imports happen when a run starts, so that wrong settings are refused at once.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spo_jax import presets
from spo_jax.config import Settings
from spo_jax.config.updates import EVOTUNE
from spo_jax.constants import LEARNERS, OWN_MODELS, SPO
from spo_jax.envs.files.labels import with_unique_names
from spo_jax.envs.files.specs import absolute, in_memory, require_instances
from spo_jax.envs.problem import Instance, Problem
from spo_jax.errors import InputError, require_path
from spo_jax.generator import Generator
from spo_jax.registry import known_by, require_members
from spo_jax.runs.argument_errors import in_arguments
from spo_jax.runs.discovery import Discovery
from spo_jax.runs.discovery.objects import Objects, name_of
from spo_jax.runs.discovery.starting import absolute_pairs, start_pairs
from spo_jax.runs.folders import INSTANCES, MANIFEST, check_new, default_folder
from spo_jax.runs.manifest import (
    check_instances,
    check_model,
    check_objects,
    check_prompts,
    check_start_pairs,
    instances_of,
    model_of,
    require_no_retired,
    resumed,
)
from spo_jax.runs.run import Run, load_run
from spo_jax.runs.tracking import Factory, get_factories
from spo_jax.search.parts import Method
from spo_jax.search.rounds import Observer, Updater

if TYPE_CHECKING:
    from spo_jax.envs.run.evaluator import EvaluatorFactory
    from spo_jax.search.credit import CreditScheme
    from spo_jax.search.population import Panel, Survivors
    from spo_jax.search.utility import Utility

OWN = "own"  # the preset's name of a run with `settings` of the caller


@in_arguments()
def discover(
    problem: str | Problem | type[Problem] | None = None,
    settings: Settings | None = None,
    *,
    preset: str | None = None,
    generator: str | Generator | None = None,
    credit: "str | CreditScheme | None" = None,
    survivors: "str | Survivors | None" = None,
    panel: "str | Panel | None" = None,
    utility: "str | Utility | None" = None,
    evaluator: "str | EvaluatorFactory | None" = None,
    update: str | Updater | None = None,
    method: str | Method | None = None,
    on: Sequence[str] | Instance | Sequence[Instance] | None = None,
    observer: Observer | None = None,
    path: str | Path | None = None,
    resume: bool = False,
    rewind: int | None = None,
    verbose: bool = False,
    report: bool = False,
    track: str | Factory | Sequence[str | Factory] | None = None,
    **more: Any,
) -> Run:
    """Discover destroy-repair pairs for a problem.

    KeyboardInterrupt passes: what is committed stays.

    Args:
        problem: "tsp", "cvrp", "vrptw", "package.module:NAME" or a Problem or its class, which its
            workers find by its `spec`. By default the preset's.
        settings: All of the run's, as `spo_jax.settings` returns them; or else a preset.
        preset: A name or a TOML file, "quick" by default.
        generator: The setting of that name, or an object in its place. The manifest keeps the names
            of the objects, and a run goes on with objects of the same names.
        credit: Likewise.
        survivors: Likewise.
        panel: Likewise.
        utility: Likewise.
        evaluator: Likewise.
        update: Likewise.
        method: Likewise.
        on: The setting of that name, or instances in memory to train on, which the run's folder
            keeps.
        observer: An `Observer`, which watches the run besides the log.
        path: The run's folder; by default a new one, runs/PROBLEM-PRESET-seedS.
        resume: Whether to go on with the run in `path`, or start it where there is none. A finished
            run is returned as it is, unless `rounds` is more than it has: then it gets them.
        rewind: Forget the rounds after this one before.
        verbose: Whether to print what `spo discover` prints.
        report: Whether to write report.html into the run's folder after every round.
        track: Where its numbers go besides: "tensorboard", "wandb", "mlflow" (also with commas
            between them), "package.module:NAME", a function of a `Track`, or several of these.
        **more: Settings above those, as rounds=4, seed=1, workers=8.

    Returns:
        The run, whose `best` is the pair that it chose.

    Raises:
        SpoError: Something that the caller can mend.
    """
    if settings is not None and not isinstance(settings, Settings):
        raise InputError(
            f"settings is {settings!r:.80}; it must be what spo_jax.settings returns, or left out: "
            "single settings are arguments, as rounds=3"
        )
    if observer is not None:
        require_members("observer", observer, Observer)
    if path is not None:
        require_path("path", path)
    objects = Objects()
    parts = {
        "generator": generator, "credit": credit, "survivors": survivors, "panel": panel,
        "utility": utility, "evaluator": evaluator, "update": update, "method": method,
    }  # fmt: skip
    given = more | {name: part for name, part in parts.items() if part is not None}
    given = {name: objects.name(name, part) for name, part in given.items()}
    if on == []:
        raise InputError("on is an empty list: give instances, files or sets, or leave it out")
    instances = in_memory(on)
    if on is not None and not instances:
        given["on"] = on
    with known_by(objects.known):
        discovery = prepare(
            problem,
            settings,
            preset=preset,
            given=given,
            path=None if path is None else Path(path),
            resume=resume,
            rewind=rewind,
            objects=objects.names,
            instances=instances,
        )
        discovery.observer, discovery.verbose = observer, verbose
        discovery.report, discovery.track = report, get_factories(track)
        return discovery.run()


@in_arguments()
def settings(
    problem: str | Problem | type[Problem] | None = None, preset: str | None = None, **more: Any
) -> Settings:
    """Make the settings of a run: the paper's for the problem, a preset's, then `more`.

    Args:
        problem: As in `discover`.
        preset: A name or a TOML file, "quick" by default.
        **more: Settings by their names.

    Returns:
        All settings, checked.

    Raises:
        InputError: A name is unknown, and the nearest one is named, or a value is unlawful.
    """
    return _settings(problem, preset, more)


def _settings(
    problem: str | Problem | type[Problem] | None, preset: str | None, more: Mapping[str, Any]
) -> Settings:
    preset = presets.DEFAULT_PRESET if preset is None else preset
    problem = presets.problem_of(preset) if problem is None else name_of(problem)
    if problem is None:
        raise InputError(
            "which problem? name one, as tsp, or the folder of a run to resume (--resume RUN)"
        )
    return presets.settings(problem, preset, **more)


def prepare(
    problem: str | Problem | type[Problem] | None = None,
    own: Settings | None = None,
    *,
    preset: str | None = None,
    given: Mapping[str, Any],
    path: Path | None = None,
    resume: bool = False,
    rewind: int | None = None,
    objects: Mapping[str, str] | None = None,
    instances: Sequence[Instance] = (),
) -> Discovery:
    """A discovery that is ready to run; nothing is written. Raises InputError.

    own, given: `settings` and `more` of `discover`. objects: names of those that were passed, by
    option. instances: those that were passed.
    """
    given, objects = presets.with_search(given), objects or {}
    if problem is not None:
        given["problem"] = name_of(problem)
    if path is None and resume:
        raise InputError("resume needs the path of the run")
    if rewind is not None and not resume:
        raise InputError("--rewind goes back in a run: name it with --resume RUN")
    if path is not None and resume and (path / MANIFEST).exists():
        run = load_run(path)
        given = given if own is None else own.flat() | given
        config = resumed(_planned(run, given), run.preset, given, preset, path)
        more = run.status == "finished" and config.search.rounds > (run.planned or math.inf)
        rewind = run.rounds if more and rewind is None else rewind  # what came after the rounds
        finished = run.status == "finished" and rewind is None
        instances = _apart(instances, config)
        if finished:
            check_finished(run.config, run.manifest, config, path, instances)
        else:
            require_no_retired(run.manifest, path)
            check_objects(run.manifest, objects, path)
        named = config.search.start_pairs == run.config.search.start_pairs
        begun = named and run.rounds > 0
        return Discovery(
            config, run.preset, path, False, rewind, finished, begun, objects,
            instances=instances, more=more,
        )  # fmt: skip
    if instances:
        given["on"] = (INSTANCES,)
    if given.get("minutes") is not None and "rounds" in given:
        raise InputError("--minutes takes the place of --rounds: leave out one of them")
    if own is None:
        preset = presets.DEFAULT_PRESET if preset is None else preset
        config = _settings(given.pop("problem", None), preset, given)
    else:
        preset = OWN if preset is None else preset
        config = own.replace(**given)
    model = config.generator.model
    if config.generator.name in LEARNERS and model not in OWN_MODELS and Path(model).is_dir():
        config = config.replace(model=str(Path(model).resolve()))
    if config.generator.prompts is not None:
        config = config.replace(prompts=str(Path(config.generator.prompts).resolve()))
    on, validate_on = absolute(config.evaluation.on), absolute(config.evaluation.validate_on)
    start = absolute_pairs(config.search.start_pairs)
    config = config.replace(on=on, validate_on=validate_on, start_pairs=start)
    path = default_folder(config, preset) if path is None else path
    check_new(path)
    if instances:
        config = config.replace(on=(str(path.resolve() / INSTANCES),))
        instances = _apart(instances, config)
    return Discovery(config, preset, path, new=True, objects=objects, instances=instances)


def _planned(run: Run, given: Mapping[str, Any]) -> Settings:
    """The settings that a run goes on with, before those that may change.

    A finished run of SPO may have more rounds than it began with: no round depends on their number.
    """
    config, asked = run.config, given.get("rounds")
    grows = config.search.method == SPO and config.learning.update != EVOTUNE
    if grows and run.status == "finished" and isinstance(asked, int) and run.planned is not None:
        return config.replace(rounds=max(asked, run.planned))
    return config


def _apart(given: Sequence[Instance], config: Settings) -> list[Instance]:
    """Instances that were passed, under names that tell them apart. Raises InputError."""
    from spo_jax.envs.problems import get_problem
    from spo_jax.search.instances import reading_of

    if not given:
        return []
    problem = get_problem(config.problem)
    reading_of(config, problem)
    return with_unique_names(require_instances(given, problem))


def check_finished(
    stored: Settings,
    record: Mapping[str, Any],
    now: Settings,
    path: Path,
    instances: Sequence[Instance] = (),
) -> None:
    """Raises InputError where a finished run in `path` is started with other instances, templates
    or another model than it began with, as one that goes on does.

    stored, record: its settings and manifest. now: those asked for. instances: those passed.
    """
    from spo_jax.envs.problems import get_problem
    from spo_jax.search.instances import training_instances, validation_instances
    from spo_jax.search.writing.prompts import Templates

    before, after = stored.flat(), now.flat()
    other = {name for name in before if before[name] != after[name]}
    problem = get_problem(now.problem)
    reading = {"on", "validate_on", "distances", "capacity", "vehicles"}
    if instances or other & (reading | {"prompts"}):
        training = list(instances) or training_instances(now, problem)
    if instances or other & reading:
        validation = validation_instances(now, problem) if now.search.finalists else []
        check_instances(record, instances_of(training, validation), path)
    if "start_pairs" in other:
        check_start_pairs(record, start_pairs(now, problem), path)
    if "model" in other:
        check_model(record.get("model"), model_of(now), path)
    if "prompts" in other:
        digest = None
        if now.generator.prompts is not None:
            digest = Templates.of(now.generator, problem, training).digest
        check_prompts(record, digest, path)
