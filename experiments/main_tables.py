"""The paper's Table 1: every method on uniform instances and on TSPLIB or CVRPLIB.

    python experiments/main_tables.py --problem tsp --budget smoke
    python experiments/main_tables.py --problem cvrp --budget small --paper --data DATA
    python experiments/main_tables.py --problem tsp --glns operators.py --contenders alns,g-lns,spo
    python experiments/main_tables.py --problem tsp --also docs/pairs/tsp-standard.py mine.py

--data (or SPO_DATA) names the folder that holds tsplib/ and cvrplib/; without it those columns are
empty, and the table says so. --paper prints the paper's rows beneath ours, with what is comparable.
Written to OUT/tables: PROBLEM.csv, .md and .tex; the tests of every method against SPO, and every
run and instance behind a cell. The same command goes on where it was stopped.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

from common import budgets, commandline, compared, paper_values, tables
from common.contenders import CONTENDERS, SPO, asked

WHAT = {"tsp": "TSP", "cvrp": "CVRP"}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0], allow_abbrev=False
    )
    parser.add_argument("--problem", choices=budgets.PROBLEMS, required=True)
    parser.add_argument(
        "--contenders", metavar="NAME,...", help=f"only these of {', '.join(CONTENDERS)}"
    )
    parser.add_argument(
        "--glns", metavar="FILE", help="the operators that the authors of G-LNS released, as a row"
    )
    parser.add_argument(
        "--pair", metavar="FILE", help="a pair, or a finished run, for SPO instead of its discovery"
    )
    parser.add_argument(
        "--also", nargs="+", default=(), metavar="FILE", help="pairs or runs as rows of their own"
    )
    parser.add_argument("--paper", action="store_true", help="the paper's rows beneath ours")
    commandline.add_arguments(parser)
    return commandline.script("main_tables", parser, run)


def run(args: argparse.Namespace) -> None:
    """Measure what is missing, then tell of all."""
    from spo_jax.envs.problems import get_problem

    budget, out, workers = (
        commandline.chosen(args),
        commandline.folder(args),
        commandline.workers(args),
    )
    methods = asked(args.problem, args.contenders, pair=args.pair, glns=args.glns, also=args.also)
    print(budget.told(args.problem))
    groups = budget.groups(args.problem, args.data)
    on = compared.ground(get_problem(args.problem), groups, budget.effort, args.references)
    measured = compared.measure(methods, on, budget, out, workers=workers)
    caption = f"Mean final reference gaps (%) on {WHAT[args.problem]}; lower is better."
    shown = compared.table(caption, measured, on, compared.notes(measured, on, budget), "Method")
    if args.paper:
        shown = beside_the_paper(shown, args.problem, measured)
    compared.report(shown, measured, out / "tables" / args.problem, base=SPO.label)


def beside_the_paper(
    shown: tables.Table, problem: str, measured: Sequence[compared.Measured]
) -> tables.Table:
    """The table with the paper's rows, and what may be compared. Its G-LNS is the released one."""
    theirs = dict(paper_values.MAIN[problem])
    released = next((m for m in measured if m.contender.name == "g-lns-released"), None)
    if released is not None:
        theirs[released.contender.label] = theirs.pop("G-LNS")
    statement = compared.comparability(problem, measured)
    shown = replace(shown, notes=[*shown.notes, statement])
    return tables.with_paper(shown, theirs)


if __name__ == "__main__":
    sys.exit(main())
