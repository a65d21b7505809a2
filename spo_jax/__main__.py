"""`python -m spo_jax` is `spo`."""

import sys

from spo_jax.cli import main

if __name__ == "__main__":
    sys.exit(main())
