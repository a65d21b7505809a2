"""Does learning help, and is it the credit? Arms of equal budgets, over several seeds.

    python experiments/learning.py --seeds 5 --out runs/learning
    python experiments/learning.py --arms grpo,shared,no-state,shared-no-state --out runs/ablations
    python experiments/learning.py --arms grpo,no-update \
        --arm "fast: --learning-rate 0.02 --credit gap"

The first line compares GRPO with the same search without updates, with the grammar in place of the
model, and with best-of-N: the same model, no parents and no updates. `no-evolution` has updates and
no parents. The second line has the paper's two ablations; in `shared` the shared credit is used in
the update and in selection, in shared-learning and shared-selection in one of them. `diverse`
selects survivors by the paper's rule, whose scores are not ranks. --arm adds arms of your own. See
common/study.py.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from common import cli, study
from spo_jax.errors import InputError

ARMS: dict[str, dict[str, Any]] = {
    "grpo": {},
    "no-update": {"update": "none"},
    "no-evolution": {"parents": "none"},
    "grammar": {"generator": "grammar"},
    "best-of-n": {"update": "none", "parents": "none"},
    "diverse": {"survivors": "diverse", "diversity": 0.1},
    "diverse-no-update": {"survivors": "diverse", "diversity": 0.1, "update": "none"},
    "shared": {"credit": "shared"},
    "shared-learning": {"learning_credit": "shared"},
    "shared-selection": {"credit": "shared", "learning_credit": "stackelberg"},
    "no-state": {"state": False},
    "shared-no-state": {"credit": "shared", "state": False},
}


def arms(args: argparse.Namespace) -> study.Arms:
    """The arms asked for. Raises InputError for an unknown one, or one not of the form."""
    names = study.listed(args.arms)
    for name in names:
        if name not in ARMS:
            raise InputError(f"no arm {name!r}; there are {', '.join(ARMS)}, and --arm for others")
    return study.named([*((name, ARMS[name]) for name in names), *map(own_arm, args.arm)])


def own_arm(text: str) -> tuple[str, dict[str, Any]]:
    """'NAME: --SETTING VALUE ...' as an arm, with the flags of `spo discover`."""
    name, colon, settings = text.partition(":")
    if not (name.strip() and colon):
        raise InputError(f"--arm {text!r} is not of the form 'NAME: --SETTING VALUE ...'")
    return name.strip(), cli.settings_in(settings, f"--arm {text!r}")


def main() -> int:
    parser = cli.plain_parser(__doc__)
    parser.add_argument(
        "--arms", default="grpo,no-update,grammar,best-of-n", help=f"of {', '.join(ARMS)}"
    )
    parser.add_argument(
        "--arm", action="append", default=[], metavar="'NAME: --SETTING VALUE ...'",
        help="an arm of your own; may be repeated",
    )  # fmt: skip
    parser.add_argument("--preset", default=str(Path(__file__).parent / "configs/learning.toml"))
    parser.add_argument("--out", default="runs/learning", help="folder of the study")
    return study.main(parser, arms)


if __name__ == "__main__":
    sys.exit(main())
