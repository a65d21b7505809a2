"""Presets: TOML files of settings, and the config that comes of one and of what a person adds.

The paper's own are whole; the others say what they change. What the paper changes for the CVRP and
what the model that ships learns with come in between, see `load`.
"""

import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from spo_jax.config import Config, check_names, closest
from spo_jax.errors import InputError
from spo_jax.words import EMBEDDED, LEARNERS, SPO, WITH_MODEL

PRESETS = ("smoke", "quick", "standard", "paper-tsp", "paper-cvrp")
DEFAULT_PRESET = "quick"

# Where the paper's CVRP settings differ from its TSP settings (Appendices A.2, A.4 and A.5).
PROBLEM_DEFAULTS: dict[str, dict[str, Any]] = {
    "cvrp": {
        "panel_evolved": 2,
        "panel_classical": True,
        "max_new_tokens": 2048,
        "lora_targets": "mixers+mlp",
        "micro_batch": 2,
    }
}
_KNOWN_PROBLEMS = ("tsp", "cvrp")


def problem_of(preset: str) -> str | None:
    """The problem that a preset is for, where it is for one. Raises InputError as `load` does."""
    named = read_preset(preset, "").get("problem")
    if named is not None and not isinstance(named, str):
        raise InputError(f"problem is {named!r} in preset {preset}; it must be text")
    return named


def read_preset(preset: str, problem: str) -> dict[str, Any]:
    """The settings of a preset of the package, or of a TOML file of the user's own.

    A table named like a problem holds settings for that problem alone.
    """
    if preset.endswith(".toml"):
        try:
            if Path(preset).exists() and not Path(preset).is_file():
                raise OSError("not a regular file")
            text = Path(preset).read_text("utf-8")
        except (OSError, ValueError) as error:
            raise InputError(f"cannot read preset {preset}: {error}") from None
    elif preset in PRESETS:
        text = _packaged(preset)
    else:
        raise InputError(f"unknown preset {preset!r}{closest(preset, PRESETS)}")
    return _settings(text, preset, problem)


def _packaged(name: str) -> str:
    return resources.files("spo_jax").joinpath(f"presets/{name}.toml").read_text("utf-8")


def _settings(text: str, preset: str, problem: str) -> dict[str, Any]:
    """The settings in a TOML text, those of `problem` merged in."""
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"preset {preset} is not TOML: {error}") from None
    tables = {name: values.pop(name) for name in list(values) if isinstance(values[name], dict)}
    for name, table in tables.items():
        if name not in _KNOWN_PROBLEMS and ":" not in name:
            hint = closest(name, _KNOWN_PROBLEMS)
            raise InputError(f"unknown problem {name!r} in preset {preset}{hint}")
        check_names(table, f"preset {preset}")
    check_names(values, f"preset {preset}")
    return values | tables.get(problem, {})


def load(
    problem: str, preset: str = DEFAULT_PRESET, overrides: Mapping[str, Any] | None = None
) -> Config:
    """The config of a run: the paper's defaults for `problem`, a preset, then `overrides`.

    preset: one of PRESETS, or the path of a TOML file of settings. A model among the overrides
    means that it is to be used: the generator is "model" then, unless it is another that has one.
    A small model learns with other numbers than the paper's 9B: where the model that ships writes
    the programs, its own settings stand above those of the package's presets, and below what a
    person wrote; and so does the validation by which the baselines choose their pair (Appendix C).
    Raises InputError for an unknown preset or setting (naming the closest) and unlawful values.
    """
    overrides = dict(overrides or {})
    check_names(overrides, "the options")
    values = read_preset(preset, problem)
    if values.get("problem", problem) != problem:
        raise InputError(f"preset {preset} is for {values['problem']}, not for {problem}")
    if "model" in overrides and values.get("generator") not in WITH_MODEL:
        overrides.setdefault("generator", "model")
    if "model" in overrides and overrides.get("generator", "model") not in WITH_MODEL:
        raise InputError(
            f"model is {overrides['model']}, but generator is {overrides['generator']}, which uses "
            "no model; leave out one of them"
        )
    layers = [PROBLEM_DEFAULTS.get(problem, {}), values, overrides, {"problem": problem}]
    chosen = Config(**_merged(layers))
    if chosen.generator in LEARNERS and chosen.model == EMBEDDED:
        learning = _settings(_packaged(EMBEDDED), EMBEDDED, problem)
        layers.insert(2 if preset in PRESETS else 1, learning)
    if chosen.method != SPO and chosen.finalists:
        layers.insert(2 if preset in PRESETS else 1, {"select": "validation"})
    return Config(**_merged(layers))


def _merged(layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One mapping of all; the later of two layers wins."""
    return {name: value for layer in layers for name, value in layer.items()}
