"""Credit schemes against each other: the same seeds and the same budget of sampled answers.

    python experiments/credit_study.py --schemes stackelberg,shared,gap --seeds 5 --preset quick
    python experiments/credit_study.py --schemes stackelberg,my_module:my_scheme --generator grammar

What runs, where, and how it is told: common/study.py.
"""

import argparse
import sys

from common import study

from spo_jax import presets


def main() -> int:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0], allow_abbrev=False
    )
    parser.add_argument("--schemes", required=True, help="names with commas between them")
    parser.add_argument("--preset", default=presets.DEFAULT_PRESET)
    parser.add_argument("--out", default="runs/credit-study", help="folder of the study")
    return study.script("credit_study", parser, lambda args: arms(args.schemes))


def arms(schemes: str) -> study.Arms:
    """One arm a scheme, under its own name."""
    return study.named((name, {"credit": name}) for name in study.listed(schemes))


if __name__ == "__main__":
    sys.exit(main())
