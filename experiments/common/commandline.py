"""What scripts share of their command lines: flags of a budget, settings as a text, exit codes."""

import argparse
import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from common.budgets import BUDGETS, PROBLEMS, Budget

from spo_jax import flags
from spo_jax.config import MAX_WORKERS, Settings
from spo_jax.errors import InputError, SpoError
from spo_jax.stopping import exit_code


def script(
    name: str,
    parser: argparse.ArgumentParser,
    run: Callable[[Namespace], int | None],
    argv: Sequence[str] | None = None,
) -> int:
    """Run a command line; the exit code: 2 for what the user can mend, 130 after Ctrl-C."""
    try:
        return run(parser.parse_args(argv)) or 0
    except SpoError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        print(f"\n{name}: stopped; the same command goes on", file=sys.stderr)
        return exit_code(stop)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--budget, --out, --workers; what changes a budget, --seeds and --discovery; where files are,
    --data and --references.
    """
    parser.add_argument("--budget", choices=tuple(BUDGETS), default="small")
    parser.add_argument(
        "--out", metavar="FOLDER",
        help="what is discovered, evaluated and written; may be shared by all experiments, "
        "and the same one goes on where it was stopped (default: runs/experiments/BUDGET)",
    )  # fmt: skip
    parser.add_argument("--workers", type=int, help="worker processes (default: one a CPU)")
    parser.add_argument(
        "--data", metavar="FOLDER", help="holds tsplib/ and cvrplib/ (default: $SPO_DATA)"
    )
    parser.add_argument(
        "--references", metavar="FILE", help="better references than those that are known"
    )
    parser.add_argument(
        "--seeds", type=int, metavar="N", help="runs of each discovery method, for the budget's"
    )
    parser.add_argument(
        "--discovery", default="", metavar="'--SETTING VALUE ...'",
        help="settings of spo discover for all runs, above the budget's",
    )  # fmt: skip


def chosen(args: argparse.Namespace) -> Budget:
    """The budget that the command line names. Raises InputError for settings that are none."""
    budget = BUDGETS[args.budget]
    if args.seeds is not None:
        if args.seeds < 1:
            raise InputError(f"--seeds is {args.seeds}; there is at least one discovery run")
        budget = replace(budget, discovery_seeds=args.seeds)
    own = settings_in(args.discovery, "--discovery")
    if {"seed", "method", "workers"} & own.keys():
        raise InputError("--discovery: seed, method and workers are the experiment's own")
    if own:
        # Another writer may learn, though the budget's own does not.
        left_out = {"update"} if "generator" in own else set()
        kept = {
            p: {n: v for n, v in budget.given(p).items() if n not in left_out} for p in PROBLEMS
        }
        budget = replace(budget, settings={p: {**kept[p], **own} for p in PROBLEMS})
    return budget


def folder(args: argparse.Namespace) -> Path:
    """--out, which is made if it is not there."""
    path = Path(args.out or f"runs/experiments/{args.budget}")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {path} cannot be made: {error.strerror or error}") from None
    return path


def workers(args: argparse.Namespace) -> int:
    """--workers, by default as many as `spo discover` would use."""
    count = Settings().workers if args.workers is None else args.workers
    if not 1 <= count <= MAX_WORKERS:
        raise InputError(f"--workers is {count}; it must be from 1 to {MAX_WORKERS}")
    return count


def settings_in(text: str, what: str) -> dict[str, Any]:
    """'--SETTING VALUE ...' as settings. Raises InputError, in which `what` names the text."""
    try:
        words = shlex.split(text)
    except ValueError as error:  # a quotation without an end
        raise InputError(f"{what}: {error}") from None
    return flags.given(_Flags(what).parse_args(words))


class _Flags(argparse.ArgumentParser):
    """The settings as flags, whose mistakes are the user's."""

    def __init__(self, what: str) -> None:
        super().__init__(add_help=False, allow_abbrev=False)
        self._what = what
        flags.add_arguments(self)

    def error(self, message: str) -> Any:
        raise InputError(f"{self._what}: {message}")
