"""The contents of manifest.json: what a run is and what it ran on; and the checks of a resume.

Heavy imports happen inside, because commands import this.
"""

import hashlib
import importlib.metadata
import os
import platform
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spo_jax import __version__, jsontext
from spo_jax.config import Settings
from spo_jax.config.fields import RETIRED, retired
from spo_jax.constants import ENDPOINT, LEARNERS, VLLM, WITH_MODEL
from spo_jax.envs.problem import Instance
from spo_jax.errors import InputError
from spo_jax.program import Game

if TYPE_CHECKING:
    from spo_jax.search.sampling.start import StartPair

PACKAGES = ("jax", "jaxlib", "numpy", "flax", "optax", "orbax-checkpoint", "tokenizers")

_KINDS: dict[str, type] = {  # what is read of a manifest; all but the config may be missing
    **dict.fromkeys(
        ("config", "versions", "code", "model", "peak_memory_gb", "objects", "game"), dict
    ),
    **dict.fromkeys(("preset", "variant", "prompts"), str),
    "rounds": int,
    "maximise": bool,
    **dict.fromkeys(("instances", "validation", "start_pairs", "nodes"), list),
}


def parse(data: bytes) -> dict[str, Any]:
    """The contents of a manifest.json. Raises ValueError where they are no manifest."""
    found = jsontext.parse(data)
    if not isinstance(found, dict) or not isinstance(found.get("config"), dict):
        raise ValueError("it holds no config")
    for name, kind in _KINDS.items():
        value = found.get(name)
        if value is not None and type(value) is not kind:
            raise ValueError(f"{name} is {_brief(value)}, where a {kind.__name__} is due")
    texts = {
        n: v
        for name in ("versions", "model", "objects")
        for n, v in (found.get(name) or {}).items()
    }
    texts["commit"] = (found.get("code") or {}).get("commit", "")
    for name, value in texts.items():
        if not isinstance(value, str):
            raise ValueError(f"{name} is {_brief(value)}, where a text is due")
    for each in found.get("start_pairs") or ():
        if not isinstance(each, dict) or sorted(each) != ["destroy", "from", "repair"]:
            raise ValueError(f"start_pairs holds {_brief(each)}")
    model = found.get("model") or {}
    if model and "name" not in model and not {"folder", "weights", "tokenizer"} <= model.keys():
        raise ValueError("model has no folder, weights and tokenizer")
    if (rounds := found.get("rounds")) is not None and not 0 <= rounds < 2**31:
        raise ValueError(f"rounds is {_brief(rounds)}")
    Game.of_json(found.get("game"))
    before_them = {"kit": "none", "mend": 0, "prompts_style": "paper"}
    for name, before in before_them.items():  # of a run from before there was one
        found["config"].setdefault(name, before)
    on = {name: found["config"].pop(name, off) for name, off in RETIRED.items()}
    on = {name: value for name, value in on.items() if value != RETIRED[name]}
    if on:
        found["retired"] = on
    Settings.make(**found["config"])
    return found


def _brief(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 40 else text[:37] + "..."


def manifest(
    settings: Settings, preset: str, layers: Mapping[str, bool], **more: Any
) -> dict[str, Any]:
    """A run's config and preset, and what it runs on. layers: of the sandbox, which of them hold.

    more: where it is not None, `model`: see `model_of`; `variant`, `rounds`: what its method is and
    how many rounds it takes, where that is not SPO; `prompts`: the digest of templates of the
    user's own; `maximise`: True where costs in the database are negatives; `game`: that of its
    programs, where it is not destroy and repair; `objects`: by option,
    the names of objects that were passed; `start_pairs`: where they came from and their digests.
    Raises InputError for layers of a user's evaluator that are something else.
    """
    if not isinstance(layers, Mapping):
        name = settings.evaluation.evaluator
        raise InputError(
            f"evaluator {name!r} has layers of type {type(layers).__name__}: they must say by name "
            "which of the sandbox's layers hold, as {}"
        )
    return {
        "config": settings.flat(),
        "preset": preset,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "versions": versions(),
        "code": _checkout(),
        "machine": {
            "cpus": os.cpu_count(),
            "usable_cpus": len(os.sched_getaffinity(0)),
            "cpu": _cpu_model(),
            "system": platform.system(),
            "kernel": platform.release(),
        },
        "sandbox": dict(layers),
        **{name: value for name, value in more.items() if value is not None},
    }


def shape_of(manifest: Mapping[str, Any], settings: Settings) -> tuple[int, int]:
    """How many training instances I and seeds S the pairs of a run have scores on."""
    evaluation = settings.evaluation
    return len(manifest.get("instances") or ()) or evaluation.instances, evaluation.rollouts


def instances_of(
    training: Sequence[Instance], validation: Sequence[Instance]
) -> dict[str, list[dict[str, str | int]]]:
    """Names, sizes and digests of what a run trains and validates on."""
    from spo_jax.search.instances import record

    return {"instances": record(training), "validation": record(validation)}


def check_instances(stored: Mapping[str, Any], now: Mapping[str, Any], path: Path) -> None:
    """Raises InputError where a run in `path` would go on with other instances than it began with.

    now: see `instances_of`.
    """
    for what, flag in (("instances", "--on"), ("validation", "--validate-on")):
        began = [each["digest"] for each in stored.get(what, now[what])]
        if began != [each["digest"] for each in now[what]]:
            role = "training" if what == "instances" else what
            raise InputError(
                f"{path} began with other {role} instances ({len(began)} then, {len(now[what])} "
                f"now); name files that hold those of then with {flag}, or begin a new run"
            )


def check_start_pairs(stored: Mapping[str, Any], now: "Sequence[StartPair]", path: Path) -> None:
    """Raises InputError where a run in `path` would go on with others than it began with.

    now: those of now.
    """
    from spo_jax.search.sampling.start import record

    began, found = stored.get("start_pairs") or [], record(now)
    if [each | {"from": ""} for each in began] != [each | {"from": ""} for each in found]:
        raise InputError(
            f"{path} began with other start pairs ({len(began)} then, {len(found)} now); "
            "name files that hold those of then with --start-pairs, or begin a new run"
        )


def model_of(settings: Settings) -> dict[str, str] | None:
    """The model that writes a run's programs: its folder, digests of its weights and tokenizer, and
    the devices it runs on, how well these repeat what they did, or vLLM's version where that is
    known; of one at an endpoint, its name and where that is. None where no model writes. Raises
    InputError where it is not there.
    """
    if settings.generator.name == ENDPOINT:
        return {"name": settings.generator.model, "base_url": str(settings.endpoint.base_url)}
    if settings.generator.name not in LEARNERS:
        return None
    import jax

    from spo_jax.rl.backend import devices, repeats
    from spo_jax.rl.policy import fingerprint, model_folder

    folder = model_folder(settings.generator.model)
    known, several = devices(), len(jax.devices()) > 1
    used = f"1 of {known}" if several else known
    found = {"folder": str(folder), **fingerprint(folder), "devices": used}
    if settings.generator.name == VLLM:
        from spo_jax.rl.vllm.server import version

        if sampler := version(settings):
            found["vllm"] = sampler
    else:
        found["repeats"] = repeats()
    return found


def idle_devices(model: Mapping[str, str] | None) -> str:
    """A sentence if a model leaves devices unused, else ""."""
    used = (model or {}).get("devices", "")
    if not used.startswith("1 of "):
        return ""
    return f"The model uses {used}; hide the others (CUDA_VISIBLE_DEVICES) to use them elsewhere"


def inexact_resume(model: Mapping[str, str] | None) -> str:
    """A sentence if a resumed run may differ from an uninterrupted one in rounding, else ""."""
    if (model or {}).get("repeats", "bit for bit") == "bit for bit":
        return ""
    return (
        "On a GPU a resumed run equals an uninterrupted one up to rounding, not bit for bit; "
        "--deterministic, given when a run begins, makes them equal, but slower"
    )


def check_model(began: Mapping[str, str] | None, now: Mapping[str, str] | None, path: Path) -> None:
    """Raises InputError where a run in `path` would go on with another model than it began with."""
    if began is None or now is None:
        return
    if "name" in now and (then := began.get("name")) != now["name"]:
        raise InputError(
            f"{path} began with another model: {then} then, {now['name']} now; "
            "go on with that one, or begin a new run"
        )
    if "name" in now:
        return
    for what in ("weights", "tokenizer"):
        if began.get(what) != now[what]:
            raise InputError(
                f"{path} began with another model: the {what} in {now['folder']} differ from those "
                f"of then in {began.get('folder')}; name a folder that holds them with --model"
            )


def check_prompts(stored: Mapping[str, Any], now: str | None, path: Path) -> None:
    """Raises InputError where a run in `path` would go on with other templates than it began with.

    now: their digest.
    """
    began = stored.get("prompts")
    if began == now:
        return
    if began is None:
        raise InputError(f"{path} began with the package's prompt templates; leave out --prompts")
    raise InputError(
        f"{path} began with other prompt templates than those of now; "
        "name a folder that holds them with --prompts, or begin a new run"
    )


def check_game(stored: Mapping[str, Any], now: Game, path: Path) -> None:
    """Raises InputError where a run in `path` would go on with another game than it began with."""
    began = Game.of_json(stored.get("game"))
    if began != now:
        said = zip(_said(began), _said(now), strict=True)
        then, other = next((then, other) for then, other in said if then != other)
        raise InputError(
            f"{path} began with another game: {then} then, {other} now; begin a new run"
        )


def _said(game: Game) -> Iterator[str]:
    """What tells games apart, in words."""
    sides = game.leader, game.follower
    yield " and ".join(game.functions)
    yield " and ".join(game.handed)
    yield " and ".join(each.noun for each in sides)
    yield " and ".join(each.plural for each in sides)
    yield game.search


def check_objects(stored: Mapping[str, Any], now: Mapping[str, str], path: Path) -> None:
    """Raises InputError unless a run in `path` goes on with objects of the names it began with."""
    began = stored.get("objects") or {}
    if missing := {n: v for n, v in began.items() if now.get(n) != v}:
        arguments = ", ".join(f"{name}={value}" for name, value in missing.items())
        raise InputError(
            f"{path} began with objects that its settings cannot name: go on from Python, with "
            f"spo_jax.discover(path=..., resume=True, {arguments})"
        )
    if others := now.keys() - began.keys():
        raise InputError(f"{path} began without {' and '.join(sorted(others))} of the caller's own")


def versions() -> dict[str, str]:
    """Versions of what a result depends on."""
    found = {"spo_jax": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def other_software(stored: Mapping[str, Any], model: Mapping[str, str] | None = None) -> str:
    """A warning if a run resumes with other software or devices than it began with, else ""."""
    began, now = dict(stored.get("versions") or {}), versions()
    if "commit" in (stored.get("code") or {}) and "commit" in (code := _checkout()):
        began["commit"], now["commit"] = _named(stored["code"]), _named(code)
    if model is not None and stored.get("model"):
        for what in ("devices", "base_url", "vllm"):
            if what in stored["model"] and what in model:
                began[what], now[what] = stored["model"][what], model[what]
    changes = [
        f"{name} {began[name]} -> {now.get(name, 'none')}"
        for name in began
        if began[name] != now.get(name)
    ]
    if not changes:
        return ""
    return (
        f"Warning: this run began with other software or devices ({', '.join(changes)}), "
        "so it may not end as it would have"
    )


def _named(code: Mapping[str, Any]) -> str:
    """A commit, and what was changed since: equal names are equal code."""
    changed = f" with changes {code.get('edits', '(unknown)')}" if code.get("changed") else ""
    return str(code["commit"])[:12] + changed


def _checkout() -> dict[str, Any]:
    """The commit of the source, whether it was changed since, and a digest of the changes to files
    that git knows; empty outside a checkout.
    """
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return {}

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()

    try:
        status = git("status", "--porcelain", "--", "spo_jax")
        found = {"commit": git("rev-parse", "HEAD"), "changed": bool(status)}
        if status:
            edits = status + git("diff", "HEAD", "--", "spo_jax")
            found["edits"] = hashlib.blake2b(edits.encode(), digest_size=6).hexdigest()
        return found
    except (OSError, subprocess.SubprocessError):
        return {}


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def require_no_retired(manifest: Mapping[str, Any], path: Path) -> None:
    """Raises InputError for a run, to go on with, whose settings this version has no more."""
    for name, value in (manifest.get("retired") or {}).items():
        raise InputError(
            f"{path} began with {name} = {value!r:.40}: {retired(name)}; it can be read, and only "
            "that version goes on with it"
        )


def resumed(
    stored: Settings, preset: str, given: Mapping[str, Any], asked: str | None, path: Path
) -> Settings:
    """The config that a run resumes with: its own, except settings that may change, as workers.

    given, asked: the requested settings and preset. Raises InputError if another run has them.
    """
    given = dict(given)
    if "model" in given and stored.generator.name not in WITH_MODEL:
        given.setdefault("generator", "model")
    if given.get("evaluator", "ray") != "ray":
        given.setdefault("ray_address", None)
    minutes = given.get("minutes", stored.search.minutes)
    if (minutes is None) != (stored.search.minutes is None):
        raise InputError(
            f"{path} began with{'out' if minutes else ''} --minutes, so it goes on "
            f"with{'out' if minutes else ''} it; begin a new run"
        )
    changes = [
        f"{name} is {stored.flat()[name]} there and {given[name]} here"
        for name in stored.changed(given)
    ]
    if asked is not None and asked != preset:
        changes.insert(0, f"the preset is {preset} there and {asked} here")
    if changes:
        raise InputError(f"{path} cannot be resumed with other settings: {'; '.join(changes)}")
    return stored.replace(**given)
