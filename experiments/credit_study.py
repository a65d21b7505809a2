"""Credit schemes against each other: the same seeds and the same budget of sampled answers.

    python experiments/credit_study.py --schemes stackelberg,shared,gap --seeds 5 --preset quick
    python experiments/credit_study.py --schemes stackelberg,my_module:my_scheme --generator grammar

See common/study.py.
"""

import sys

from common import cli, study
from spo_jax import presets


def main() -> int:
    parser = cli.plain_parser(__doc__)
    parser.add_argument("--schemes", required=True, help="names with commas between them")
    parser.add_argument("--preset", default=presets.DEFAULT_PRESET)
    parser.add_argument("--out", default="runs/credit-study", help="folder of the study")
    return study.main(
        parser, lambda args: study.named((s, {"credit": s}) for s in study.listed(args.schemes))
    )


if __name__ == "__main__":
    sys.exit(main())
