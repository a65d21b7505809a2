"""The options of each command of `spo`. What takes time to import is imported in its function."""

import argparse
from collections.abc import Callable
from typing import Any

LARGEST = 10**9  # more than any count can be used for
PROBLEM = "tsp, cvrp, vrptw or package.module:NAME"
PAIR = "a pair file, a run folder for its best pair, or shipped for the pair that ships"


def _number(kind: type, low: float, high: float, what: str = "") -> Callable[[str], Any]:
    """A number in a range, for argparse."""

    def parsed(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            words = "a whole number" if kind is int else "a number"
            wrong = f"{text!r:.40} is not {words} from {low} to {high}{what}"
            raise argparse.ArgumentTypeError(wrong)
        return value

    return parsed


_count = _number(int, 1, LARGEST)
_seed = _number(int, 0, 2**62 - 1)
_seconds = _number(float, 1e-6, 1e6, " seconds")


def discover(sub: argparse.ArgumentParser) -> None:
    from spo_jax import presets
    from spo_jax.cli import flags

    sub.usage = "spo discover [PROBLEM] [--preset NAME] [--out RUN | --resume RUN] [settings]"
    names = ", ".join(presets.PRESETS)
    add = sub.add_argument
    add("problem", nargs="?", metavar="PROBLEM", help=PROBLEM)
    add("--preset", help=f"{names}, or a TOML file (default: {presets.DEFAULT_PRESET})")
    add(
        "--search",
        metavar="NAME",
        help="paper: rollouts as published; solve: as spo solve",
    )
    add("--out", metavar="RUN", help="folder of the new run (default: a new one in runs/)")
    add("--resume", metavar="RUN", help="go on with the run in this folder")
    add(
        "--rewind",
        type=_number(int, 0, LARGEST),
        metavar="ROUND",
        help="with --resume: forget the rounds after it",
    )
    add(
        "--dump-config",
        action="store_true",
        help="print the settings as a preset, and run nothing",
    )
    add("--report", action="store_true", help="write report.html after every round (spo report)")
    add(
        "--track",
        metavar="NAME[,NAME]",
        help="send the numbers of each round to tensorboard, wandb or mlflow, or to a tracker of "
        "yours, package.module:NAME",
    )
    flags.add_arguments(sub)


def runs(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("folder", nargs="?", help="folder that holds run folders (default: runs)")


def report(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("runs", metavar="RUN", nargs="+", help="a run folder")
    add("--out", metavar="FILE.html", help="write the page here (default: report.html in RUN; of "
        "several runs comparison.html)")  # fmt: skip


def watch(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("runs", metavar="RUN", nargs="+", help="a run folder, or a folder of runs")
    add("--port", type=int, default=8765, help="port to listen on, 0 for any (default: 8765)")
    add(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on (default: 127.0.0.1, which only this machine reaches)",
    )
    add("--token", help="what the link must hold (default: made up unless --host is this machine)")


def export(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("pair", metavar="PAIR_OR_RUN", help=PAIR)
    add("--problem", metavar="P", help=f"{PROBLEM} (a run knows its own)")
    add("--out", metavar="FILE.py", help="write the pair to this file")
    add(
        "--select",
        choices=("utility", "validation"),
        help="of the finalists the highest J, or the best in validation (default: as the run)",
    )
    add(
        "--for",
        dest="purpose",
        choices=("alns", "function"),
        help="with --out: as operators of the library alns, or as a function solve(...), too",
    )
    add("--adapters", metavar="DIR", help="write both adapters to DIR/destroy and DIR/repair")
    _trust(sub)


def check(sub: argparse.ArgumentParser) -> None:
    from spo_jax.runs.check import SIZE

    add = sub.add_argument
    add("problem", metavar="PROBLEM", help="package.module:NAME")
    add("--pair", metavar="FILE.py", help="the pair that is tried (default: a trivial one)")
    add("--size", type=_count, default=SIZE, help=f"of the instances (default: {SIZE})")


def task(sub: argparse.ArgumentParser) -> None:
    from spo_jax import presets
    from spo_jax.cli import flags
    from spo_jax.constants import FRAMEWORKS, TASK_SETTINGS

    sub.usage = f"spo task {{{','.join(FRAMEWORKS)}}} [PROBLEM] --out FOLDER [settings]"
    add = sub.add_argument
    add("framework", metavar="FRAMEWORK", choices=FRAMEWORKS, help=", ".join(FRAMEWORKS))
    add("problem", nargs="?", metavar="PROBLEM", help=PROBLEM)
    add("--out", required=True, metavar="FOLDER", help="a new or an empty folder")
    add("--preset", help=f"a name, or a TOML file (default: {presets.DEFAULT_PRESET})")
    add(
        "--start",
        dest="first",
        metavar="PAIR_OR_RUN",
        help=f"the first pair: {PAIR} (default: the problem's trivial one)",
    )
    section = sub.add_argument_group("settings", "what pairs are scored on, as in spo discover")
    flags.add_settings(section, TASK_SETTINGS, argparse.SUPPRESS)


def evaluate(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add(
        "pair",
        metavar="PAIR_OR_RUN",
        help=PAIR,
    )
    add(
        "--problem",
        metavar="P",
        help=f"{PROBLEM} (default: the run's, else by the suffix of instance files)",
    )
    _groups(sub)
    add("--steps", type=_count, default=500, help="LNS steps of a rollout (default: 500)")
    add("--seeds", type=_count, default=3, help="rollouts of each instance (default: 3)")
    _report_file(sub)
    _trust(sub)
    _settings(
        sub, "workers", "cpu_seconds", "on_invalid", "unsafe_sandbox", "acceptance", "start",
        "evaluator", "ray_address",
    )  # fmt: skip


def baseline(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("name", metavar="NAME", help="one of the names above or package.module:NAME")
    add("--problem", required=True, metavar="P", help=PROBLEM)
    _groups(sub)
    add("--steps", type=_count, help="iterations of a baseline that has such (alns: 500)")
    add(
        "--seeds",
        type=_count,
        help="rollouts of each instance (default: 3, and always 1 of what draws nothing at random)",
    )
    _report_file(sub)
    _settings(sub, "workers")


def solve(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("instance", metavar="INSTANCE", help="a .tsp, .atsp, .vrp, .txt (Solomon) or .csv file")
    add(
        "--pair",
        nargs="+",
        action="extend",
        metavar="PAIR_OR_RUN",
        help="pair files, run folders, or shipped for the pair that ships (the default); of "
        "several each step draws one by its success so far",
    )
    add("--problem", metavar="P", help="the problem (default: by the suffix of INSTANCE)")
    _files(sub)
    effort = sub.add_mutually_exclusive_group()
    effort.add_argument(
        "--time", type=_seconds, metavar="S", help="seconds of the whole command (default: 10)"
    )
    effort.add_argument(
        "--steps",
        type=_count,
        help="LNS steps of each search, instead: same seed and workers, same result",
    )
    add(
        "--start",
        metavar="construction|random|FILE",
        help="the first solution: the problem's construction (the default), a random one as in the "
        "paper, that of a .tour or .sol file, or of package.module:NAME",
    )
    add(
        "--acceptance",
        metavar="NAME",
        help="of worse solutions: improving, none, as in the paper; annealing; record-to-record, "
        "those less than a threshold above the best; or package.module:NAME (default: record-to-"
        "record, and annealing in every other search of the CVRP)",
    )
    add("--seed", type=_seed, default=0, help="seed of the first search (default: 0)")
    add("--out", metavar="FILE", help="solution file (default: INSTANCE.spo.tour or .spo.sol here)")
    add("--plot", metavar="FILE.png", help="draw the solution: PNG, SVG or PDF")
    add("--json", metavar="FILE", help="the solution as JSON: walks with ids, lengths and loads")
    add("--geojson", metavar="FILE", help="the solution on the map, where places are geographic")
    add(
        "--force",
        action="store_true",
        help="overwrite output files, whatever they hold (default: only by what is no worse)",
    )
    _trust(sub)
    _settings(sub, "workers", "cpu_seconds", "on_invalid", "unsafe_sandbox")


def compare(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add(
        "instances",
        nargs="+",
        metavar="INSTANCE",
        help="instance files, folders of them, or uniform:SIZExCOUNT[@SEED]",
    )
    add(
        "--pair",
        nargs="+",
        action="extend",
        metavar="PAIR_OR_RUN",
        help="pair files and run folders, each a row of its own; shipped is the pair that ships "
        "(the default)",
    )
    add(
        "--against",
        nargs="+",
        default=["all"],
        metavar="NAME",
        help="baselines (see spo baseline), construction, and solvers of your own as "
        "package.module:NAME; all is every baseline of the problem (the default)",
    )
    add("--problem", metavar="P", help="the problem (default: by the suffix of INSTANCE)")
    _trust(sub)
    _files(sub)
    add(
        "--time",
        type=_seconds,
        default=10.0,
        metavar="S",
        help="seconds of wall-clock time for each method and instance (default: 10)",
    )
    add(
        "--workers",
        type=_count,
        default=1,
        metavar="N",
        help="cores for each method, which does not leave them; those that use one core run once "
        "on each with other seeds (default: 1)",
    )
    add("--seeds", type=_count, default=1, help="runs of each method and instance (default: 1)")
    add(
        "--references",
        metavar="FILE",
        help="a CSV or JSON file of best known costs, by name or digest (default: those beside "
        "the instances and those that ship; else the best found)",
    )
    add(
        "--out",
        metavar="FOLDER",
        default="comparison",
        help="solutions, table.md, table.csv, table.json, curves.csv and the picture "
        "(default: comparison)",
    )
    add("--plot", metavar="FILE.svg", help="the picture: SVG, PNG or PDF (default: in FOLDER)")
    add(
        "--force",
        action="store_true",
        help="overwrite files in FOLDER, whatever they hold (default: only solutions that are no "
        "better, and tables of spo compare)",
    )


def _files(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--distances",
        choices=("exact", "round", "ceil", "dimacs"),
        default="file",
        help="rounding of the distances in instance files (default: as the file says)",
    )
    sub.add_argument(
        "--capacity",
        type=_number(float, 1e-6, 1e12),
        metavar="Q",
        help="capacity of vehicles, for an instance file that has none",
    )
    sub.add_argument(
        "--vehicles",
        type=_number(int, 1, 1_000_000),
        metavar="N",
        help="most routes of a CVRP (default: VEHICLES of the file, else any number)",
    )


def _groups(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--on",
        required=True,
        nargs="+",
        action="extend",
        metavar="SPEC",
        help="uniform:SIZExCOUNT[@SEED] (seed 0 by default), an instance file, or a folder of "
        "them; each is a group of its own",
    )


def _report_file(sub: argparse.ArgumentParser) -> None:
    _files(sub)
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


def _trust(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--trust-pair",
        action="store_true",
        help="follow functions that the head of a pair file names, which run outside the sandbox",
    )


def _settings(sub: Any, *names: str) -> None:
    """Flags of settings. What a setting is takes pydantic to know, so they are added last, and only
    to a parser that meets an option which it does not know otherwise, or is asked for help.
    """
    sub.set_defaults(**dict.fromkeys(names))

    def add() -> None:
        from spo_jax.cli import flags

        flags.add_settings(sub, names)

    sub.settings = add
