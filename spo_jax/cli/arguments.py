"""The command line of `spo`: its commands, their descriptions, and how it refuses bad input."""

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from spo_jax import __version__
from spo_jax.cli import options
from spo_jax.errors import InputError


class _Parser(argparse.ArgumentParser):
    """Raises InputError, one sentence, for what argparse prints the usage for."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message.removeprefix('argument ')}; see {self.prog} --help")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            from spo_jax.config.fields import closest

            what = action.metavar if action.metavar else action.option_strings[0]
            hint = closest(value, action.choices)
            raise InputError(f"unknown {str(what).lower()} {value!r:.80}{hint}")


class _Command(_Parser):
    """A command that gets its options when it is chosen, so that the others cost nothing."""

    options: Callable[[argparse.ArgumentParser], None] | None = None
    settings: Callable[[], None] | None = None  # adds the flags that take time to make

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self.options is not None:
            add, self.options = self.options, None
            add(self)
        if self.settings is not None:
            cheap = self._option_string_actions.keys() - {"-h", "--help"}
            if not {each.partition("=")[0] for each in args if each.startswith("-")} <= cheap:
                add_settings, self.settings = self.settings, None
                add_settings()
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            raise InputError(self._unknown(unknown[0]))
        return found, unknown

    def _unknown(self, text: str) -> str:
        from spo_jax.config.fields import nearest, retired

        if not text.startswith("-"):
            return f"{self.prog} takes no {text!r:.80} here; see {self.prog} --help"
        name = text.partition("=")[0]
        flags = {f.strip("-").replace("-", "_"): f for f in self._option_string_actions}
        near = nearest(name.strip("-"), flags)
        hint = f"did you mean {flags[near]}?" if near else f"see {self.prog} --help"
        hint = retired(name) or hint
        return f"unknown option {name:.80} of {self.prog}: {hint}"


def parser() -> argparse.ArgumentParser:
    top = _Parser(
        prog="spo",
        allow_abbrev=False,
        description="Discover destroy-and-repair programs for large neighbourhood search, "
        "evaluate them, and solve instances of the TSP, the CVRP and the VRPTW with them.",
        epilog="Start with: spo doctor, then spo discover tsp. Each command has its own --help.",
    )
    top.add_argument("--version", action="version", version=f"spo-jax {__version__}")
    commands = top.add_subparsers(
        metavar="COMMAND", required=True, parser_class=_Command, prog=top.prog
    )  # argparse loads what formats a help to find out the name by itself
    for name, (short, paragraph, example, add_options) in COMMANDS.items():
        sub = commands.add_parser(
            name,
            help=short,
            description=paragraph,
            epilog=f"Example: {example}",
            allow_abbrev=False,
        )
        sub.set_defaults(command=name)
        sub.options = add_options
    return top


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
        options.discover,
    ),
    "runs": (
        "list runs with their best J and its gap",
        "Lists the runs in a folder: problem, preset, rounds done, pairs evaluated, the best "
        "discovery utility J, the gap of that pair on the training instances, and whether the run "
        "is finished, running or was interrupted.",
        "spo runs",
        options.runs,
    ),
    "report": (
        "write a run, or several beside each other, as one HTML page",
        "Writes a run as one HTML page that any browser opens offline: its progress, the payoffs "
        "with credits at their margins, who came from whom, what programs do with the state, what "
        "failed, what was learned, and the best pair at work. The pair is played for it, in the "
        "sandbox. Works for runs that are not finished; a page of that name is replaced. Of "
        "several runs the page compares arms, which differ in settings, with bands over seeds.",
        "spo report runs/first --out first.html",
        options.report,
    ),
    "watch": (
        "show runs in a browser while they go on",
        "Serves the page of spo report on this machine and renders it again when a round has "
        "landed, with what the round in progress does; of several runs also a comparison, with "
        "bands over seeds. It reads only, and plays no pair. On an address that others reach, "
        "the link has a token. Ctrl-C ends it.",
        "spo watch runs/first",
        options.watch,
    ),
    "export": (
        "write a pair as a Python file that runs alone, or a run's adapters",
        "Writes a pair, or the best pair of a run, as one Python module with the functions destroy "
        "and repair, their strategies as docstrings and the helpers they use. It can be imported "
        "without spo-jax, and spo evaluate and spo solve read it. With --for the file also plugs "
        "into the library alns, or has a function solve of distances or coordinates. Also writes "
        "the adapters that a run's model learned, as folders that PEFT and vLLM read. Nothing is "
        "overwritten.",
        "spo export runs/first --out pair.py",
        options.export,
    ),
    "task": (
        "write what OpenEvolve or ShinkaEvolve evolves pairs with",
        "Writes the folder from which another framework evolves a pair: a first program, its "
        "evaluator, which scores pairs in our sandbox as a discovery with these settings does, and "
        "a config with the system message. Prints the command that starts it. Nothing is "
        "overwritten.",
        "spo task openevolve tsp --out evolving",
        options.task,
    ),
    "check": (
        "try the parts of a problem of your own",
        "Tries a problem as other commands use it: an instance, the rules, a rollout and a step of "
        "a trivial pair, codes of solutions, a report, and an exported pair. What does not work "
        "ends it with one sentence and exit code 2; what the problem does not have, and what that "
        "is for, comes last.",
        "spo check my_problem:Knapsack",
        options.check,
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
        options.evaluate,
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
        options.baseline,
    ),
    "solve": (
        "solve an instance with a pair",
        "Searches one instance (TSPLIB .tsp or .atsp, CVRPLIB .vrp, Solomon's .txt or a CSV) and "
        "writes the best solution found as a tour or a .sol file that other tools read. Each "
        "worker searches by itself; they exchange the best and warm up anew when they have cooled "
        "down. Ctrl-C ends it early, and the best so far is written.",
        "spo solve berlin52.tsp --time 30 --plot berlin52.png",
        options.solve,
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
        options.compare,
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
