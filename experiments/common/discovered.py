"""Discovery runs: started, gone on with, or left alone where they are finished.

A run lies under --out, in discovery/PROBLEM-NAME-seedN for the contenders of the tables and
figures, so that every experiment finds what another has discovered.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from common.budgets import Budget
from common.contenders import Contender

import spo_jax
from spo_jax import presets
from spo_jax.config import Settings
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError
from spo_jax.search.runs.manifest import check_model, check_prompts
from spo_jax.search.runs.run import Run, load_run
from spo_jax.search.writing.prompts import Templates
from spo_jax.words import SPO


def discover(settings: Settings, preset: str, given: Mapping[str, Any], path: Path) -> Run:
    """Start the run at `path`, go on with it, or leave it if it is finished; the run.

    given: the settings above the preset's, with which it is started or resumed. Raises InputError
    where `path` holds another run than `settings` say, one of another model or other prompts, or
    one that another process has; KeyboardInterrupt where Ctrl-C ended it.
    """
    if path.exists():
        found = load_run(path)
        if changes := found.config.changed(settings.flat()):
            raise InputError(f"{path} differs in {', '.join(changes)}: choose another --out")
        if found.status == "finished":
            _require_alike(found, settings)
            return found
        if found.status == "running":
            raise InputError(f"{path} is being run by another process")
    return spo_jax.discover(
        settings.problem, preset=preset, path=path, resume=True, verbose=True, **given
    )


def _require_alike(found: Run, settings: Settings) -> None:
    """Raises InputError where a finished run's model or prompts are not those of `settings`, which
    may be called otherwise.

    Nothing is said against a model of the same name that is not on this machine: it is not needed.
    """
    prompts = None
    if settings.generator.prompts is not None:
        prompts = Templates.read(settings.generator.prompts, get_problem(settings.problem)).digest
    check_prompts(found.manifest, prompts, found.path)
    began, name = found.manifest.get("model"), settings.generator.model
    if began is None:
        return
    try:
        now = {"name": name} if "name" in began else _digests(name)
    except InputError:
        if found.config.generator.model in (name, str(Path(name).resolve())):
            return
        raise
    check_model(began, now, found.path)


@cache
def _digests(model: str) -> Mapping[str, str]:
    """What `check_model` compares of a folder; read once, which takes a large model a while."""
    from spo_jax.rl.policy import fingerprint, model_folder

    folder = model_folder(model)
    return {"folder": str(folder), **fingerprint(folder)}


def runs_of(
    contender: Contender, problem: str, budget: Budget, out: Path, workers: int
) -> list[Run]:
    """The finished runs of a contender that is discovered, one a discovery seed.

    Raises InputError as `discover` does and for a run that found no pair, KeyboardInterrupt where
    Ctrl-C ended one.
    """
    runs = []
    for seed in range(budget.discovery_seeds):
        settings, own = wanted(contender, problem, budget, seed, workers)
        path = folder(contender, problem, out, seed)
        run = discover(settings, budget.presets[problem], own, path)
        if run.best is None:
            raise InputError(f"{path} found no valid pair: a larger budget, or another seed")
        runs.append(run)
    return runs


def wanted(
    contender: Contender, problem: str, budget: Budget, seed: int = 0, workers: int = 1
) -> tuple[Settings, dict[str, Any]]:
    """The settings of a contender's run, and those of them that stand above the preset's.

    Raises InputError where they do not go together.
    """
    own = {**budget.given(problem), **(contender.settings or {}), "seed": seed, "workers": workers}
    if own.get("method", SPO) != SPO:
        own.pop("update", None)  # it teaches no model, whatever the budget says
    return presets.settings(problem, budget.presets[problem], **own), own


def folder(contender: Contender, problem: str, out: Path, seed: int) -> Path:
    """Where a contender's run lies."""
    return out / "discovery" / f"{problem}-{contender.name}-seed{seed}"
