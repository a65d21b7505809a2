"""Table 2 of the paper again: do our studies of the TSP exclude its effects?

    python experiments/paper_ablation.py docs/tables/learning-novice-tsp-tests.csv \
        docs/tables/learning-tsp-tests.csv

The files are those that learning.py writes, with the arms `shared` and `no-state`. For each size
that the paper has too: the gap without the part minus the gap with it, in percentage points, in the
paper and here, with the 95% Student t interval over seeds. Then p of the one-sided t test that the
difference is as large as the paper's, and as half of it, after Holm's correction over all tests
that are printed: below 0.05, an effect of that size is excluded.
"""

import argparse
import re
import sys
from pathlib import Path

import pandas as pd
from scipy import stats

from common import cli
from common.tables import markdown, paper_values
from spo_jax.errors import InputError
from spo_jax.search.lab.power import holm

WHOLE = "SPO"
ROWS = {"shared": "w/o Stackelberg Credit", "no-state": "w/o State Conditioning"}
GAP = re.compile(r"gap: uniform:(\d+)x")


def effects() -> dict[tuple[str, int], float]:
    """By arm and number of nodes: the gap without the part minus that with it, in points."""
    paper = paper_values("ablations")
    return {
        (arm, int(column.removeprefix("uniform-"))): gap - paper[WHOLE][column]
        for arm, row in ROWS.items()
        for column, gap in paper[row].items()
        if column.startswith("uniform-")
    }


def below(difference: float, low: float, high: float, seeds: int, effect: float) -> float:
    """p of the one-sided t test of a mean difference with its 95% interval against an effect."""
    error = (high - low) / 2 / stats.t.ppf(0.975, seeds - 1)
    return float(stats.t.cdf((difference - effect) / error, seeds - 1))


def compared(paths: list[str]) -> pd.DataFrame:
    """One line per study, arm and size that the paper has.

    Raises InputError for a file that is no table of tests, and for one without such a line.
    """
    found, paper = [], effects()
    for path in map(Path, paths):
        try:
            tests = pd.read_csv(path)[["arm", "measure", "seeds", "difference", "low", "high"]]
        except (OSError, ValueError, KeyError) as error:
            raise InputError(f"{path} is no table of tests of learning.py: {error}") from None
        own = []
        for test in tests.itertuples(index=False):
            size = GAP.match(test.measure)
            nodes = int(size[1]) if size else 0
            effect = paper.get((test.arm, nodes))
            if effect:
                bounds = test.difference, test.low, test.high, test.seeds
                p = [below(*bounds, share * effect) for share in (1.0, 0.5)]
                own.append((path.stem, test.arm, nodes, effect, *bounds, *p))
        if not own:
            raise InputError(f"{path} has no gap of {' or '.join(ROWS)} at a size of the paper's")
        found += own
    names = ["study", "arm", "nodes", "paper", "difference", "low", "high", "seeds",
             "whole", "half"]  # fmt: skip
    frame = pd.DataFrame(found, columns=names)
    corrected = holm([*frame.whole, *frame.half])
    return frame.assign(whole=corrected[: len(frame)], half=corrected[len(frame) :])


def run(args: argparse.Namespace) -> None:
    rows = [
        [each.study, ROWS[each.arm], str(each.nodes), f"{each.paper:+.2f}",
         f"{each.difference:+.2f} ({each.low:+.2f} to {each.high:+.2f})", str(each.seeds),
         f"{each.whole:.2g}", f"{each.half:.2g}"]
        for each in compared(args.tests).itertuples(index=False)
    ]  # fmt: skip
    heads = ["study", "row of Table 2", "nodes", "paper", "here (95% interval)", "seeds",
             "p, as large as the paper's", "p, as half of it"]  # fmt: skip
    print(markdown(heads, rows))


def main() -> int:
    parser = cli.plain_parser(__doc__)
    parser.add_argument("tests", nargs="+", metavar="TESTS.csv")
    return cli.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
