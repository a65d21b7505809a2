"""The paper's Table 2: SPO without Stackelberg credit, and without the LNS state.

    python experiments/ablations.py --budget smoke
    python experiments/ablations.py --budget small --seeds 3 --paper --data DATA
    python experiments/ablations.py --problem cvrp --both
    python experiments/ablations.py --learning-alone

Each variant is one flag of `spo discover` away from SPO: --credit shared, where a destroy and a
repair earn their pairs' J alike, and --no-state, where the programs see 0 at every step, in
discovery and in evaluation. Shared credit takes the place of Stackelberg credit wherever that is
used: in the update, in the survival of destroys and in who enters cross-play. --learning-alone
adds the variant where it does in the update alone (--learning-credit shared), which takes a writer
that learns. --both adds the variant with both flags. SPO's runs are those of
main_tables.py. Runs differ by their seeds, so more of them (--seeds) say more than more instances.
Written to OUT/tables: ablations-PROBLEM.csv, .md and .tex, with the tests of every variant against
SPO, and every run and instance.
"""

import argparse
import sys
from dataclasses import replace

from common import budgets, commandline, compared, paper_values, tables
from common.contenders import ABLATIONS, NEITHER, SHARED_LEARNING, SPO
from common.discovered import wanted


def main() -> int:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0], allow_abbrev=False
    )
    parser.add_argument("--problem", choices=budgets.PROBLEMS, default="tsp")
    parser.add_argument("--both", action="store_true", help="a variant with both flags, too")
    parser.add_argument(
        "--learning-alone",
        action="store_true",
        help="a variant whose update alone has shared credit",
    )
    parser.add_argument("--paper", action="store_true", help="the paper's rows beneath ours (TSP)")
    commandline.add_arguments(parser)
    return commandline.script("ablations", parser, run)


def run(args: argparse.Namespace) -> None:
    """Measure what is missing, then tell of all."""
    from spo_jax.envs.problems import get_problem

    budget, out, workers = (
        commandline.chosen(args),
        commandline.folder(args),
        commandline.workers(args),
    )
    variants = list(ABLATIONS.values())
    if args.learning_alone:
        variants.insert(2, SHARED_LEARNING)
    variants += [NEITHER] if args.both else []
    for each in variants:
        wanted(each, args.problem, budget)  # what cannot be had is said before anything runs
    print(budget.told(args.problem))
    groups = budget.groups(args.problem, args.data)
    on = compared.ground(get_problem(args.problem), groups, budget.effort, args.references)
    measured = compared.measure(variants, on, budget, out, workers=workers)
    notes = compared.notes(measured, on, budget)
    if budget.discovery_seeds == 1:
        notes.append(ONE_RUN)
    caption = (
        f"Ablations of Stackelberg credit and of the LNS state, {args.problem.upper()}: mean final "
        "reference gaps (%); lower is better."
    )
    shown = compared.table(caption, measured, on, notes, "Variant")
    if args.paper and args.problem == "tsp":
        statement = compared.comparability(args.problem, measured)
        shown = replace(shown, notes=[*notes, statement])
        shown = tables.with_paper(shown, paper_values.ABLATIONS)
    elif args.paper:
        shown = replace(shown, notes=[*notes, "The paper has no ablations on the CVRP."])
    compared.report(shown, measured, out / "tables" / f"ablations-{args.problem}", base=SPO.label)


ONE_RUN = (
    "One discovery run a variant: two runs of the same variant may be as far apart as two variants "
    "are, and the intervals and tests, over instances, do not know of it."
)

if __name__ == "__main__":
    sys.exit(main())
