"""The paper's Table 1: every method on uniform instances and on TSPLIB or CVRPLIB.

    python experiments/main_tables.py --problem tsp --budget smoke
    python experiments/main_tables.py --problem cvrp --paper --data DATA
    python experiments/main_tables.py --glns operators.py --contenders alns,g-lns,spo
    python experiments/main_tables.py --also docs/pairs/tsp-standard.py mine.py

    python experiments/main_tables.py --problem tsp --match both

Writes OUT/tables/PROBLEM.csv, .md and .tex, the tests of every method against SPO, every instance
of every run, and what every run spent: programs written, pairs evaluated, CPU seconds. Methods
write equal numbers of programs; --match pairs gives them the number of pairs that SPO evaluated,
--match both has both rows. Without --data (or SPO_DATA) the columns of TSPLIB and CVRPLIB are
empty.
"""

import argparse
import sys

from common import cli, compared, contenders, spending


def run(args: argparse.Namespace) -> None:
    context = cli.context(args)
    print(context.summary)
    methods = spending.matched(contenders.asked(args), args.match, context)
    on = compared.ground(context)
    measured = compared.measure(methods, on, context)
    caption = f"Mean final reference gaps (%) on {args.problem.upper()}; lower is better."
    shown = compared.table(caption, measured, on, context)
    if args.paper:
        shown = compared.with_paper(shown, args.problem, measured)
    stem = f"{context.out}/tables/{args.problem}"
    compared.report(shown, measured, stem)
    spending.write(spending.spent(measured, context), stem)


def main() -> int:
    parser = cli.parser(__doc__)
    contenders.add_arguments(parser)
    parser.add_argument("--paper", action="store_true", help="the paper's rows below ours")
    parser.add_argument(
        "--match", choices=spending.MATCHES, default="programs", help="which budgets are equal"
    )
    return cli.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
