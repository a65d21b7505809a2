"""The command `spo`.

The parser is all that is made before a command is chosen: what a command needs is imported inside
it, so that `spo --help` answers at once. A `SpoError` is one sentence and exit code 2; a bug keeps
its traceback.
"""

import argparse
import errno
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spo_jax import __version__, config
from spo_jax.errors import InputError, SpoError

if TYPE_CHECKING:
    from spo_jax.envs.problem import Problem
    from spo_jax.program import Pair

FAILED, INTERRUPTED, BROKEN_PIPE = 2, 130, 141

# What the file system or the machine refuses, and the user can mend.
_REFUSED = {
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO,
    errno.ENAMETOOLONG, errno.ELOOP, errno.EMFILE, errno.ENFILE, errno.EISDIR, errno.ENOTDIR,
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. 2 for bad input, 130 after Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a name that the terminal cannot show
    try:
        try:
            args = parser().parse_args(argv)
        except SystemExit as stop:  # argparse has said why
            return int(stop.code or 0)
        code: int = args.command(args)
        sys.stdout.flush()
        return code
    except SpoError as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        _complain("stopped")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone; keep the interpreter from complaining when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        if error.errno not in _REFUSED:
            raise
        where = f"{error.filename}: " if error.filename else ""
        return _complain(f"{where}{error.strerror}")


def _complain(sentence: str) -> int:
    """One line on stderr, whatever the sentence quotes."""
    print(f"spo: {' '.join(sentence.split())}", file=sys.stderr)
    return FAILED


# --- commands -------------------------------------------------------------------------------------


def _discover(args: argparse.Namespace) -> int:
    from spo_jax.search.commands import discover

    if args.problem is None and args.resume is None:
        raise InputError(
            "which problem? e.g. spo discover tsp, or --resume RUN to go on with a run"
        )
    return discover(args)


def _runs(args: argparse.Namespace) -> int:
    from spo_jax.search.commands import runs

    if args.folder is not None and not Path(args.folder).is_dir():
        raise InputError(f"{args.folder}: no such folder")
    return runs(args)


def _export(args: argparse.Namespace) -> int:
    from spo_jax.search.commands import export

    return export(args)


def _evaluate(args: argparse.Namespace) -> int:
    from spo_jax.envs.evaluation import Report, evaluate
    from spo_jax.envs.reporting import Meter, console, show_report
    from spo_jax.envs.tsplib import write_atomically

    problem, pair = _problem_and_pair(args.pair, args.problem, None)
    if args.json is not None:
        _check_output(args.json)

    def save(report: Report) -> None:
        if args.json is not None:
            write_atomically(args.json, report.to_json())

    with Meter(sys.stderr) as meter:
        report = evaluate(
            pair,
            problem,
            args.on,
            steps=args.steps,
            seeds=args.seeds,
            workers=args.workers or _cores(),
            cpu_seconds=args.cpu_seconds,
            on_invalid=args.on_invalid,
            references=args.references,
            unsafe=args.unsafe_sandbox,
            progress=meter,
            save=save,
        )
    show_report(report, console(sys.stdout))
    if args.json is not None:
        print(f"written: {args.json}")
    return 0


def _solve(args: argparse.Namespace) -> int:
    from functools import partial

    from spo_jax.envs.plot import SUFFIXES, plot_solution
    from spo_jax.envs.reporting import Meter, solved_lines
    from spo_jax.envs.solve import default_output, problem_of, solve

    name = args.problem or problem_of(args.instance)
    problem, pair = _problem_and_pair(args.pair, name, name)
    instance = problem.read(args.instance)
    out = Path(args.out) if args.out else default_output(args.instance, problem.name)
    _check_output(out, args.instance, args.pair)
    if args.plot is not None:
        if Path(args.plot).suffix.lower() not in SUFFIXES:
            raise InputError(f"{args.plot}: a picture ends in {' or '.join(SUFFIXES)}")
        _check_output(args.plot, args.instance, args.pair, out)
    with Meter(sys.stderr) as meter:
        found = solve(
            instance,
            pair,
            problem,
            steps=args.steps,
            seconds=args.time,
            seed=args.seed,
            seeds=args.seeds,
            workers=args.workers or _cores(),
            cpu_seconds=args.cpu_seconds,
            on_invalid=args.on_invalid,
            unsafe=args.unsafe_sandbox,
            progress=partial(meter, f"{instance.name}: rollouts"),
        )
    problem.write(out, instance, found.solution)
    for line in (*solved_lines(found), f"solution: {out}"):
        print(line)
    if args.plot is not None:
        plot_solution(instance, found.solution, args.plot)
        print(f"picture: {args.plot}")
    return 0


def _doctor(args: argparse.Namespace) -> int:
    from spo_jax.envs.doctor import examine, healthy
    from spo_jax.envs.reporting import console, show_findings

    findings = examine()
    show_findings(findings, console(sys.stdout))
    return 0 if healthy(findings) else FAILED


def _problem_and_pair(
    path: str, problem: str | None, inferred: str | None
) -> tuple["Problem", "Pair"]:
    """The problem asked for, by default that of the run, and the pair at `path`."""
    from spo_jax.envs import get_problem
    from spo_jax.search.store import load_run, resolve_pair

    pair = resolve_pair(path)
    if Path(path).is_dir():
        found = load_run(path).config.problem
        if problem is not None and get_problem(problem).name != get_problem(found).name:
            raise InputError(f"{path} is a run for {found}, not for {problem}")
        problem = found
    if problem is None:
        raise InputError(f"{path} does not say which problem it is for: add --problem tsp or cvrp")
    return get_problem(problem), pair


def _check_output(path: str | Path, *others: str | Path) -> None:
    """Raises InputError for an output file that could not be written, before the work begins."""
    path = Path(path)
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder: give the name of a file")
        if not path.parent.is_dir():
            raise InputError(f"{path} cannot be written: there is no folder {path.parent}")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise InputError(f"{path} cannot be written: permission denied")
        for other in others:
            if path.exists() and Path(other).exists() and path.samefile(other):
                raise InputError(f"{path} is an input of this command: choose another output file")
            if path.absolute() == Path(other).absolute():
                raise InputError(f"{path} is named twice: choose another output file")
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{str(path)!r} is not a file name: {error}") from None


def _cores() -> int:
    return len(os.sched_getaffinity(0))


# --- the parser -----------------------------------------------------------------------------------


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and a million seconds")
    return value


def _seed(text: str) -> int:
    value = int(text)
    if not 0 <= value < 2**62:
        raise argparse.ArgumentTypeError(f"{text} is not a seed: use 0, 1, 2, ...")
    return value


for _kind, _name in ((_count, "whole number"), (_seconds, "number"), (_seed, "whole number")):
    _kind.__name__ = _name  # argparse puts it into "invalid ... value"


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="spo",
        description="Discover destroy-and-repair programs for large neighbourhood search, "
        "evaluate them, and solve TSP and CVRP instances with them.",
        epilog="Start with: spo doctor, then spo discover tsp. Each command has its own --help.",
    )
    top.add_argument("--version", action="version", version=f"spo-jax {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    add = _command(
        commands, "discover", _discover, "find a pair of programs for a problem",
        "Runs Algorithm 1: rounds of destroy programs, repair programs that answer them, rollouts "
        "in sandboxed workers, credits and selection. The run is kept in a folder; a round is kept "
        "whole or not at all, so a run that was stopped in any way goes on with --resume and ends "
        "as if it had not been. Every setting of the preset can be overridden by its own option.",
        "spo discover tsp --preset quick --seed 1 --out runs/first",
    )  # fmt: skip
    add("problem", nargs="?", metavar="PROBLEM", help="tsp, cvrp or package.module:OBJECT")
    presets = ", ".join(config.PRESETS)
    add("--preset", help=f"{presets}, or a TOML file (default: {config.DEFAULT_PRESET})")
    add("--out", metavar="RUN", help="folder of the new run (default: a new one in runs/)")
    add("--resume", metavar="RUN", help="go on with the run in this folder")
    config.add_arguments(add.__self__)

    add = _command(
        commands, "runs", _runs, "list runs with their best J",
        "Lists the runs in a folder: problem, preset, rounds done, pairs evaluated, the best "
        "discovery utility J, and whether the run is finished, running or was interrupted.",
        "spo runs",
    )  # fmt: skip
    add("folder", nargs="?", help="folder that holds run folders (default: runs)")

    add = _command(
        commands, "export", _export, "write a run's best pair as a Python file",
        "Writes the best pair of a run as one Python module with the functions destroy and repair, "
        "their strategies as docstrings and the helpers they use. It can be imported without "
        "spo-jax, and spo evaluate and spo solve read it. An existing file is not overwritten.",
        "spo export runs/first --out pair.py",
    )  # fmt: skip
    add("run", metavar="RUN", help="a run folder")
    add("--out", required=True, metavar="FILE.py", help="the file to write")

    add = _command(
        commands, "evaluate", _evaluate, "measure a pair on instances",
        "Rolls a pair out on groups of instances and prints each group's mean gap to the reference "
        "costs with a 95% bootstrap interval, mean cost, failures and seconds per rollout. "
        "References of files come from beside them; those of uniform instances from LKH or PyVRP "
        "if the solvers extra is installed, and are kept for the next time. The report (--json) "
        "has every rollout, its status and its solution, and is complete after each group.",
        "spo evaluate pair.py --problem tsp --on uniform:100x32@1 tsplib/ --json report.json",
    )  # fmt: skip
    add("pair", metavar="PAIR_OR_RUN", help="a pair file, or a run folder for its best pair")
    add("--problem", metavar="P", help="tsp, cvrp or package.module:OBJECT (a run knows its own)")
    add("--on", required=True, nargs="+", action="extend", metavar="SPEC",
        help="uniform:SIZExCOUNT[@SEED] (seed 0 by default), an instance file, or a folder of "
        "them; each is a group of its own")  # fmt: skip
    add("--steps", type=_count, default=500, help="LNS steps of a rollout (default: 500)")
    add("--seeds", type=_count, default=3, help="rollouts of each instance (default: 3)")
    add("--json", metavar="OUT", help="write the report to this file")
    add("--references", choices=("solve", "none"), default="solve",
        help="references of uniform instances: from a solver, or none (default: solve)")  # fmt: skip
    _sandbox_options(add)

    add = _command(
        commands, "solve", _solve, "solve an instance with a pair",
        "Searches one instance (TSPLIB .tsp or CVRPLIB .vrp) with a pair and writes the best "
        "solution found as a tour or a .sol file that other tools read. With several seeds the "
        "rollouts are spread over the workers and the best is kept.",
        "spo solve berlin52.tsp --pair pair.py --time 10 --plot berlin52.png",
    )  # fmt: skip
    add("instance", metavar="INSTANCE", help="a .tsp or .vrp file")
    add("--pair", required=True, metavar="PAIR_OR_RUN", help="a pair file or a run folder")
    add("--problem", metavar="P", help="the problem (default: by the suffix of INSTANCE)")
    effort = add.__self__.add_mutually_exclusive_group()
    effort.add_argument("--steps", type=_count, help="LNS steps of a rollout (default: 500)")
    effort.add_argument(
        "--time", type=_seconds, metavar="S", help="CPU seconds of a rollout, instead of steps"
    )
    add("--seed", type=_seed, default=0, help="seed of the first rollout (default: 0)")
    add(
        "--seeds", type=_count, default=1, help="rollouts, each with a seed of its own (default: 1)"
    )
    add("--out", metavar="FILE", help="solution file (default: INSTANCE.spo.tour or .spo.sol here)")
    add("--plot", metavar="FILE.png", help="draw the solution, as PNG or PDF")
    _sandbox_options(add)

    _command(
        commands, "doctor", _doctor, "check this machine",
        "Shows which layers of the sandbox hold here, the Python and JAX that are used and on what "
        "devices, the cores, and the optional packages, each with what to do about it if it is "
        "missing. Exits with 0 if spo discover can run, else with 2.",
        "spo doctor",
    )  # fmt: skip
    return top


def _sandbox_options(add: Callable[..., object]) -> None:
    add("--workers", type=_count, metavar="N", help="processes (default: one a usable core)")
    add("--cpu-seconds", type=_seconds, metavar="S",
        help="CPU limit of 500 steps, scaled to the steps (default: the problem's)")  # fmt: skip
    add("--on-invalid", choices=("fail", "skip"), default="fail",
        help="an infeasible candidate fails the rollout, or is a rejected step")  # fmt: skip
    add("--unsafe-sandbox", action="store_true",
        help="run programs even where the sandbox is incomplete")  # fmt: skip


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    run: Callable[[argparse.Namespace], int],
    short: str,
    paragraph: str,
    example: str,
) -> Callable[..., argparse.Action]:
    """A subcommand; the method that adds its arguments."""
    sub = commands.add_parser(name, help=short, description=paragraph, epilog=f"Example: {example}")
    sub.set_defaults(command=run)
    return sub.add_argument
