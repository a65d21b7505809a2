"""The command `spo`.

Only the parser (`spo_jax.cli.arguments`) exists before a command is chosen; a command imports what
it needs, so that `spo --help` answers at once. A `SpoError` is one sentence and exit code 2; a bug
keeps its traceback.
"""

import argparse
import errno
import os
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spo_jax.cli.arguments import parser
from spo_jax.errors import InputError, SpoError
from spo_jax.limits import WITH_XLA, WITHOUT_XLA, needed, require_address_space
from spo_jax.stopping import STOPPED, exit_code, say_farewell, stoppable, take_time

if TYPE_CHECKING:
    from spo_jax.envs.files.reading import Reading
    from spo_jax.envs.report.evaluation import Report
    from spo_jax.envs.run.sandbox.process.starting import Ahead

FAILED, BROKEN_PIPE = 2, 141
HEAVY = {"discover"}  # compute with JAX

# What the file system or the machine refuses, and the user can mend.
_REFUSED = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.EIO,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EMFILE,
    errno.ENFILE,
    errno.EISDIR,
    errno.ENOTDIR,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. 2 for bad input, 130 after Ctrl-C, 143 after SIGTERM.

    A stopped command of this process (no `argv`) does not return while threads still write: they
    are not waited for.
    """
    try:
        with stoppable(_stopped):
            code = _main(argv)
    except KeyboardInterrupt as stop:
        say_farewell(_stopped)
        code = exit_code(stop)
    if argv is None and code in STOPPED and threading.active_count() > 1:
        os._exit(code)
    return code


def _main(argv: Sequence[str] | None) -> int:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a name that the terminal cannot show
    try:
        try:
            args = parser().parse_args(argv)
        except SystemExit as stop:  # argparse has said why
            return int(stop.code or 0)
        with warnings.catch_warnings():
            # Python's warnings about the text of a program would only confuse here.
            warnings.filterwarnings("ignore", ".*invalid (escape sequence|decimal literal)")
            if args.command != "doctor":  # which says it among other things
                require_address_space(needed(WITH_XLA if args.command in HEAVY else WITHOUT_XLA))
            try:
                args.began = time.monotonic() - (age() if argv is None else 0.0)
                code = COMMANDS[args.command](args)
            except SystemExit as stop:  # a user's part; it must not pass for success
                if isinstance(stop.__context__, BrokenPipeError):  # rich gives up by it
                    raise
                raise RuntimeError(f"a part of the run ended it (exit code {stop.code})") from stop
        sys.stdout.flush()
        return code
    except SpoError as error:
        return _complain(str(error))
    except BrokenPipeError:
        # The reader has gone; keep the interpreter from complaining when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except MemoryError as error:
        return _complain(f"there is not enough memory for this: {error or 'use smaller instances'}")
    except OSError as error:
        if error.errno not in _REFUSED:
            raise
        where = f"{error.filename}: " if error.filename else ""
        return _complain(f"{where}{error.strerror}")


def age() -> float:
    """Seconds since this process began, of which Python and imports take some."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        begun = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - begun)
    except (OSError, ValueError, IndexError):  # no such file here
        return 0.0


def _stopped() -> None:
    _complain("stopped")


def _complain(sentence: str) -> int:
    """One line on stderr, whatever the sentence quotes."""
    print(f"spo: {' '.join(sentence.split())}", file=sys.stderr)
    return FAILED


# --- commands -------------------------------------------------------------------------------------


def _of_runs(name: str) -> Callable[[argparse.Namespace], int]:
    def command(args: argparse.Namespace) -> int:
        return getattr(import_module("spo_jax.cli.commands"), name)(args)

    return command


def _evaluate(args: argparse.Namespace) -> int:
    from functools import partial
    from inspect import unwrap

    from spo_jax.envs.run.evaluator import LOCAL
    from spo_jax.envs.run.factory import get_evaluator
    from spo_jax.runs.pairs import evaluate

    run = partial(
        unwrap(evaluate),  # whose errors name options
        args.pair,
        args.problem,
        args.on,
        steps=args.steps,
        seeds=args.seeds,
        references=args.references,
        effort=args.reference_effort,
        evaluator=get_evaluator(args.evaluator or LOCAL, args.ray_address),
        **_reading(args).given,
        **_sandbox(args),
        **_asked(args, "acceptance", "start"),
        trust=args.trust_pair,
    )
    return _report(run, args.json, args.pair, *args.on, args.references)


def _asked(args: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Those of some options that were given: a pair has its own for the others."""
    return {name: getattr(args, name) for name in names if getattr(args, name) is not None}


def _sandbox(args: argparse.Namespace) -> dict[str, Any]:
    """What evaluating and solving a pair have in common."""
    return {
        "workers": args.workers,
        "cpu_seconds": args.cpu_seconds,
        "unsafe": args.unsafe_sandbox,
        **_asked(args, "on_invalid"),
    }


def _reading(args: argparse.Namespace) -> "Reading":
    """How instance files are read."""
    from spo_jax.envs.files.reading import Reading

    return Reading(args.distances, args.capacity, args.vehicles)


def _baseline(args: argparse.Namespace) -> int:
    from functools import partial

    from spo_jax.envs.problems import get_problem
    from spo_jax.envs.report.baselines import evaluate_baseline, get_baseline

    problem = get_problem(args.problem)
    baseline = get_baseline(args.name, problem)
    run = partial(
        evaluate_baseline,
        baseline,
        problem,
        args.on,
        steps=args.steps,
        seeds=args.seeds,
        workers=args.workers or len(os.sched_getaffinity(0)),
        references=args.references,
        effort=args.reference_effort,
        reading=_reading(args),
    )
    code = _report(run, args.json, *args.on, args.references)
    if not baseline.seeded and args.seeds is not None and args.seeds > 1:
        print(f"{args.name} draws nothing at random: one rollout of each instance")
    return code


def _report(run: Callable[..., "Report"], json: str | None, *inputs: str) -> int:
    """Print what `run` reports, having kept it in the file `json` after each group.

    Returns 1 where all rollouts failed.
    """
    from spo_jax.envs.files.textfiles import write_atomically
    from spo_jax.envs.report.evaluation import Report
    from spo_jax.envs.report.reporting import Meter, console, show_report

    if json is not None:
        _check_output(json, *inputs)
        known = Path(json).read_bytes()[:20] if Path(json).is_file() else b""
        if known and not re.match(rb'\{\s*"spo_jax"', known):
            raise InputError(f"{json} is there and is no report: choose another output file")

    def save(report: Report) -> None:
        if json is not None:
            write_atomically(json, report.to_json())

    with Meter(sys.stderr, sys.stdout) as meter:
        report = run(progress=meter, save=save)
    show_report(report, console(sys.stdout))
    if json is not None:
        print(f"written: {json}")
    return int(all(each.summary.failed == each.summary.rollouts for each in report.groups))


def _solve(args: argparse.Namespace) -> int:
    from spo_jax.envs.run.sandbox.process.starting import Ahead
    from spo_jax.limits import usable_cores

    # Workers start while this process loads what it needs itself.
    with Ahead(args.workers or usable_cores()) as ahead:
        return _solved(args, ahead)


def _solved(args: argparse.Namespace, ahead: "Ahead") -> int:
    from contextlib import suppress
    from inspect import unwrap

    from spo_jax.envs.files.reading import remarks_of
    from spo_jax.envs.files.specs import is_uniform, read_instance
    from spo_jax.envs.report.directed import remarks_on_pairs
    from spo_jax.envs.report.searched import Searched, conditions, solved_lines
    from spo_jax.envs.report.solve import default_output, problem_of
    from spo_jax.envs.report.writing import Outputs
    from spo_jax.runs.pairs import resolve_all, solve

    if is_uniform(args.instance):
        raise InputError(
            f"spo solve reads a file, not {args.instance}: spo compare also draws instances"
        )
    name, given = args.problem, args.pair or []
    if name is None and not any(Path(pair).is_dir() for pair in given):  # a run knows its problem
        name = problem_of(args.instance, _reading(args).given)
    problem, pairs, terms = resolve_all(args.pair, name, args.trust_pair)
    fitting = (*problem.suffixes, *problem.tables)
    if name is None and Path(args.instance).suffix.lower() not in fitting:
        with suppress(InputError):  # a suffix that nobody has may be the run's
            name = problem_of(args.instance, _reading(args).given)
        if name is not None:
            resolve_all(args.pair, name, args.trust_pair)  # says which problem the run is for
    terms |= _sandbox(args) | _asked(args, "start", "acceptance")
    with (searched := Searched(sys.stderr, args.instance)):
        instance = read_instance(problem, args.instance, _reading(args))
    out = Path(args.out) if args.out else default_output(args.instance, problem)
    inputs = [args.instance, *given, *([args.start] if args.start else [])]
    _check_output(out, *inputs)
    asked = {name: getattr(args, name) for name in ("plot", "json", "geojson")}
    others = {name: Path(path) for name, path in asked.items() if path is not None}
    outputs = Outputs(problem, instance, out, **others, force=args.force)
    named = [out, *others.values()]
    for k, path in enumerate(named[1:], 1):
        _check_output(path, *inputs, *named[:k])
    names = sorted(given, key=lambda each: Path(each).is_dir(), reverse=True)  # runs are first
    named_pairs = dict(zip(names or ["the pair that ships"], pairs, strict=True))
    # Before the search, which may take long.
    for line in (*remarks_of(instance), *remarks_on_pairs(problem, [instance], named_pairs)):
        print(line, file=sys.stderr)
    with searched:
        searched.starts(problem, instance)
        found = unwrap(solve)(  # whose errors name options
            instance,
            pairs,
            problem,
            steps=args.steps,
            seconds=args.time,
            began=args.began,
            seed=args.seed,
            progress=searched,
            ahead=ahead,
            **terms,
        )
    if found.stop is not None:
        take_time()
    written = outputs.write(found.solution, found.cost)
    own = {name: terms[name] for name in ("acceptance", "start") if name in terms}
    own = {name: value for name, value in own.items() if getattr(args, name) is None}
    told = [conditions(state, terms["on_invalid"], **own) for state in terms["state"]]
    remarks = dict.fromkeys(line for lines in told for line in lines)
    for line in (*solved_lines(found, problem.word), *remarks, *written):
        print(line)
    return 0 if found.stop is None else exit_code(found.stop)


def _compare(args: argparse.Namespace) -> int:
    from spo_jax.envs.files.reading import remarks_on_files
    from spo_jax.envs.report.compare import compare, usable
    from spo_jax.envs.report.comparison.compared import Folder, show_comparison, took
    from spo_jax.envs.report.comparison.methods import PairSearch
    from spo_jax.envs.report.directed import remarks_on_pairs
    from spo_jax.envs.report.reporting import Meter, console
    from spo_jax.runs.pairs import contest

    problem, instances, methods, own = contest(
        args.instances, args.pair or [], args.problem, args.against, args.references,
        _reading(args), args.trust_pair,
    )  # fmt: skip
    usable(args.time, args.seeds, args.workers)
    inputs = [each for each in args.instances if Path(each).is_file()]
    if args.plot is not None:
        _check_output(args.plot, *inputs)
    folder = Folder(args.out, problem, instances, methods, picture=args.plot, force=args.force)
    rows = {each.name: each.solve.pair for each in methods if isinstance(each.solve, PairSearch)}
    for line in (*remarks_on_files(instances), *remarks_on_pairs(problem, instances, rows)):
        print(line, file=sys.stderr)
    folder.make()
    print(took(instances, methods, args.time, args.seeds), file=sys.stderr)
    with Meter(sys.stderr, None) as meter:
        found = compare(
            problem,
            instances,
            methods,
            seconds=args.time,
            seeds=args.seeds,
            workers=args.workers,
            own=own,
            progress=meter,
            keep=folder.keep,
        )
    if found.stop is not None:
        take_time()
    show_comparison(found, console(sys.stdout))
    for line in folder.write(found):
        print(line)
    if found.stop is not None:
        return exit_code(found.stop)
    return int(not any(each.ok for each in found.attempts))


def _doctor(args: argparse.Namespace) -> int:
    from spo_jax.cli.doctor import examine, show_findings
    from spo_jax.envs.report.reporting import console

    return 0 if show_findings(examine(), console(sys.stdout)) else FAILED


def _check_output(path: str | Path, *others: str | Path) -> None:
    """Raises InputError for an output file that could not be written, before the work begins."""
    path = Path(path)
    if "\0" in str(path):
        raise InputError(f"{str(path)!r} is not a file name")
    if path.is_dir():
        raise InputError(f"{path} is a folder: give the name of a file")
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"{path} cannot be written: permission denied")
    for other in map(Path, others):
        if path.absolute() == other.absolute() and not path.exists():
            raise InputError(f"{path} is named twice: choose another output file")
        if path.exists() and other.exists() and path.samefile(other):
            raise InputError(f"{path} is an input of this command: choose another output file")


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "discover": _of_runs("discover"),
    "runs": _of_runs("runs"),
    "report": _of_runs("report"),
    "watch": _of_runs("watch"),
    "export": _of_runs("export"),
    "task": _of_runs("task"),
    "check": _of_runs("check"),
    "evaluate": _evaluate,
    "baseline": _baseline,
    "solve": _solve,
    "compare": _compare,
    "doctor": _doctor,
}
