"""The paper's Table 1: every method on uniform instances and on TSPLIB or CVRPLIB.

    python experiments/main_tables.py --problem tsp --budget smoke
    python experiments/main_tables.py --problem cvrp --paper --data DATA
    python experiments/main_tables.py --glns operators.py --contenders alns,g-lns,spo
    python experiments/main_tables.py --also docs/pairs/tsp-standard.py mine.py

Writes OUT/tables/PROBLEM.csv, .md and .tex, the tests of every method against SPO, and every
instance of every run. Without --data (or SPO_DATA) the columns of TSPLIB and CVRPLIB are empty.
"""

import argparse
import sys

from common import cli, compared, contenders


def run(args: argparse.Namespace) -> None:
    context = cli.context(args)
    methods = contenders.asked(args)
    print(context.summary)
    on = compared.ground(context)
    measured = compared.measure(methods, on, context)
    caption = f"Mean final reference gaps (%) on {args.problem.upper()}; lower is better."
    shown = compared.table(caption, measured, on, context)
    if args.paper:
        shown = compared.with_paper(shown, args.problem, measured)
    compared.report(shown, measured, f"{context.out}/tables/{args.problem}")


def main() -> int:
    parser = cli.parser(__doc__)
    contenders.add_arguments(parser)
    parser.add_argument("--paper", action="store_true", help="the paper's rows below ours")
    return cli.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
