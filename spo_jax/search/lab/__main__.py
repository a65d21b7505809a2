"""When do credit schemes part? In worlds whose truth is known, in a minute or two.

    python -m spo_jax.search.lab
    PYTHONPATH=. python -m spo_jax.search.lab --quick --schemes stackelberg,shared,my_credit:steady
    python -m spo_jax.search.lab --schemes stackelberg@1,stackelberg@2,stackelberg@4,shared \\
        --world "mine: gamma=2 noise=1 spread=0.3 ceiling=1"
    python -m spo_jax.search.lab --table runs/payoff-table/tsp.npz
    python -m spo_jax.search.lab power --effect 0.001    # how many seeds does a study need?

A world has leaders, followers, and J of every pair; its parameters are those of
spo_jax.search.lab.worlds.WorldSpec. A table of experiments/payoff_table.py or payoff_shares.py is a
world too, in the place of those above: what was measured stands for the truth, and each of N worlds
has other programs of it, of those without failures. It is marked in the picture, and rounds of a
thousand seeds are replayed from it, without running a program, failures included: schemes, L,
numbers of responses, rules of survivors, panel sizes, candidates of cross-play.

A scheme is NAME or NAME@L, as --credit of `spo discover` takes it, also `package.module:function`;
it is compared with the first one. All schemes have the same number of evaluated pairs per leader:
one that asks for more has fewer responses.

Writes into OUT: learning.csv, what policies learn from the credits by the group-relative update,
with centred and with standardised advantages, which can turn the sign of a difference;
estimators.csv, how well a round's credits tell good leaders from bad ones; map.csv and
credit_lab.png, where which scheme is the best estimator; tables.md, what is printed. Intervals are
95% Student t, over worlds; differences are paired by world. The last column of the tables is the
number of worlds, or of training runs, in which a paired t test finds the difference with a power of
0.8. Under each table is a verdict per scheme: in how many cells it is better or worse by tests that
are corrected over the table, of policies by advantage, and where a difference above --exclude is
excluded.
"""

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from spo_jax.cache import cache_folder
from spo_jax.envs.files.textfiles import write_atomically
from spo_jax.errors import InputError, SpoError
from spo_jax.rl.backend import keep_compiled
from spo_jax.search.lab import studies, study
from spo_jax.search.lab.bandit import COPIES, Training
from spo_jax.search.lab.measured.reports import Trials, made_of, replayed
from spo_jax.search.lab.measured.survival import Rule
from spo_jax.search.lab.measured.tables import Table, load_table
from spo_jax.search.lab.policies import WRITERS
from spo_jax.search.lab.schemes import Scheme
from spo_jax.search.lab.show import csv_text, draw_map, tables
from spo_jax.search.lab.worlds import WorldSpec, require_failing, world_spec
from spo_jax.stopping import exit_code

SCHEMES = (
    "stackelberg,shared,max,mean,max-at-k,pkpo,maxpo,entropic,rank,regret,gap,fair-parent,"
    "counterfactual,two-way,shapley"
)  # those that differ here
WORLDS = {
    "additive": "gamma=0",
    "equal spreads": "spread=0",
    "unequal spreads": "",
    "very unequal": "spread=1",
    "noisy": "noise=2",
    "few that fit": "fit=0.1",
    "heavy tails": "tails=3",
    "low ceiling": "ceiling=0",
}


def run(args: argparse.Namespace) -> None:
    begun = time.perf_counter()
    budget = study.QUICK if args.quick else study.Budget()
    if args.worlds is not None:
        if args.worlds < 2:
            raise InputError(f"--worlds is {args.worlds}: an interval needs at least 2")
        budget = replace(budget, worlds=args.worlds, map_worlds=args.worlds)
    if args.rounds is not None:
        budget = replace(budget, steps=args.rounds)
    if (args.failing or args.tie) and not args.table:
        raise InputError("--failing and --tie are of a --table; a --world has its own")
    require_failing(args.failing, args.tie)
    budget = replace(
        budget, writer=args.writer, copies=args.copies, learners=_learners(args.learners),
        rate=args.rate, failing=args.failing, tie=args.tie,
    )  # fmt: skip
    Training(rate=args.rate)  # refused before anything is measured
    if not 0 < args.exclude < math.inf:
        raise InputError(f"--exclude is {args.exclude:g}; an effect is a number above 0")
    schemes = asked(args.schemes)
    keep_compiled(cache_folder() / "compiled")
    trials = _trials(args)
    measured = {}
    for path in args.table:
        table = load_table(path, args.step)
        if not table.shares.leader:
            raise InputError(f"--table {path}: no difference between leaders was found")
        measured[Path(path).stem] = table
    own_worlds = {} if measured else WORLDS
    parameters: dict[str, WorldSpec | Table] = {
        name: world_spec(text) for name, text in own_worlds.items()
    }
    for text in args.world:
        name, colon, own = text.partition(":")
        if not (name.strip() and colon):
            raise InputError(f"--world {text!r} is not of the form 'NAME: NAME=VALUE ...'")
        try:
            parameters[name.strip()] = world_spec(own)
        except InputError as error:
            raise InputError(f"--world {text!r}: {error}") from None
    parameters |= measured
    pairs = _numbers("--responses", args.responses)
    parts = [made_of(measured)] if measured else []
    parts += [replayed(name, table, schemes, budget.responses, budget.seeds, args.seed, trials)
             for name, table in measured.items()]  # fmt: skip
    estimated = study.estimators(schemes, parameters, pairs, budget, args.seed)
    learned = study.learning(schemes, parameters, budget, args.seed)
    cells = study.map_cells(schemes, budget, args.seed)
    text = "\n".join([*parts, tables(estimated, learned, schemes, args.exclude)])
    print(text)
    for why in filter(None, (scheme.slow for scheme in schemes)):
        print(why)
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / "tables.md", text)
    for name, rows in (("estimators", estimated), ("learning", learned), ("map", cells)):
        write_atomically(out / f"{name}.csv", csv_text(rows))
    picture = Path(args.picture) if args.picture else out / "credit_lab.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(
        picture, draw_map(cells, schemes, {name: table.shares for name, table in measured.items()})
    )
    seconds = time.perf_counter() - begun
    print(f"\nwritten in {seconds:.0f} s: {picture}, and in {out}: "
          "tables.md, estimators.csv, learning.csv, map.csv")  # fmt: skip


def asked(text: str) -> list[Scheme]:
    """The schemes of the command line, each once. Raises InputError for none."""
    found = [Scheme.of(name) for name in _listed(text)]
    if not found or len({each.label for each in found}) < len(found):
        raise InputError("--schemes needs names, and each scheme once")
    return found


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _trials(args: argparse.Namespace) -> Trials:
    """What is tried in rounds of tables. Raises InputError for such an option without a table."""
    given: dict[str, Any] = {}
    if args.survivors is not None:
        rules = tuple(Rule.of(name) for name in _listed(args.survivors))
        if not rules or len({rule.label for rule in rules}) < len(rules):
            raise InputError("--survivors needs names, and each rule once")
        given["rules"] = rules
    for name in ("candidates", "panels"):
        if getattr(args, name) is not None:
            given[name] = _numbers(f"--{name}", getattr(args, name))
    for name, number in (("population", args.population), ("rounds", args.replayed_rounds)):
        if number is not None:
            if number < 1:
                raise InputError(f"--population and --replayed-rounds are at least 1, not {number}")
            given[name] = number
    if given and not args.table:
        raise InputError("--survivors, --population, --replayed-rounds, --panels and --candidates "
                         "are of rounds replayed from a --table")  # fmt: skip
    return Trials(**given)


def _learners(text: str) -> tuple[int, int]:
    """Leaders and followers. Raises InputError."""
    numbers = _numbers("--learners", text)
    if len(numbers) != 2 or min(numbers) < 2:
        raise InputError(f"--learners {text}: two numbers of at least 2, of leaders and followers")
    return numbers[0], numbers[1]


def _numbers(option: str, text: str) -> tuple[int, ...]:
    found = _listed(text)
    for each in found:
        if not each.isdecimal() or int(each) < 1:
            raise InputError(f"{option}: {each!r} is no whole number of at least 1")
    if not found:
        raise InputError(f"{option} needs at least one number")
    return tuple(int(each) for each in found)


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code: 2 for what the user can mend, 130 after Ctrl-C."""
    words = list(sys.argv[1:] if argv is None else argv)
    planning = words[:1] == ["power"]
    if planning:
        del words[0]
    parser = argparse.ArgumentParser(
        prog="python -m spo_jax.search.lab" + " power" * planning, allow_abbrev=False,
        description=studies.__doc__ if planning else __doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    (studies.add_arguments if planning else add_arguments)(parser)
    args = parser.parse_args(words)
    try:
        (studies.run if planning else run)(args)
        return 0
    except SpoError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        print(f"\n{parser.prog}: stopped", file=sys.stderr)
        return exit_code(stop)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--schemes", default=SCHEMES, metavar="NAME,MODULE:FUNCTION,...",
        help="schemes with commas between them; the others are compared with the first",
    )  # fmt: skip
    parser.add_argument(
        "--world", action="append", default=[], metavar="'NAME: NAME=VALUE ...'",
        help="a world of your own in the tables; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--table", action="append", default=[], metavar="FILE.npz",
        help="measured worlds in the place of the others; may be repeated",
    )  # fmt: skip
    parser.add_argument("--step", type=int, metavar="N", help="of the tables (default: the last)")
    parser.add_argument(
        "--responses", default="6,30", metavar="N,N,...",
        help="numbers of evaluated pairs per leader in the tables (default: 6,30)",
    )  # fmt: skip
    parser.add_argument(
        "--writer", choices=tuple(WRITERS), default="table",
        help="of the policies that learn: each program by itself, or programs by their parts, with "
        "followers that see the leader's or do not (default: table)",
    )  # fmt: skip
    parser.add_argument(
        "--learners", default="16,32", metavar="K,M",
        help="leaders and followers that the policies choose from (default: 16,32)",
    )  # fmt: skip
    parser.add_argument(
        "--rate", type=float, default=Training.rate, metavar="X",
        help=f"learning rate of the policies, 0 for none that learn (default: {Training.rate})",
    )  # fmt: skip
    parser.add_argument(
        "--copies", choices=COPIES, default="paid",
        help="whether policies learn from leaders and pairs that an earlier round had (default: "
        "paid)",
    )  # fmt: skip
    parser.add_argument(
        "--rounds", type=int, metavar="N", help="for which policies learn (default: 100)"
    )
    parser.add_argument(
        "--exclude", type=float, default=0.05, metavar="X",
        help="the difference that verdicts say is excluded, or not (default: 0.05)",
    )  # fmt: skip
    failures = parser.add_argument_group("failures in worlds that are drawn from tables")
    failures.add_argument(
        "--failing", type=float, default=0.0, metavar="SHARE",
        help="mean chance that an evaluation fails (default: 0)",
    )  # fmt: skip
    failures.add_argument(
        "--tie", type=float, default=0.0, metavar="R",
        help="correlation of leaders' chances to fail with their value (default: 0)",
    )  # fmt: skip
    tables = parser.add_argument_group("rounds replayed from tables")
    tables.add_argument(
        "--survivors", metavar="NAME@WEIGHT,MODULE:FUNCTION@WEIGHT,...",
        help="rules of survivors, as of spo discover, with weights of the distances; the others "
        "are compared with the first",
    )  # fmt: skip
    tables.add_argument(
        "--population", type=int, metavar="N",
        help="programs that are kept (default: a twelfth of a table's, at most 10)",
    )  # fmt: skip
    tables.add_argument(
        "--replayed-rounds", type=int, metavar="N", help="that survivors pass (default: 4)"
    )
    tables.add_argument(
        "--panels", metavar="N,N,...", help="numbers of destroys (default: 1,2,4,8,16)"
    )
    tables.add_argument(
        "--candidates", metavar="N,N,...",
        help="repairs that enter cross-play (default: 2, 4 and 8 times the population)",
    )  # fmt: skip
    parser.add_argument("--worlds", type=int, metavar="N", help="of each kind (default: 100)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="fewer worlds, a coarse picture")
    parser.add_argument("--out", default="runs/credit-lab", help="folder of tables and picture")
    parser.add_argument("--picture", metavar="FILE", help="a PNG (default: OUT/credit_lab.png)")


if __name__ == "__main__":
    sys.exit(main())
