"""The paper's Table 2: SPO without Stackelberg credit, and without the LNS state.

    python experiments/ablations.py --budget smoke
    python experiments/ablations.py --seeds 3 --paper --data DATA
    python experiments/ablations.py --problem cvrp --both
    python experiments/ablations.py --learning-alone

Each variant is one flag of `spo discover`: --credit shared, in the update and in every selection,
or --no-state. --learning-alone adds --learning-credit shared, in the update alone, which needs a
model that learns; --both adds the variant with both flags. SPO's runs are those of main_tables.py.
Writes OUT/tables/ablations-PROBLEM.csv, .md and .tex, and the rest as main_tables.py does. One run
per variant says little: runs of one variant may differ as much as variants do; use --seeds.
"""

import argparse
import sys

from common import cli, compared
from common.contenders import ABLATIONS, NEITHER, SHARED_LEARNING
from common.runs import settings_of


def run(args: argparse.Namespace) -> None:
    context = cli.context(args)
    variants = list(ABLATIONS)
    if args.learning_alone:
        variants.insert(2, SHARED_LEARNING)
    variants += [NEITHER] if args.both else []
    for each in variants:
        settings_of(each, context)  # raises before anything runs
    print(context.summary)
    on = compared.ground(context)
    measured = compared.measure(variants, on, context)
    caption = (
        "Ablations of Stackelberg credit and of the LNS state: mean final reference gaps (%) on "
        f"{args.problem.upper()}; lower is better."
    )
    shown = compared.table(caption, measured, on, context)
    if args.paper and args.problem == "tsp":
        shown = compared.with_paper(shown, "ablations", measured)
    compared.report(shown, measured, f"{context.out}/tables/ablations-{args.problem}")


def main() -> int:
    parser = cli.parser(__doc__)
    parser.add_argument("--both", action="store_true", help="a variant with both flags, too")
    parser.add_argument(
        "--learning-alone", action="store_true", help="a variant with shared credit in the update"
    )
    parser.add_argument("--paper", action="store_true", help="the paper's rows below ours (TSP)")
    return cli.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
