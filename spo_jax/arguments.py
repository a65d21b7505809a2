"""The options of the command `spo`, and nothing that takes time to import."""

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from spo_jax import __version__
from spo_jax.errors import InputError

LARGEST = 10**9  # more than any count can be used for
PROBLEM = "tsp, cvrp, vrptw or package.module:NAME"


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


class _Parser(argparse.ArgumentParser):
    """Raises InputError, one sentence, for what argparse prints the usage for."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message.removeprefix('argument ')}; see {self.prog} --help")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            from spo_jax.knobs import closest

            what = action.metavar if action.metavar else action.option_strings[0]
            hint = closest(value, action.choices)
            raise InputError(f"unknown {str(what).lower()} {value!r:.80}{hint}")


class _Command(_Parser):
    """A command that gets its options when it is chosen, so that the others cost nothing."""

    options: Callable[[argparse.ArgumentParser], None] | None = None

    def parse_known_args(self, *args: Any, **more: Any) -> Any:
        if self.options is not None:
            add, self.options = self.options, None
            add(self)
        found, unknown = super().parse_known_args(*args, **more)
        if unknown:
            raise InputError(self._unknown(unknown[0]))
        return found, unknown

    def _unknown(self, text: str) -> str:
        from spo_jax.knobs import nearest

        if not text.startswith("-"):
            return f"{self.prog} takes no {text!r:.80} here; see {self.prog} --help"
        name = text.partition("=")[0]
        flags = {f.strip("-").replace("-", "_"): f for f in self._option_string_actions}
        near = nearest(name.strip("-"), flags)
        hint = f"did you mean {flags[near]}?" if near else f"see {self.prog} --help"
        return f"unknown option {name:.80} of {self.prog}: {hint}"


def parser() -> argparse.ArgumentParser:
    top = _Parser(
        prog="spo",
        allow_abbrev=False,
        description="Discover destroy-and-repair programs for large neighbourhood search, "
        "evaluate them, and solve TSP and CVRP instances with them.",
        epilog="Start with: spo doctor, then spo discover tsp. Each command has its own --help.",
    )
    top.add_argument("--version", action="version", version=f"spo-jax {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True, parser_class=_Command)
    for name, (short, paragraph, example, options) in COMMANDS.items():
        sub = commands.add_parser(
            name,
            help=short,
            description=paragraph,
            epilog=f"Example: {example}",
            allow_abbrev=False,
        )
        sub.set_defaults(command=name)
        sub.options = options
    return top


def _discover(sub: argparse.ArgumentParser) -> None:
    from spo_jax import flags, presets

    sub.usage = "spo discover [PROBLEM] [--preset NAME] [--out RUN | --resume RUN] [settings]"
    names = ", ".join(presets.PRESETS)
    add = sub.add_argument
    add("problem", nargs="?", metavar="PROBLEM", help=PROBLEM)
    add("--preset", help=f"{names}, or a TOML file (default: {presets.DEFAULT_PRESET})")
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
        help="print the settings as a TOML file for --preset, and run nothing",
    )
    add("--report", action="store_true", help="write report.html after every round (spo report)")
    add(
        "--track",
        metavar="NAME[,NAME]",
        help="send the numbers of each round to tensorboard, wandb or mlflow, or to a tracker of "
        "yours, package.module:NAME",
    )
    flags.add_arguments(sub)


def _runs(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("folder", nargs="?", help="folder that holds run folders (default: runs)")


def _report_page(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("run", metavar="RUN", help="a run folder")
    add("--out", metavar="FILE.html", help="write the page here (default: report.html in RUN)")


def _watch(sub: argparse.ArgumentParser) -> None:
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


def _export(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("run", metavar="RUN", help="a run folder")
    add("--out", metavar="FILE.py", help="write the best pair to this file")
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


def _task(sub: argparse.ArgumentParser) -> None:
    from spo_jax import flags, presets
    from spo_jax.words import FRAMEWORKS, TASK_SETTINGS

    sub.usage = f"spo task {{{','.join(FRAMEWORKS)}}} [PROBLEM] --out FOLDER [settings]"
    add = sub.add_argument
    add("framework", metavar="FRAMEWORK", choices=FRAMEWORKS, help=", ".join(FRAMEWORKS))
    add("problem", nargs="?", metavar="PROBLEM", help=PROBLEM)
    add("--out", required=True, metavar="FOLDER", help="a new or an empty folder")
    add("--preset", help=f"a name, or a TOML file (default: {presets.DEFAULT_PRESET})")
    add(
        "--start", metavar="PAIR_OR_RUN", help="the first pair (default: the problem's trivial one)"
    )
    section = sub.add_argument_group("settings", "what pairs are scored on, as in spo discover")
    flags.add_settings(section, TASK_SETTINGS, argparse.SUPPRESS)


def _evaluate(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("pair", metavar="PAIR_OR_RUN", help="a pair file, or a run folder for its best pair")
    add("--problem", metavar="P", help=f"{PROBLEM} (a run knows its own)")
    _groups(sub)
    add("--steps", type=_count, default=500, help="LNS steps of a rollout (default: 500)")
    add("--seeds", type=_count, default=3, help="rollouts of each instance (default: 3)")
    _report(sub)
    _settings(sub, "workers", "cpu_seconds", "on_invalid", "unsafe_sandbox")
    _settings(sub, "evaluator", "ray_address")


def _baseline(sub: argparse.ArgumentParser) -> None:
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
    _report(sub)
    _settings(sub, "workers")


def _solve(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("instance", metavar="INSTANCE", help="a .tsp, .vrp, .txt (Solomon) or .csv file")
    add(
        "--pair",
        nargs="+",
        action="extend",
        metavar="PAIR_OR_RUN",
        help="pair files or run folders; of several each step draws one by its success so far "
        "(default: the pair that ships)",
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
        "paper, or that of a .tour or .sol file",
    )
    add(
        "--acceptance",
        choices=("improving", "annealing", "record-to-record"),
        default="record-to-record",
        help="of worse solutions: none, as in the paper; by simulated annealing; or those less "
        "than a threshold above the best (the default)",
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
    _settings(sub, "workers", "cpu_seconds", "on_invalid", "unsafe_sandbox")


def _compare(sub: argparse.ArgumentParser) -> None:
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
        choices=("exact", "round", "ceil"),
        default="file",
        help="rounding of the distances in instance files (default: as the file says)",
    )
    sub.add_argument(
        "--capacity",
        type=_number(float, 1e-6, 1e12),
        metavar="Q",
        help="capacity of vehicles, for an instance file that has none",
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


def _report(sub: argparse.ArgumentParser) -> None:
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


def _settings(sub: argparse.ArgumentParser, *names: str) -> None:
    from spo_jax import flags

    flags.add_settings(sub, names)


# name: help, description, example, options
COMMANDS: dict[str, tuple[str, str, str, Callable[[argparse.ArgumentParser], None] | None]] = {
    "discover": (
        "find a pair of programs for a problem",
        "Runs Algorithm 1: rounds of destroy programs, repair programs that answer them, rollouts "
        "in sandboxed workers, credits and selection. The run is kept in a folder; a round is kept "
        "whole or not at all, so a run that was stopped in any way goes on with --resume and ends "
        "as if it had not been. Every setting of the preset can be overridden by its own option. "
        "A run that ends without a valid pair exits with 1.",
        "spo discover tsp --preset quick --seed 1 --out runs/first",
        _discover,
    ),
    "runs": (
        "list runs with their best J and its gap",
        "Lists the runs in a folder: problem, preset, rounds done, pairs evaluated, the best "
        "discovery utility J, the gap of that pair on the training instances, and whether the run "
        "is finished, running or was interrupted.",
        "spo runs",
        _runs,
    ),
    "report": (
        "write a run as one HTML page",
        "Writes a run as one HTML page that any browser opens offline: its progress, the payoffs "
        "with credits at their margins, who came from whom, what programs do with the state, what "
        "failed, what was learned, and the best pair at work. The pair is played for it, in the "
        "sandbox. Works for runs that are not finished; a page of that name is replaced.",
        "spo report runs/first --out first.html",
        _report_page,
    ),
    "watch": (
        "show runs in a browser while they go on",
        "Serves the page of spo report on this machine and renders it again when a round has "
        "landed, with what the round in progress does; of several runs also a comparison, with "
        "bands over seeds. It reads only, and plays no pair. On an address that others reach, "
        "the link has a token. Ctrl-C ends it.",
        "spo watch runs/first",
        _watch,
    ),
    "export": (
        "write a run's best pair as a Python file, or its adapters",
        "Writes the best pair of a run as one Python module with the functions destroy and repair, "
        "their strategies as docstrings and the helpers they use. It can be imported without "
        "spo-jax, and spo evaluate and spo solve read it. With --for the file also plugs into the "
        "library alns, or has a function solve of distances or coordinates. Also writes the "
        "adapters that a model learned, as folders that PEFT and vLLM read. Nothing is "
        "overwritten.",
        "spo export runs/first --out pair.py",
        _export,
    ),
    "task": (
        "write what OpenEvolve or ShinkaEvolve evolves pairs with",
        "Writes the folder from which another framework evolves a pair: a first program, its "
        "evaluator, which scores pairs in our sandbox as a discovery with these settings does, and "
        "a config with the system message. Prints the command that starts it. Nothing is "
        "overwritten.",
        "spo task openevolve tsp --out evolving",
        _task,
    ),
    "evaluate": (
        "measure a pair on instances",
        "Rolls a pair out on groups of instances and prints each group's mean gap to the reference "
        "costs with a 95% interval, mean cost, failures and seconds per rollout. "
        "References of files come from beside them; those of uniform instances from the values "
        "that ship, else from LKH or PyVRP if the solvers extra is installed, and are kept for the "
        "next time; a file of yours (--references) may have better ones. The report (--json) "
        "has every rollout, its status and its solution, and is complete after each group.",
        "spo evaluate pair.py --problem tsp --on uniform:100x32@1 tsplib/ --json report.json",
        _evaluate,
    ),
    "baseline": (
        "measure a classical heuristic or a solver on instances",
        "Runs a baseline of the paper's Appendix C on groups of instances, and prints and writes "
        "what spo evaluate does. For the TSP: nearest-neighbor, farthest-insertion, 2-opt, 3-opt, "
        "alns, alns-example, or-tools, or-tools-default and lkh. For the CVRP: clarke-wright, "
        "local-search, alns, alns-example, or-tools, or-tools-default and pyvrp. For the VRPTW: "
        "insertion-i1, alns, or-tools and pyvrp. (alns-example, both or-tools, lkh and pyvrp need "
        "the solvers extra.) A function (instance, seed) -> solution of your own is "
        "package.module:NAME; it runs outside the sandbox.",
        "spo baseline 2-opt --problem tsp --on uniform:100x32@1 tsplib/ --json report.json",
        _baseline,
    ),
    "solve": (
        "solve an instance with a pair",
        "Searches one instance (TSPLIB .tsp, CVRPLIB .vrp, Solomon's .txt or a CSV) and writes the "
        "best solution found as a tour or a .sol file that other tools read. Each worker searches "
        "by itself; they exchange the best and warm up anew when they have cooled down. Ctrl-C "
        "ends it early, and the best so far is written.",
        "spo solve berlin52.tsp --time 30 --plot berlin52.png",
        _solve,
    ),
    "compare": (
        "compare pairs, baselines and solvers for equal time",
        "Runs pairs, the problem's construction, ALNS and the other baselines, and OR-Tools, PyVRP "
        "and LKH where they are installed, on the same instances for the same wall-clock time on "
        "the same cores, one after another. Prints cost, gap and seconds of each, and their mean "
        "gaps with 95% intervals; writes all solutions, tables, and a picture of the gap by "
        "second. Every solution is checked, and its cost computed by the problem. Ctrl-C ends it "
        "with the table of what is finished.",
        "spo compare A-n32-k5.vrp P-n76-k4.vrp --time 10",
        _compare,
    ),
    "doctor": (
        "check this machine",
        "Shows which layers of the sandbox hold here, the Python and JAX that are used and on what "
        "devices, the cores, and the optional packages, each with what to do about it if it is "
        "missing. Exits with 0 if spo discover can run, else with 2.",
        "spo doctor",
        None,
    ),
}
