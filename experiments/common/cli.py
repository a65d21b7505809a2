"""The command line that all experiments share."""

import argparse
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common.budgets import BUDGETS, PROBLEMS, Budget, Group
from spo_jax.cli import flags
from spo_jax.config import Settings
from spo_jax.envs.problem import Problem
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError, SpoError
from spo_jax.limits import MAX_WORKERS
from spo_jax.stopping import exit_code


@dataclass(frozen=True)
class Context:
    """What one experiment runs with. out: where runs, evaluations, tables and figures lie.

    data: folder of tsplib/ and cvrplib/. references: a file of better reference values.
    """

    problem: Problem
    budget: Budget
    out: Path
    workers: int = 1
    data: str | None = None
    references: str | None = None

    @property
    def groups(self) -> list[Group]:
        """The columns of the tables."""
        return self.budget.groups(self.problem.name, self.data)

    def group(self, key: str) -> Group:
        """The group of this key. Raises InputError for another."""
        found = {each.key: each for each in self.groups}
        if key not in found:
            raise InputError(f"--group {key}: use one of {', '.join(found)}")
        return found[key]

    @property
    def summary(self) -> str:
        return self.budget.summary(self.problem.name)


def main(
    parser: ArgumentParser, run: Callable[[Namespace], None], argv: Sequence[str] | None = None
) -> int:
    """Run a command line; the exit code: 2 for what the user can mend, 130 after Ctrl-C."""
    try:
        run(parser.parse_args(argv))
        return 0
    except SpoError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        print(f"\n{parser.prog}: stopped; the same command resumes", file=sys.stderr)
        return exit_code(stop)


def plain_parser(doc: str | None) -> ArgumentParser:
    """A parser described by the docstring of a script."""
    return ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )


def parser(doc: str | None, problem: str = "tsp", group: str = "", runs: bool = False) -> Any:
    """A parser with the flags of every experiment.

    group: the default of --group, where there is one. runs: whether --run is a flag.
    """
    made = plain_parser(doc)
    made.add_argument("--problem", choices=PROBLEMS, default=problem)
    made.add_argument("--budget", choices=tuple(BUDGETS), default="small")
    made.add_argument(
        "--out", metavar="FOLDER",
        help="may be shared by all experiments, and resumes (default: runs/experiments/BUDGET)",
    )  # fmt: skip
    made.add_argument("--workers", type=int, help="worker processes (default: one per CPU)")
    made.add_argument(
        "--data", metavar="FOLDER", help="holds tsplib/ and cvrplib/ (default: $SPO_DATA)"
    )
    made.add_argument("--references", metavar="FILE", help="better references than the known ones")
    made.add_argument("--seeds", type=int, metavar="N", help="runs of each discovery method")
    made.add_argument(
        "--first-seed", type=int, default=0, metavar="N",
        help="seed of the first of them (default: 0), as where several machines share the runs",
    )  # fmt: skip
    made.add_argument(
        "--discovery", default="", metavar="'--SETTING VALUE ...'",
        help="settings of spo discover for all runs, above the budget's",
    )  # fmt: skip
    if group:
        made.add_argument("--group", default=group, help="a column of the tables, as uniform-50")
    if runs:
        made.add_argument("--run", nargs="+", metavar="FOLDER", help="instead of the budget's runs")
    return made


def context(args: Namespace) -> Context:
    """What the command line asks for; makes --out. Raises InputError for values out of range."""
    workers = Settings().workers if args.workers is None else args.workers
    if not 1 <= workers <= MAX_WORKERS:
        raise InputError(f"--workers is {workers}; it must be from 1 to {MAX_WORKERS}")
    budget = budget_of(args)
    out = Path(args.out or f"runs/experiments/{args.budget}")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out} cannot be made: {error.strerror or error}") from None
    return Context(get_problem(args.problem), budget, out, workers, args.data, args.references)


def budget_of(args: Namespace) -> Budget:
    budget = BUDGETS[args.budget]
    if args.seeds is not None:
        if args.seeds < 1:
            raise InputError(f"--seeds is {args.seeds}; there is at least one discovery run")
        budget = replace(budget, discovery_seeds=args.seeds)
    if args.first_seed < 0:
        raise InputError(f"--first-seed is {args.first_seed}; seeds begin at 0")
    budget = replace(budget, first_seed=args.first_seed)
    own = {**endpoint(args), **settings_in(args.discovery, "--discovery")}
    if {"seed", "method", "workers"} & own.keys():
        raise InputError("--discovery: seed, method and workers are the experiment's own")
    # Another generator may learn, though the budget's own does not.
    left_out = {"update"} if "generator" in own else set()
    kept = {name: value for name, value in budget.settings.items() if name not in left_out}
    return replace(budget, settings={**kept, **own})


def endpoint_arguments(parser: ArgumentParser) -> None:
    """--base-url, --model and the prices, which `endpoint` reads."""
    parser.add_argument("--base-url", metavar="URL", help="an endpoint writes the programs")
    parser.add_argument("--model", help="the endpoint's")
    for name, of in (("prompt", "prompt"), ("completion", "answer")):
        parser.add_argument(
            f"--{name}-price", type=float, metavar="X", help=f"of a million {of} tokens"
        )


def endpoint(args: Namespace) -> dict[str, Any]:
    """The settings of --base-url and the rest. Raises InputError for the rest without it."""
    names = ("base_url", "model", "prompt_price", "completion_price")
    given = {name: value for name in names if (value := getattr(args, name, None)) is not None}
    if given and ("base_url" not in given or "model" not in given):
        raise InputError("an endpoint needs --base-url and --model")
    return {"generator": "openai", **given} if given else {}


def settings_in(text: str, what: str) -> dict[str, Any]:
    """'--SETTING VALUE ...' as settings. Raises InputError, in which `what` names the text."""
    try:
        words = shlex.split(text)
    except ValueError as error:  # a quotation without an end
        raise InputError(f"{what}: {error}") from None
    reader = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    flags.add_arguments(reader)
    try:
        found, unknown = reader.parse_known_args(words)
    except argparse.ArgumentError as error:
        raise InputError(f"{what}: {error}") from None
    if unknown:
        raise InputError(f"{what}: there is no setting {' '.join(unknown)}")
    return flags.given(found)
