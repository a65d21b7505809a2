"""What the experiments share. Refuses to be imported without the extra that their tables need."""

import sys
from importlib.util import find_spec

if find_spec("pandas") is None:
    print("experiments need the study extra: pip install 'spo-jax[study]'", file=sys.stderr)
    raise SystemExit(2)
