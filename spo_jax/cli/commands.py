"""The commands `spo discover`, `runs`, `report`, `watch`, `export`, `task` and `check`.

Their options are in options.py.
"""

import argparse
import math
import os
from pathlib import Path

from spo_jax import presets
from spo_jax.cli import flags
from spo_jax.config.updates import UPDATES
from spo_jax.envs.files.textfiles import write_atomically
from spo_jax.errors import InputError
from spo_jax.stopping import exit_code, last_words, say_farewell


def discover(args: argparse.Namespace) -> int:
    """`spo discover [PROBLEM] [--preset P] [--out RUN] [--resume RUN [--rewind K]] [settings]`.

    Returns the exit code: 0, 1 without a valid pair, or 130 after Ctrl-C, 143 after SIGTERM. Raises
    SpoError for what the user can mend.
    """
    from spo_jax.runs.discover import prepare
    from spo_jax.runs.folders import read_manifest
    from spo_jax.runs.tracking import get_factories
    from spo_jax.search.plugins import require_parts

    resume = args.resume is not None
    if resume:
        read_manifest(args.resume)  # raises where there is none to resume
        if args.out is not None:
            raise InputError("--resume goes on in its own folder: leave out --out")
    path = args.resume if resume else args.out
    given = flags.given(args)
    if args.search is not None:
        given["search"] = args.search
    discovery = prepare(
        args.problem,
        preset=args.preset,
        given=given,
        path=None if path is None else Path(path),
        resume=resume,
        rewind=args.rewind,
    )
    if getattr(args, "dump_config", False):
        config = discovery.config
        new = discovery.new
        if new:
            require_parts(config)
        text = presets.dumped(config, discovery.preset, given) if new else presets.to_toml(config)
        print(text, end="")
        return 0
    discovery.verbose, discovery.report = True, getattr(args, "report", False)
    discovery.track = get_factories(getattr(args, "track", None))
    discovery.opened = getattr(args, "began", discovery.opened)

    def farewell() -> None:
        print("\n" + discovery.farewell())

    last_words(farewell)
    try:
        found = discovery.run()
    except KeyboardInterrupt as stop:
        say_farewell(farewell)
        return exit_code(stop)
    return 0 if found.best else 1


def runs(args: argparse.Namespace) -> int:
    """`spo runs [FOLDER]`: the runs in a folder, by default ./runs, with their best J and gap."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from spo_jax.runs.display.lines import percent, utility
    from spo_jax.runs.folders import list_runs
    from spo_jax.runs.report.text import visible
    from spo_jax.runs.run import load_run

    if args.folder is not None and not Path(args.folder).is_dir():
        raise InputError(f"{args.folder}: no such folder")
    root = Path(args.folder or "runs")
    paths = list_runs(root)
    if not paths:
        print(f"no runs in {root}; start one with: spo discover tsp")
        return 0
    columns = ("name", "problem", "method", "preset", "rounds", "pairs", "best J", "gap", "state")
    table = Table(*columns, box=None, pad_edge=False)
    for path in paths:
        name = Text(visible(path.name))  # brackets in it are no markup
        try:
            run = load_run(path)
            gap = run.gap(run.best.pair if run.best else None)
        except InputError as error:
            table.add_row(name, *[""] * 7, Text(visible(f"unreadable: {error}")))
            continue
        table.add_row(
            name,
            run.config.problem,
            run.config.search.method,
            run.preset,
            run.progress.replace(" of ", "/"),
            str(run.evaluated),
            utility(run.best.utility if run.best else None),
            "" if math.isnan(gap) else percent(gap),
            run.status,
        )
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 200  # a pipe has no width: keep one run on one line
    console.print(table)
    return 0


def report(args: argparse.Namespace) -> int:
    """`spo report RUN [RUN ...] [--out FILE.html]`: a run, or a comparison, as one HTML page."""
    from spo_jax.runs.report import COMPARISON, NAME
    from spo_jax.runs.report.write import none_older, report
    from spo_jax.runs.run import load_run

    if len(args.runs) > 1:
        from spo_jax.runs.report import compare

        compared = [load_run(folder) for folder in args.runs]
        if len({each.path.resolve() for each in compared}) < len(compared):
            raise InputError("a run is named twice: give each folder once")
        out = Path(args.out or COMPARISON)
        for each in compared:
            require_page(out, each.path)
        page = compare.page(compared)
        if "missing" in page:
            raise InputError(page["missing"])
        write_atomically(out, compare.html(page))
        print("\n".join([f"{out}: {len(page['rows'])} runs", *page["left"]]))
        return 0
    [folder] = args.runs
    with none_older(Path(folder) if args.out is None else None):
        run = load_run(folder)
        out = run.path / NAME if args.out is None else Path(args.out)
        require_page(out, run.path)
        written = report(run, out)
    print(f"{written}: {run.progress} rounds, {written.stat().st_size / 1e6:.1f} MB")
    return 0


def require_page(out: Path, run: Path) -> None:
    """Raises InputError for a file that is no page or cannot be written, before the work begins."""
    if "\0" in str(out) or out.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{str(out)!r} is no name of a page: it must end in .html")
    if out.is_dir():
        raise InputError(f"{out} is a folder: give the name of a file")
    if not out.parent.is_dir():
        raise InputError(f"{out} cannot be written: there is no folder {out.parent}")
    if not os.access(out if out.exists() else out.parent, os.W_OK):
        raise InputError(f"{out} cannot be written: permission denied")


def watch(args: argparse.Namespace) -> int:
    """`spo watch RUN...`: pages of runs while they go on, until Ctrl-C."""
    from spo_jax.runs.watch.server import Server
    from spo_jax.runs.watch.watched import found

    runs = found(args.runs)
    os.nice(5)  # the run that is shown goes first
    with Server(runs, args.host, args.port, args.token) as server:
        what = str(runs[0].path) if len(runs) == 1 else f"{len(runs)} runs"
        print(f"Watching {what} on {server.link} until Ctrl-C", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("Stopped watching; the runs go on.")
    return 0


def export(args: argparse.Namespace) -> int:
    """`spo export PAIR_OR_RUN [--problem P] [--out FILE.py [--for PURPOSE]] [--adapters DIR]`: a
    pair, of a run its best one, and a run's adapters.
    """
    from spo_jax.envs import exports
    from spo_jax.envs.run.states import parts_shown
    from spo_jax.program import save_pair
    from spo_jax.runs.database.store import Store, about
    from spo_jax.runs.folders import CHECKPOINTS
    from spo_jax.runs.pairs import is_alone, of_pair, resolve
    from spo_jax.runs.run import load_run

    if args.out is None and args.adapters is None:
        raise InputError("nothing to export: give --out FILE.py, --adapters DIR, or both")
    if args.out is None and args.purpose is not None:
        raise InputError("--for is about a file: name it with --out FILE.py")
    alone = is_alone(args.pair)
    for option in ("select", "adapters"):
        if alone and getattr(args, option) is not None:
            raise InputError(f"--{option} is about a run, and {args.pair} is a pair: leave it out")
    run = None if alone else load_run(args.pair)
    if args.out is not None:
        problem, pair, config = resolve(run or args.pair, args.problem, args.trust_pair)
        if run is None:
            header = of_pair(args.pair, problem)
            description = f"{args.pair}, for {problem.name}"
        else:
            best = run.best if args.select is None else run.finals.chosen(args.select)
            if best is None and run.finals.finalists:
                raise InputError(
                    f"{args.pair}: every finalist failed or is refused for --select {args.select}, "
                    "since it fits the training instances alone; leave --select out"
                )
            if best is None:
                raise InputError(
                    f"{args.pair}: no pair of this run was measured for --select {args.select}: "
                    "its rounds are not over, or finalists is 0; leave --select out"
                )
            pair, header = best.pair, about(run.path, best, run.names(best.pair))
            description = f"the pair of round {best.round}, J {best.utility:.4f}"
        tail, state = "", config.generator.state
        if args.purpose is not None:
            tail = exports.tail(problem, pair, args.purpose, state)
        written = save_pair(
            args.out, pair, header, problem.interface, problem.kit, tail, config.terms,
            parts_shown(state),
        )  # fmt: skip
        print(f"{written}: {description}")
    if run is not None and args.adapters is not None:
        if run.config.learning.update not in UPDATES or not run.rounds:
            raise InputError(f"{args.pair}: this run has trained no adapters (yet)")
        from spo_jax.rl.policy import export_adapters

        with Store.reopen(run.path):  # no other process may write checkpoints meanwhile
            export_adapters(run.config, run.path / CHECKPOINTS, run.rounds, args.adapters)
        print(f"{args.adapters}: the adapters after round {run.rounds}, destroy and repair")
    return 0


def task(args: argparse.Namespace) -> int:
    """`spo task FRAMEWORK [PROBLEM] --out FOLDER [--preset P] [--start PAIR] [settings]`."""
    from spo_jax.frameworks.folder import write_task

    command = write_task(
        args.framework,
        args.problem,
        args.preset,
        out=args.out,
        start=args.first,
        **flags.given(args),
    )
    print(f"{args.out}: start it with\n\n    {command}\n")
    return 0


def check(args: argparse.Namespace) -> int:
    """`spo check PROBLEM [--pair FILE] [--size N]`: tries a problem's parts."""
    from spo_jax.runs.check import check

    marks = {True: "✓", None: "-"}
    for tried in check(args.problem, args.pair, args.size):
        print(f"{marks[tried.works]} {tried.name:<15} {tried.text}", flush=True)
    return 0
