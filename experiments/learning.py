"""Does the learning help, and is it the credit? Arms of equal budgets, over several seeds.

    python experiments/learning.py --seeds 5 --out runs/learning
    python experiments/learning.py --arms grpo,shared,no-state,shared-no-state --out runs/ablations
    python experiments/learning.py --arms grpo,no-update \
        --arm "fast: --learning-rate 0.02 --credit gap"

The first line compares GRPO with the same search without updates, with the grammar in the model's
place, and with best-of-N: the same model, no parents and no updates. The second is the paper's two
ablations. In them the shared credit teaches, and selects destroys and repairs, too; the arm
shared-learning lets it teach alone, and shared-selection select alone. --arm adds arms of your own.
All of them also tell how many of each round's programs read steps_since_improvement. What runs,
where, and how it is told: common/study.py.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from common import study
from common.commandline import settings_in

from spo_jax.errors import InputError

ARMS: dict[str, dict[str, Any]] = {
    "grpo": {},
    "no-update": {"update": "none"},
    "grammar": {"generator": "grammar"},
    "best-of-n": {"update": "none", "parents": "none"},
    "shared": {"credit": "shared"},
    "shared-learning": {"learning_credit": "shared"},
    "shared-selection": {"credit": "shared", "learning_credit": "stackelberg"},
    "no-state": {"state": False},
    "shared-no-state": {"credit": "shared", "state": False},
}
PRESET = Path(__file__).parent / "configs" / "learning.toml"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0], allow_abbrev=False
    )
    parser.add_argument(
        "--arms", default="grpo,no-update,grammar,best-of-n", help=f"of {', '.join(ARMS)}"
    )
    parser.add_argument(
        "--arm", action="append", default=[], metavar="'NAME: --SETTING VALUE ...'",
        help="an arm of your own; may be repeated",
    )  # fmt: skip
    parser.add_argument("--preset", default=str(PRESET))
    parser.add_argument("--out", default="runs/learning", help="folder of the study")
    return study.script("learning", parser, arms)


def arms(args: argparse.Namespace) -> study.Arms:
    """The arms asked for. Raises InputError for one that is not there, or not of the form."""
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
    return name.strip(), settings_in(settings, f"--arm {text!r}")


if __name__ == "__main__":
    sys.exit(main())
