"""Presets: TOML files of settings, and their merge with settings that a user gives.

The paper's presets are complete; the others list what they change. A file has a table for each
group of settings, and [problems.NAME.GROUP] for one problem alone. Settings of the problem, and of
a model of the package, come in between: see `settings`.
"""

import difflib
import json
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from types import NoneType
from typing import Any

from spo_jax.config import FIELDS, GROUPS, Settings
from spo_jax.config.fields import closest, converted, kinds, nearest, retired
from spo_jax.constants import EMBEDDED, ENDPOINT, LEARNERS, OWN_MODELS, SPO, WITH_MODEL
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError, require_kind

PRESETS = ("smoke", "quick", "standard", "real-small", "hosted", "paper-tsp", "paper-cvrp")
DEFAULT_PRESET = "quick"
# How rollouts search, by name: settings above a preset's, and below those that are given.
# "solve" is that of `spo solve` in little: its work ends a rollout, after about the CPU seconds of
# one of the paper's. Measured in docs/research/tuning.md.
SEARCHES: Mapping[str, Mapping[str, Any]] = {
    "paper": {"start": "random", "acceptance": "improving", "work": None},
    "solve": {
        "start": "construction",
        "acceptance": "record-to-record",
        "steps": 2000,
        "work": 400.0,
        "validation_steps": 10_000,
    },
}
_OPTIONS = ("preset", "out", "resume", "rewind", "dump_config")  # of spo discover, but no settings


def settings(problem: str, preset: str = DEFAULT_PRESET, **flat: Any) -> Settings:
    """The settings of a run: the problem's own, a preset's, then those given by flat name.

    preset: one of PRESETS, or the path of a TOML file of settings. Among those given `search` is no
    setting but a name of SEARCHES: see `with_search`. A model that is given is to be
    used: the generator is "model" then, unless it is another that has one; with base_url, "openai".
    A small model learns with other numbers than the paper's 9B: where a model of the package writes
    the programs, its own settings stand above those of the package's presets, and below what a
    person wrote; and so does the validation by which the baselines choose their pair (Appendix C).
    Raises InputError for an unknown preset or setting (naming the closest) and unlawful values.
    """
    return Settings.make(**_merged(_layers(problem, preset, flat)))


def with_search(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that are given, with those that `search` among them stands for, and without it.

    Those that are given themselves stay. Raises InputError for another name than in SEARCHES.
    """
    settings = dict(given)
    name = settings.pop("search", None)
    if name is None:
        return settings
    if not isinstance(name, str) or name not in SEARCHES:
        raise InputError(f"search is {name!r:.80}; it must be one of {', '.join(SEARCHES)}")
    return dict(SEARCHES[name]) | settings


def dumped(config: Settings, preset: str, given: dict[str, Any]) -> str:
    """The settings that came of a preset and those given, as a preset of the same run.

    What stands there only because a model of the package writes the programs, or because none does,
    is a comment, and `update` is as it was asked for: with another generator the file says what the
    preset said.
    """
    layers = _layers(config.problem, preset, given)
    merged = _merged(layers)
    asked = {
        "update": merged.get("update", "auto"),
        "mend": merged.get("mend"),
        "prompts_style": merged.get("prompts_style", "auto"),
    }
    persons = [each for each in layers[_persons(preset) :] if each is not _OWN]
    implied = set(_OWN) - set(_merged(persons))
    if _OWN in layers:
        return to_toml(config, asked, dict.fromkeys(implied, "a model of the package"))
    values, without = config.flat(), Settings.make(**get_problem(config.problem).settings).flat()
    others = {name for name in implied if values[name] == without[name]}
    return to_toml(config, asked, dict.fromkeys(others, "another model"))


def _persons(preset: str) -> int:
    """How many layers are below what a person wrote: the problem's, and a preset of the package."""
    return 2 if preset in PRESETS else 1


def _layers(problem: str, preset: str, flat: dict[str, Any]) -> list[Mapping[str, Any]]:
    """What `settings` merges, the later of two above the other, with _OWN where it holds."""
    values, flat = read_preset(preset, problem), with_search(flat)
    get_problem(values.get("problem", problem))
    if values.get("problem", problem) != problem:
        raise InputError(f"preset {preset} is for {values['problem']}, not for {problem}")
    if flat.get("base_url") is not None:
        flat.setdefault("generator", ENDPOINT)
    if "model" in flat and values.get("generator") not in WITH_MODEL:
        flat.setdefault("generator", "model")
    if "model" in flat and flat.get("generator", "model") not in WITH_MODEL:
        raise InputError(
            f"model is {flat['model']}, but generator is {flat['generator']}, which uses "
            "no model; leave out one of them"
        )
    layers = [get_problem(problem).settings, values, flat, {"problem": problem}]
    chosen = Settings.make(**_merged(layers))
    own = _persons(preset)
    if chosen.generator.name in LEARNERS and chosen.generator.model in OWN_MODELS:
        layers.insert(own, _OWN)
    if chosen.search.method != SPO and chosen.search.finalists:
        layers.insert(own, {"select": "validation"})
    return layers


def problem_of(preset: str) -> str | None:
    """The problem that a preset is for, where it is for one. Raises InputError as `settings`."""
    return read_preset(preset, "").get("problem")


def read_preset(preset: str, problem: str) -> dict[str, Any]:
    """What a preset of the package, or a TOML file, says of settings, by flat name."""
    require_kind("preset", preset, str, f"a text: {', '.join(PRESETS)}, or the path of a file")
    if preset in PRESETS:
        return _flat(_packaged(preset), preset, problem)
    if not preset.endswith(".toml") and not Path(preset).exists():
        raise InputError(f"unknown preset {preset!r}{closest(preset, PRESETS)}")
    try:
        if Path(preset).exists() and not Path(preset).is_file():
            raise OSError("not a regular file")
        return _flat(Path(preset).read_text("utf-8-sig"), preset, problem)
    except UnicodeDecodeError:
        raise InputError(f"cannot read preset {preset}: it is not UTF-8") from None
    except OSError as error:
        raise InputError(f"cannot read preset {preset}: {error.strerror or error}") from None


def to_toml(
    settings: Settings,
    asked: Mapping[str, Any] | None = None,
    implied: Mapping[str, str] | None = None,
    only: Collection[str] | None = None,
) -> str:
    """Settings as a preset, each with its help.

    asked: values to write instead, by flat name. implied: settings that are comments, and for which
    model they hold. only: the flat names to write, by default all.
    """
    lines, values, group = [], settings.flat() | dict(asked or {}), ""
    implied = implied or {}
    for name, each in FIELDS.items():
        if only is not None and name not in only:
            continue
        if each.group != group:
            group = each.group
            lines += ["", f"[{group}]"]
        mark = f"# for {implied[name]}: " if name in implied else ""
        lines += [f"# {each.help}", f"{mark}{each.name} = {_toml(values[name])}"]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(n)} = {_toml(v)}" for n, v in value.items()) + "}"
    if isinstance(value, float):
        return repr(value)
    text = "none" if value is None else value
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _packaged(name: str) -> str:
    return resources.files("spo_jax").joinpath(f"presets/{name}.toml").read_text("utf-8")


def _flat(text: str, preset: str, problem: str) -> dict[str, Any]:
    """The settings in a TOML text by flat name, those of `problem` above the others."""
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"preset {preset} is not TOML: {error}") from None
    where = f"preset {preset}"
    problems = _table(tables.pop("problems", {}), "problems", where)
    for name in problems:
        if ":" not in name:  # a module need not be there for other problems
            get_problem(name)
    both = {name: dict(_named(_table(t, name, where), where)) for name, t in problems.items()}
    return dict(_named(tables, where)) | both.get(problem, {})


def _named(tables: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    """The settings in tables, by flat name. Raises InputError for a key that is not there."""
    known = {(each.group, each.name): flat for flat, each in FIELDS.items()}
    for group, table in tables.items():
        inside = group in GROUPS
        if isinstance(table, dict) and not inside:
            near = difflib.get_close_matches(group, (*GROUPS, "problems"), n=1)
            hint = f"did you mean [{near[0]}]? There are" if near else "use"
            raise InputError(
                f"unknown table [{group}] in {where}: {hint} {', '.join(GROUPS)}, "
                f"{'and' if near else 'or'} problems.NAME.GROUP for what holds for one problem"
            )
        found = _table(table, group, where) if inside else {group: table}
        for name, value in found.items():
            place = (group if inside else "", name)
            if place not in known:
                raise InputError(f"unknown setting {name!r} in {where}{_hint(name)}")
            each = FIELDS[known[place]]
            lawful = "none" if value == "none" and NoneType in kinds(each.info.annotation) else None
            if lawful is None:
                taken = tuple(value) if isinstance(value, list) else value
                try:
                    converted(each.name, each.info, taken, strict=True)
                except InputError as error:
                    raise InputError(f"{error} ({each.place} of {where})") from None
            yield known[place], value


def _hint(name: str) -> str:
    """Where a setting of this name belongs, or the one of the nearest name."""
    if notice := retired(name):
        return f": {notice}"
    known = {each.name: each for each in FIELDS.values()} | FIELDS
    near = nearest(name, (*known, *_OPTIONS))
    if near is None:
        return ""
    if near in _OPTIONS:
        return f": {near} is an option of spo discover, and no setting"
    found = known[near]
    if found.name == name:
        return f": it belongs {found.place}"
    return f": did you mean {found.name!r} {found.place}?"


def _table(value: Any, name: str, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{name} is {value!r:.80} in {where}; it must be a table, [{name}]")
    return value


def _merged(layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One mapping of all; the later of two layers wins.

    Who says a size or a number of instances wants these, not what an earlier layer names.
    """
    found: dict[str, Any] = {}
    for layer in layers:
        for named, sampled in _INSTANCES.items():
            if not sampled.isdisjoint(layer):
                found.pop(named, None)
        _merge(found, layer)
    return found


_INSTANCES = {
    "on": {"size", "instances"},
    "validate_on": {"validation_size", "validation_instances"},
}


def _merge(found: dict[str, Any], layer: Mapping[str, Any]) -> None:
    for name, value in layer.items():
        both = isinstance(value, dict) and isinstance(found.get(name), dict)
        found[name] = found[name] | value if both else value


_OWN = _flat(_packaged(EMBEDDED), EMBEDDED, "")  # learning settings of the package's models
