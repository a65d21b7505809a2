"""The paper's Table 1: every method on uniform instances and on TSPLIB or CVRPLIB.

    python experiments/main_tables.py --problem tsp --budget smoke
    python experiments/main_tables.py --problem cvrp --paper --data DATA
    python experiments/main_tables.py --glns operators.py --contenders alns,g-lns,spo
    python experiments/main_tables.py --also shipped mine.py

    python experiments/main_tables.py --problem tsp --match both
    python experiments/main_tables.py --base-url URL --model NAME --prompt-price 1 \
        --completion-price 3 --estimate

Writes OUT/tables/PROBLEM.csv, .md and .tex, the tests of every method against SPO, every instance
of every run, and what every run spent: programs written, pairs evaluated, CPU seconds. Without
--data (or SPO_DATA) the columns of TSPLIB and CVRPLIB are empty.

Methods write equal numbers of programs. --match pairs gives them the number of pairs that SPO
evaluated, and --match both has both rows. --match rounds has a second row of SPO, with the rounds
in which it evaluates as many pairs as the others, and tests against that row.

With --base-url a model at an endpoint writes all programs, each method's in its own language, and
--estimate says beforehand what that costs: it rehearses every method, and asks nobody. The same
line without it makes the table.
"""

import argparse
import sys

from common import cli, compared, contenders, rehearsal, spending
from spo_jax.errors import InputError


def run(args: argparse.Namespace) -> None:
    context = cli.context(args)
    print(context.summary)
    if args.estimate:
        estimate(args, context)
        return
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


def estimate(args: argparse.Namespace, context: cli.Context) -> None:
    """Print what the discovery runs would cost. Raises InputError where nothing is discovered."""
    if args.match != "programs":
        raise InputError("--estimate is of --match programs: what SPO evaluates is not known yet")
    found = [each for each in contenders.asked(args) if each.discovered]
    if not found:
        raise InputError("--estimate: none of these methods discovers anything")
    bills = []
    for each in found:
        bills.append(rehearsal.bill(each, context))
        print(f"{each.label}: rehearsed", flush=True)
    print("\n" + rehearsal.table(bills, context.budget.discovery_seeds))


def main() -> int:
    parser = cli.parser(__doc__)
    contenders.add_arguments(parser)
    cli.endpoint_arguments(parser)
    parser.add_argument(
        "--estimate", action="store_true", help="say what an endpoint would cost, and ask nobody"
    )
    parser.add_argument("--paper", action="store_true", help="the paper's rows below ours")
    parser.add_argument(
        "--match", choices=spending.MATCHES, default="programs", help="which budgets are equal"
    )
    return cli.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
