"""What `spo discover`, `spo runs` and `spo export` do. The flags themselves are in cli.py.

Heavy imports happen inside, so that `spo --help` need not wait for them.
"""

import argparse
import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spo_jax import config, presets
from spo_jax.errors import InputError
from spo_jax.limits import needed, require_address_space
from spo_jax.search.runs.manifest import (
    check_instances,
    check_model,
    check_prompts,
    idle_devices,
    inexact_resume,
    instances_of,
    manifest,
    model_of,
    other_software,
)
from spo_jax.stopping import exit_code, last_words, say_farewell, take_time
from spo_jax.words import LEARNERS, VLLM, WITH_MODEL

INTERRUPTED = 130  # the shell's code for a program that Ctrl-C ended


def discover(args: argparse.Namespace) -> int:
    """`spo discover [PROBLEM] [--preset P] [--out RUN] [--resume RUN [--rewind K]] [settings]`.

    Returns the exit code: 0, or 130 after Ctrl-C, 143 after SIGTERM. Raises SpoError for what
    the user can mend.
    """
    if getattr(args, "resume", None) is not None:
        return _resume(args)
    if getattr(args, "rewind", None) is not None:
        raise InputError("--rewind goes back in a run: name it with --resume RUN")
    return _start(args)


def _start(args: argparse.Namespace) -> int:
    from spo_jax.search.runs.store import check_new, default_folder

    preset = getattr(args, "preset", None) or presets.DEFAULT_PRESET
    problem = args.problem if args.problem is not None else presets.problem_of(preset)
    if problem is None:
        raise InputError(
            "which problem? e.g. spo discover tsp, or --resume RUN to go on with a run"
        )
    settings = presets.load(problem, preset, config.overrides_from(args))
    if settings.generator in LEARNERS and Path(settings.model).is_dir():
        settings = dataclasses.replace(settings, model=str(Path(settings.model).resolve()))
    if settings.prompts is not None:
        settings = dataclasses.replace(settings, prompts=str(Path(settings.prompts).resolve()))
    out = getattr(args, "out", None)
    path = Path(out) if out is not None else default_folder(settings, preset)
    check_new(path)
    return _run(settings, preset, path, new=True)


def _resume(args: argparse.Namespace) -> int:
    from spo_jax.search.runs import progress
    from spo_jax.search.runs.store import BEST, Store, load_run

    path = Path(args.resume)
    if getattr(args, "out", None) is not None:
        raise InputError("--resume goes on in its own folder: leave out --out")
    run = load_run(path)
    settings = resumed(run.config, run.preset, args, path)
    rewind = getattr(args, "rewind", None)
    if run.status == "finished" and rewind is None:
        with Store.reopen(path) as store:  # a kill may have come before the last export
            where = store.export_best(store.best()) or path / BEST
        print(f"{path} is finished: {run.rounds} of {run.planned} rounds.")
        print("\n".join(progress.closing(run.best, settings, path, where, run.finals)))
        return 0
    return _run(settings, run.preset, path, new=False, rewind=rewind)


def resumed(
    stored: config.Config, preset: str, args: argparse.Namespace, path: Path
) -> config.Config:
    """The config a run goes on with: its own, but for settings that may change, as workers.

    Raises InputError where the command line asks for another run.
    """
    given = config.overrides_from(args)
    if getattr(args, "problem", None) is not None:
        given["problem"] = args.problem
    if "model" in given and stored.generator not in WITH_MODEL:
        given.setdefault("generator", "model")
    changes = [
        f"{name} is {getattr(stored, name)} there and {given[name]} here"
        for name in stored.changed(given)
    ]
    asked = getattr(args, "preset", None)
    if asked is not None and asked != preset:
        changes.insert(0, f"the preset is {preset} there and {asked} here")
    if changes:
        raise InputError(f"{path} cannot be resumed with other settings: {'; '.join(changes)}")
    return dataclasses.replace(stored, **given)


def _run(
    settings: config.Config, preset: str, path: Path, *, new: bool, rewind: int | None = None
) -> int:
    from spo_jax.search.runs import progress

    committed = 0
    exists = not new

    def farewell() -> None:
        if exists:
            print("\n" + progress.stopped(settings, path, committed))
        else:
            print("\nStopped before the run began; nothing was written.")

    last_words(farewell)
    try:
        from spo_jax.envs.problems import get_problem
        from spo_jax.envs.report.evaluation import cache_folder
        from spo_jax.envs.run.evaluator import get_evaluator
        from spo_jax.envs.specs import absolute
        from spo_jax.envs.run.shown import HIDDEN, OBSERVED
        from spo_jax.rl.backend import ask_same_bits, keep_compiled, share_devices
        from spo_jax.search.credit import get_credit
        from spo_jax.search.methods import get_method, rounds_in, variant_of
        from spo_jax.search.plugins import get_panel, get_survivors, writer_and_learner
        from spo_jax.search.writing.prompts import Templates
        from spo_jax.search.rounds import Round
        from spo_jax.search.parts import Parts
        from spo_jax.search.spo import discover as algorithm
        from spo_jax.search.runs.store import BEST, CHECKPOINTS, Store
        from spo_jax.search.utility import get_utility
        from spo_jax.search.validation import FEWEST_CONTROLS, validate

        require_address_space(needed(program=settings.memory_mb))
        if settings.deterministic:  # before a module of the user's can look at a device
            ask_same_bits()
        problem = get_problem(settings.problem)
        settings = dataclasses.replace(
            settings, on=absolute(settings.on), validate_on=absolute(settings.validate_on)
        )
        instances = instances_of(settings, problem)
        templates = Templates.read(settings.prompts, problem)  # once for the whole run
        prompts = templates.digest if settings.prompts is not None else None
        credit = get_credit(settings.credit)
        taught = settings.learning_credit
        learning_credit = None if taught is None else get_credit(taught)
        utility = get_utility(settings.utility)
        survivors, panel = get_survivors(settings.survivors), get_panel(settings.panel)
        method = get_method(settings)
        if settings.generator == VLLM:
            share_devices(in_turns=settings.residency != "both")
        uncached = keep_compiled(cache_folder() / "compiled")
        model = model_of(settings)
        generator, updater = writer_and_learner(settings)
        variant = variant_of(method, settings, generator) if method else None
        with (
            ended(generator),
            get_evaluator(settings.evaluator)(
                problem,
                settings.workers,
                seed=settings.seed,
                cpu_seconds=settings.cpu_seconds,
                memory_mb=settings.memory_mb,
                on_invalid=settings.on_invalid,
                shown=OBSERVED if settings.state else HIDDEN,
                unsafe=settings.unsafe_sandbox,
            ) as evaluator,
        ):
            if new:
                rounds = rounds_in(method, settings) if method else None
                what = manifest(
                    settings, preset, evaluator.layers, model, variant, rounds, prompts, instances
                )
                store = Store.create(path, what)
                exists = True
            else:
                store = Store.reopen(path)
            with store, progress.Display(settings, store.log) as display:
                check_model(store.manifest.get("model"), model, path)
                check_prompts(store.manifest, prompts, path)
                check_instances(store.manifest, instances, path)
                committed = store.last_round(rewind)
                if committed:
                    updater.restore(path / CHECKPOINTS, committed)
                if rewind is not None:  # not before what it goes on from is there
                    store.rewind(rewind)
                    display.note(f"went back to round {rewind}")
                state = store.state()
                generator.open(path, display.remark)
                unwritten = store.export_best(state.best)
                display.say(progress.opening(settings, preset, path, committed + 1))
                if variant is not None:
                    display.say(f"Method: {variant}")
                other = other_software(store.manifest, model)
                warnings = (uncached, idle_devices(model), inexact_resume(model), other, unwritten)
                for warning in warnings:
                    if warning:
                        display.say(warning)

                def commit(done: Round) -> None:
                    nonlocal committed
                    updater.save(path / CHECKPOINTS, done.number)
                    store.commit(done, display.remark)
                    committed = done.number
                    store.export_best(done.best)

                parts = Parts(
                    config=settings,
                    problem=problem,
                    evaluator=evaluator,
                    generator=generator,
                    credit=credit,
                    learning_credit=learning_credit,
                    utility=utility,
                    updater=updater,
                    survivors=survivors,
                    panel=panel,
                    observer=display,
                    templates=templates,
                )
                algorithm(parts, state, commit, method)
                display.ended()
                if settings.finalists:
                    named = store.candidates(settings.finalists)
                    others = store.controls(max(settings.finalists, FEWEST_CONTROLS), named)
                    measured = validate(
                        settings, problem, evaluator, named, others, display, utility
                    )
                    store.commit_finals(measured, display.remark)
                best, finals = store.best(), store.finals()
                where = store.export_best(best) or path / BEST
                if bill := progress.bill(store.totals()):
                    display.say(bill)
            for line in progress.closing(best, settings, path, where, finals):
                print(line)
        return 0
    except KeyboardInterrupt as stop:
        say_farewell(farewell)
        return exit_code(stop)


@contextlib.contextmanager
def ended(generator: Any) -> Iterator[None]:
    """Closes a generator at the end."""
    try:
        yield
    finally:
        take_time()  # a server of ours ends, and gives the card back
        generator.close()


# --- runs and export ------------------------------------------------------------------------------


def runs(args: argparse.Namespace) -> int:
    """`spo runs [FOLDER]`: the runs in a folder, by default ./runs, with their best J."""
    from rich.console import Console
    from rich.table import Table

    from spo_jax.search.runs.progress import utility
    from spo_jax.search.runs.store import list_runs, load_run

    root = Path(getattr(args, "folder", None) or "runs")
    paths = list_runs(root)
    if not paths:
        print(f"no runs in {root}; start one with: spo discover tsp")
        return 0
    columns = ("name", "problem", "method", "preset", "rounds", "pairs", "best J", "state")
    table = Table(*columns, box=None, pad_edge=False)
    for path in paths:
        try:
            run = load_run(path)
        except InputError as error:
            table.add_row(path.name, *[""] * 6, f"unreadable: {error}")
            continue
        table.add_row(
            path.name,
            run.config.problem,
            run.config.method,
            run.preset,
            f"{run.rounds}/{run.planned}",
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
    """`spo export RUN [--out FILE.py] [--adapters DIR]`: what a run found, and what it taught."""
    from spo_jax.envs.problems import get_problem
    from spo_jax.program import save_pair
    from spo_jax.search.runs.store import CHECKPOINTS, Store, about, load_run

    out, adapters, select = (getattr(args, name, None) for name in ("out", "adapters", "select"))
    if out is None and adapters is None:
        raise InputError("nothing to export: give --out FILE.py, --adapters DIR, or both")
    run = load_run(args.run)
    if out is not None:
        if run.best is None:
            raise InputError(f"{args.run}: this run has found no valid pair yet")
        best = run.best if select is None else run.finals.chosen(select)
        if best is None:
            raise InputError(
                f"{args.run}: no pair of this run was measured for --select {select}: its rounds "
                "are not over, or finalists is 0; leave --select out"
            )
        interface = get_problem(run.config.problem).interface
        written = save_pair(out, best.pair, about(run.path, best), interface)
        print(f"{written}: the pair of round {best.round}, J {best.utility:.4f}")
    if adapters is not None:
        if run.config.update != "grpo" or not run.rounds:
            raise InputError(f"{args.run}: this run has taught no adapters (yet)")
        from spo_jax.rl.policy import export_adapters

        with Store.reopen(run.path):  # no other process may write checkpoints meanwhile
            export_adapters(run.config, run.path / CHECKPOINTS, run.rounds, adapters)
        print(f"{adapters}: the adapters after round {run.rounds}, destroy and repair")
    return 0
