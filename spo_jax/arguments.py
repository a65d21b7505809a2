"""The options of the command `spo`, and nothing that takes time to import."""

import argparse

from spo_jax import __version__, config, presets

LARGEST = 10**9  # more than any count can be used for


def _count(text: str, most: int = LARGEST) -> int:
    value = int(text)
    if not 1 <= value <= most:
        raise argparse.ArgumentTypeError(f"{text:.40} is not from 1 to {most}")
    return value


def _workers(text: str) -> int:
    return _count(text, config.MAX_WORKERS)


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


for _kind, _name in (
    (_count, "whole number"),
    (_workers, "whole number"),
    (_seconds, "number"),
    (_seed, "whole number"),
):
    _kind.__name__ = _name  # argparse puts it into "invalid ... value"


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="spo",
        allow_abbrev=False,
        description="Discover destroy-and-repair programs for large neighbourhood search, "
        "evaluate them, and solve TSP and CVRP instances with them.",
        epilog="Start with: spo doctor, then spo discover tsp. Each command has its own --help.",
    )
    top.add_argument("--version", action="version", version=f"spo-jax {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    sub = _command(
        commands,
        "discover",
        "find a pair of programs for a problem",
        "Runs Algorithm 1: rounds of destroy programs, repair programs that answer them, rollouts "
        "in sandboxed workers, credits and selection. The run is kept in a folder; a round is kept "
        "whole or not at all, so a run that was stopped in any way goes on with --resume and ends "
        "as if it had not been. Every setting of the preset can be overridden by its own option.",
        "spo discover tsp --preset quick --seed 1 --out runs/first",
    )
    sub.add_argument(
        "problem", nargs="?", metavar="PROBLEM", help="tsp, cvrp or package.module:OBJECT"
    )
    names = ", ".join(presets.PRESETS)
    sub.add_argument(
        "--preset", help=f"{names}, or a TOML file (default: {presets.DEFAULT_PRESET})"
    )
    sub.add_argument(
        "--out", metavar="RUN", help="folder of the new run (default: a new one in runs/)"
    )
    sub.add_argument("--resume", metavar="RUN", help="go on with the run in this folder")
    sub.add_argument(
        "--rewind",
        type=int,
        metavar="ROUND",
        help="with --resume: forget the rounds after this one",
    )
    config.add_arguments(sub)

    sub = _command(
        commands,
        "runs",
        "list runs with their best J",
        "Lists the runs in a folder: problem, preset, rounds done, pairs evaluated, the best "
        "discovery utility J, and whether the run is finished, running or was interrupted.",
        "spo runs",
    )
    sub.add_argument("folder", nargs="?", help="folder that holds run folders (default: runs)")

    sub = _command(
        commands,
        "export",
        "write a run's best pair as a Python file, or its adapters",
        "Writes the best pair of a run as one Python module with the functions destroy and repair, "
        "their strategies as docstrings and the helpers they use. It can be imported without "
        "spo-jax, and spo evaluate and spo solve read it. Also writes the adapters that a model "
        "learned, as folders that PEFT and vLLM read. Nothing is overwritten.",
        "spo export runs/first --out pair.py",
    )
    sub.add_argument("run", metavar="RUN", help="a run folder")
    sub.add_argument("--out", metavar="FILE.py", help="write the best pair to this file")
    sub.add_argument(
        "--select",
        choices=("utility", "validation"),
        help="of the finalists the highest J, or the best in validation (default: as the run)",
    )
    sub.add_argument(
        "--adapters", metavar="DIR", help="write both adapters to DIR/destroy and DIR/repair"
    )

    sub = _command(
        commands,
        "evaluate",
        "measure a pair on instances",
        "Rolls a pair out on groups of instances and prints each group's mean gap to the reference "
        "costs with a 95% interval, mean cost, failures and seconds per rollout. "
        "References of files come from beside them; those of uniform instances from the values "
        "that ship, else from LKH or PyVRP if the solvers extra is installed, and are kept for the "
        "next time; a file of yours (--references) may have better ones. The report (--json) "
        "has every rollout, its status and its solution, and is complete after each group.",
        "spo evaluate pair.py --problem tsp --on uniform:100x32@1 tsplib/ --json report.json",
    )
    sub.add_argument(
        "pair", metavar="PAIR_OR_RUN", help="a pair file, or a run folder for its best pair"
    )
    sub.add_argument(
        "--problem", metavar="P", help="tsp, cvrp or package.module:OBJECT (a run knows its own)"
    )
    _groups_option(sub)
    sub.add_argument(
        "--steps", type=_count, default=500, help="LNS steps of a rollout (default: 500)"
    )
    sub.add_argument(
        "--seeds", type=_count, default=3, help="rollouts of each instance (default: 3)"
    )
    _report_options(sub)
    _sandbox_options(sub)

    sub = _command(
        commands,
        "baseline",
        "measure a classical heuristic or a solver on instances",
        "Runs a baseline of the paper's Appendix C on groups of instances, and prints and writes "
        "what spo evaluate does. For the TSP: nearest-neighbor, farthest-insertion, 2-opt, 3-opt "
        "and alns. For the CVRP: clarke-wright, local-search, alns and or-tools (the solvers "
        "extra). A function (instance, seed) -> solution of your own is package.module:function; "
        "it runs outside the sandbox.",
        "spo baseline 2-opt --problem tsp --on uniform:100x32@1 tsplib/ --json report.json",
    )
    sub.add_argument(
        "name", metavar="NAME", help="one of the names above or package.module:function"
    )
    sub.add_argument(
        "--problem", required=True, metavar="P", help="tsp, cvrp or package.module:OBJECT"
    )
    _groups_option(sub)
    sub.add_argument(
        "--steps", type=_count, help="iterations of a baseline that has such (alns: 500)"
    )
    sub.add_argument(
        "--seeds",
        type=_count,
        help="rollouts of each instance (default: 3, and always 1 of what draws nothing at random)",
    )
    _report_options(sub)
    _workers_option(sub)

    sub = _command(
        commands,
        "solve",
        "solve an instance with a pair",
        "Searches one instance (TSPLIB .tsp or CVRPLIB .vrp) with a pair and writes the best "
        "solution found as a tour or a .sol file that other tools read. With several seeds the "
        "rollouts are spread over the workers and the best is kept.",
        "spo solve berlin52.tsp --pair pair.py --time 10 --plot berlin52.png",
    )
    sub.add_argument("instance", metavar="INSTANCE", help="a .tsp or .vrp file")
    sub.add_argument(
        "--pair", required=True, metavar="PAIR_OR_RUN", help="a pair file or a run folder"
    )
    sub.add_argument(
        "--problem", metavar="P", help="the problem (default: by the suffix of INSTANCE)"
    )
    effort = sub.add_mutually_exclusive_group()
    effort.add_argument("--steps", type=_count, help="LNS steps of a rollout (default: 500)")
    effort.add_argument(
        "--time", type=_seconds, metavar="S", help="CPU seconds of a rollout, instead of steps"
    )
    sub.add_argument("--seed", type=_seed, default=0, help="seed of the first rollout (default: 0)")
    sub.add_argument(
        "--seeds", type=_count, default=1, help="rollouts, each with a seed of its own (default: 1)"
    )
    sub.add_argument(
        "--out", metavar="FILE", help="solution file (default: INSTANCE.spo.tour or .spo.sol here)"
    )
    sub.add_argument("--plot", metavar="FILE.png", help="draw the solution, as PNG or PDF")
    _sandbox_options(sub)

    _command(
        commands,
        "doctor",
        "check this machine",
        "Shows which layers of the sandbox hold here, the Python and JAX that are used and on what "
        "devices, the cores, and the optional packages, each with what to do about it if it is "
        "missing. Exits with 0 if spo discover can run, else with 2.",
        "spo doctor",
    )
    return top


def _groups_option(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--on",
        required=True,
        nargs="+",
        action="extend",
        metavar="SPEC",
        help="uniform:SIZExCOUNT[@SEED] (seed 0 by default), an instance file, or a folder of "
        "them; each is a group of its own",
    )


def _report_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--json", metavar="OUT", help="write the report to this file")
    sub.add_argument(
        "--references",
        default="solve",
        metavar="solve|none|FILE",
        help="references of uniform instances: known ones, else from a solver, or none (default: "
        "solve); a CSV or JSON FILE gives better ones of any instances, by name or digest",
    )
    sub.add_argument(
        "--reference-effort",
        choices=("quick", "standard", "paper"),
        default="standard",
        help="how long the solver of references searches (default: standard)",
    )


def _workers_option(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--workers", type=_workers, metavar="N", help="processes (default: one a usable core)"
    )


def _sandbox_options(sub: argparse.ArgumentParser) -> None:
    _workers_option(sub)
    sub.add_argument(
        "--cpu-seconds",
        type=_seconds,
        metavar="S",
        help="CPU limit of 500 steps, scaled to the steps (default: the problem's)",
    )
    sub.add_argument(
        "--on-invalid",
        choices=("fail", "skip"),
        help="an infeasible candidate fails the rollout, or is a rejected step (default: as in the "
        "run's discovery, and fail for a file)",
    )
    sub.add_argument(
        "--unsafe-sandbox",
        action="store_true",
        help="run programs even where the sandbox is incomplete",
    )


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    short: str,
    paragraph: str,
    example: str,
) -> argparse.ArgumentParser:
    sub = commands.add_parser(
        name,
        help=short,
        description=paragraph,
        epilog=f"Example: {example}",
        allow_abbrev=False,
    )
    sub.set_defaults(command=name)
    return sub
