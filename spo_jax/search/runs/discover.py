"""A discovery run as a function call; `spo discover` and the experiments call it too.

Heavy imports happen when a run starts, so that wrong settings are refused at once.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spo_jax import presets
from spo_jax.config import Settings
from spo_jax.envs.problem import Problem
from spo_jax.envs.specs import absolute
from spo_jax.errors import InputError, require_path
from spo_jax.generator import Generator
from spo_jax.named import known_by, require_members
from spo_jax.search.parts import Method
from spo_jax.search.rounds import Observer, Updater
from spo_jax.search.runs.discovery import Discovery
from spo_jax.search.runs.folders import MANIFEST, check_new, default_folder
from spo_jax.search.runs.manifest import (
    check_finished,
    check_objects,
    resumed,
)
from spo_jax.search.runs.passed import Objects, name_of
from spo_jax.search.runs.run import Run, load_run
from spo_jax.search.runs.spoken import in_arguments
from spo_jax.search.runs.starting import absolute_pairs
from spo_jax.search.runs.tracking import Factory, get_factories
from spo_jax.words import LEARNERS, OWN_MODELS

if TYPE_CHECKING:
    from spo_jax.envs.run.evaluator import EvaluatorFactory
    from spo_jax.search.credit import CreditScheme
    from spo_jax.search.population import Panel, Survivors
    from spo_jax.search.racing import Rule
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
    racing: "str | Rule | None" = None,
    utility: "str | Utility | None" = None,
    evaluator: "str | EvaluatorFactory | None" = None,
    update: str | Updater | None = None,
    method: str | Method | None = None,
    observer: Observer | None = None,
    path: str | Path | None = None,
    resume: bool = False,
    rewind: int | None = None,
    verbose: bool = False,
    report: bool = False,
    track: str | Factory | Sequence[str | Factory] | None = None,
    **more: Any,
) -> Run:
    """Discover destroy-repair pairs for a problem; the run, whose `best` is the pair it chose.

    problem: "tsp", "cvrp", "vrptw", "package.module:NAME" or a Problem or its class, which its
        workers find by its `spec`. By default the preset's.
    settings: all of the run's, as `spo_jax.settings` returns them; or else preset: a name or a TOML
        file ("quick" by default). more: settings above those, as rounds=4, seed=1, workers=8.
    generator, credit, survivors, panel, racing, utility, evaluator, update, method: the setting of
        that name, or an object in its place. The manifest keeps the names of the objects, and a run
        goes on with objects of the same names.
    observer: an `Observer`, which watches the run besides the log. verbose: print what
        `spo discover` prints. report: write report.html into the run's folder after every round.
    track: where its numbers go besides: "tensorboard", "wandb", "mlflow" (also with commas between
        them), "package.module:NAME", a function of a `Track`, or several of these.
    path: the run's folder; by default a new one, runs/PROBLEM-PRESET-seedS.
    resume: go on with the run in `path`, or start it where there is none. A finished run is
        returned as it is. rewind: forget the rounds after this one before.

    Raises SpoError for what the caller can mend. KeyboardInterrupt passes: what is committed stays.
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
        "racing": racing,
        "utility": utility, "evaluator": evaluator, "update": update, "method": method,
    }  # fmt: skip
    given = more | {name: part for name, part in parts.items() if part is not None}
    given = {name: objects.name(name, part) for name, part in given.items()}
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
        )
        discovery.observer, discovery.verbose = observer, verbose
        discovery.report, discovery.track = report, get_factories(track)
        return discovery.run()


@in_arguments()
def settings(
    problem: str | Problem | type[Problem] | None = None, preset: str | None = None, **more: Any
) -> Settings:
    """The settings of a run: the paper's for the problem, a preset's ("quick"), then `more`.

    Raises InputError for an unknown name, with the nearest one, and for unlawful values.
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
) -> Discovery:
    """A discovery that is ready to run; nothing is written. Raises InputError.

    own, given: `settings` and `more` of `discover`. objects: names of those that were passed, by
    option.
    """
    given, objects = dict(given), objects or {}
    if problem is not None:
        given["problem"] = name_of(problem)
    if path is None and resume:
        raise InputError("resume needs the path of the run")
    if rewind is not None and not resume:
        raise InputError("--rewind goes back in a run: name it with --resume RUN")
    if path is not None and resume and (path / MANIFEST).exists():
        run = load_run(path)
        given = given if own is None else own.flat() | given
        config = resumed(run.config, run.preset, given, preset, path)
        finished = run.status == "finished" and rewind is None
        if finished:
            check_finished(run.config, run.manifest, config, path)
        else:
            check_objects(run.manifest, objects, path)
        named = config.search.start_pairs == run.config.search.start_pairs
        begun = named and run.rounds > 0
        return Discovery(config, run.preset, path, False, rewind, finished, begun, objects)
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
    return Discovery(config, preset, path, new=True, objects=objects)
