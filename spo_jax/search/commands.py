"""What `spo discover`, `spo runs` and `spo export` do. The flags themselves are in cli.py.

Heavy imports happen inside, so that `spo --help` need not wait for them.
"""

import argparse
import dataclasses
import importlib.metadata
import os
import platform
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spo_jax import __version__, config
from spo_jax.errors import InputError

INTERRUPTED = 130  # the shell's code for a program that Ctrl-C ended


def discover(args: argparse.Namespace) -> int:
    """`spo discover PROBLEM [--preset P] [--out RUN] [--resume RUN] [settings]`.

    Returns the exit code: 0, or 130 after Ctrl-C. Raises SpoError for what the user can mend.
    """
    if getattr(args, "resume", None) is not None:
        return _resume(args)
    return _start(args)


def _start(args: argparse.Namespace) -> int:
    from spo_jax.search.store import check_new, default_folder

    preset = getattr(args, "preset", None) or config.DEFAULT_PRESET
    settings = config.load(args.problem, preset, config.overrides_from(args))
    out = getattr(args, "out", None)
    path = Path(out) if out is not None else default_folder(settings, preset)
    check_new(path)
    return _run(settings, preset, path, new=True)


def _resume(args: argparse.Namespace) -> int:
    from spo_jax.search import progress
    from spo_jax.search.store import BEST, Store, load_run

    path = Path(args.resume)
    if getattr(args, "out", None) is not None:
        raise InputError("--resume goes on in its own folder: leave out --out")
    run = load_run(path)
    settings = resumed(run.config, run.preset, args, path)
    if run.status == "finished":
        with Store.reopen(path) as store:  # a kill may have come before the last export
            store.export_best(store.best())
        print(f"{path} is finished: {run.rounds} of {settings.rounds} rounds.")
        print("\n".join(progress.closing(run.best, settings, path, path / BEST)))
        return 0
    return _run(settings, run.preset, path, new=False)


def resumed(
    stored: config.Config, preset: str, args: argparse.Namespace, path: Path
) -> config.Config:
    """The config a run goes on with: its own, but for settings that may change, as workers.

    Raises InputError where the command line asks for another run.
    """
    given = config.overrides_from(args)
    if getattr(args, "problem", None) is not None:
        given["problem"] = args.problem
    wanted = dataclasses.replace(stored, **given)
    changes = [
        f"{name} is {getattr(stored, name)} there and {getattr(wanted, name)} here"
        for name in stored.changed(wanted)
    ]
    asked = getattr(args, "preset", None)
    if asked is not None and asked != preset:
        changes.insert(0, f"the preset is {preset} there and {asked} here")
    if changes:
        raise InputError(f"{path} cannot be resumed with other settings: {'; '.join(changes)}")
    return wanted


def _run(settings: config.Config, preset: str, path: Path, *, new: bool) -> int:
    from spo_jax.envs import get_problem
    from spo_jax.envs.evaluator import Evaluator
    from spo_jax.search import progress
    from spo_jax.search.credit import get_credit
    from spo_jax.search.plugins import get_generator, get_updater
    from spo_jax.search.prompts import templates
    from spo_jax.search.rounds import Round
    from spo_jax.search.spo import Parts
    from spo_jax.search.spo import discover as algorithm
    from spo_jax.search.store import BEST, CHECKPOINTS, Store
    from spo_jax.search.validation import validate

    committed = 0
    exists = not new
    try:
        problem = get_problem(settings.problem)
        templates(settings.prompts, problem.name)
        credit = get_credit(settings.credit)
        generator = get_generator(settings.generator)
        updater = get_updater(settings.update)
        with Evaluator(
            problem,
            settings.workers,
            seed=settings.seed,
            cpu_seconds=settings.cpu_seconds,
            memory_mb=settings.memory_mb,
            on_invalid=settings.on_invalid,
            show_state=settings.state,
            unsafe=settings.unsafe_sandbox,
        ) as evaluator:
            if new:
                store = Store.create(path, manifest(settings, preset, evaluator.layers))
                exists = True
            else:
                store = Store.reopen(path)
            with store, progress.Display(settings, store.log) as display:
                state = store.state()
                committed = state.round
                if committed:
                    updater.restore(path / CHECKPOINTS, committed)
                store.export_best(state.best)
                display.say(progress.opening(settings, preset, path, committed + 1))
                if (warning := _other_versions(store.manifest)) is not None:
                    display.say(warning)

                def commit(done: Round) -> None:
                    nonlocal committed
                    updater.save(path / CHECKPOINTS, done.number)
                    store.commit(done)
                    committed = done.number
                    store.export_best(done.best)

                parts = Parts(
                    config=settings,
                    problem=problem,
                    evaluator=evaluator,
                    generator=generator,
                    credit=credit,
                    updater=updater,
                    observer=display,
                )
                algorithm(parts, state, commit)
                if settings.finalists:
                    named = store.candidates(settings.finalists)
                    store.commit_finalists(validate(settings, problem, evaluator, named, display))
                best = store.best()
                store.export_best(best)
            for line in progress.closing(best, settings, path, path / BEST):
                print(line)
        return 0
    except KeyboardInterrupt:
        if exists:
            print("\n" + progress.stopped(settings, path, committed))
        else:
            print("\nStopped before the run began; nothing was written.")
        return INTERRUPTED


# --- runs and export ------------------------------------------------------------------------------


def runs(args: argparse.Namespace) -> int:
    """`spo runs [FOLDER]`: the runs in a folder, by default ./runs, with their best J."""
    from rich.console import Console
    from rich.table import Table

    from spo_jax.search.progress import utility
    from spo_jax.search.store import list_runs, load_run

    root = Path(getattr(args, "folder", None) or "runs")
    paths = list_runs(root)
    if not paths:
        print(f"no runs in {root}; start one with: spo discover tsp")
        return 0
    columns = ("name", "problem", "preset", "rounds", "pairs", "best J", "state")
    table = Table(*columns, box=None, pad_edge=False)
    for path in paths:
        try:
            run = load_run(path)
        except InputError as error:
            table.add_row(path.name, *[""] * 5, f"unreadable: {error}")
            continue
        table.add_row(
            path.name,
            run.config.problem,
            run.preset,
            f"{run.rounds}/{run.config.rounds}",
            str(run.pairs),
            utility(run.best.utility if run.best else None),
            run.status,
        )
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 200  # a pipe has no width: keep one run on one line
    console.print(table)
    return 0


def export(args: argparse.Namespace) -> int:
    """`spo export RUN --out pair.py`: a run's best pair as a file that runs alone."""
    from spo_jax.program import save_pair
    from spo_jax.search.store import about, load_run

    run = load_run(args.run)
    if run.best is None:
        raise InputError(f"{args.run}: this run has found no valid pair yet")
    out = save_pair(args.out, run.best.pair, about(run.path, run.best))
    print(f"{out}: the pair of round {run.best.round}, J {run.best.utility:.4f}")
    return 0


# --- the manifest ---------------------------------------------------------------------------------


def manifest(settings: config.Config, preset: str, layers: Mapping[str, bool]) -> dict[str, Any]:
    """What a run is: its config and preset, and what it ran on."""
    return {
        "config": settings.to_dict(),
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
    }


def versions() -> dict[str, str]:
    """Versions of what a result depends on."""
    found = {"spo_jax": __version__, "python": platform.python_version()}
    for package in ("jax", "jaxlib", "numpy"):
        found[package] = importlib.metadata.version(package)
    return found


def _other_versions(stored: Mapping[str, Any]) -> str | None:
    """A warning where a run goes on with other software than it began with."""
    began, now = dict(stored.get("versions", {})), versions()
    if "commit" in stored.get("code", {}) and "commit" in (code := _checkout()):
        began["commit"], now["commit"] = stored["code"]["commit"][:12], code["commit"][:12]
    changes = [
        f"{name} {began.get(name)} -> {now[name]}" for name in now if began.get(name) != now[name]
    ]
    if not changes:
        return None
    return (
        f"Warning: this run began with other software ({', '.join(changes)}), "
        "so it may not end as it would have"
    )


def _checkout() -> dict[str, Any]:
    """The commit of the source and whether it was changed since; empty outside a checkout."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return {}

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()

    try:
        return {
            "commit": git("rev-parse", "HEAD"),
            "changed": bool(git("status", "--porcelain", "--", "spo_jax")),
        }
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
