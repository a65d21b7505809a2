"""What a run's policies are worth, apart from what the run found: numbers that a probe left.

`experiments/policy_probe.py` measures them; the report and the comparison of runs show them. They
are no part of the run, which neither reads nor makes them.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from spo_jax.envs.files.textfiles import load_json, write_atomically
from spo_jax.errors import InputError
from spo_jax.program import Role

PROBES = "policy_probe.json"


@dataclass(frozen=True)
class ProbeRecord:
    """What a role's policy wrote after a round, without parents in its prompt.

    Attributes:
        round: 0 is before the first update.
        role: The policy's.
        answers: How many were asked for.
        different: Different programs among them.
        failed: Share of them that are no program, or fail with every partner.
        worth: Mean J; of a destroy with its best response among frozen repairs. A failure is 0.
        worth_error: Its standard error.
        valid_ones: The mean of those that do not fail; NaN without any.
        reliability: Of the values of single programs, by halves; NaN where it is not known.
    """

    round: int
    role: Role
    answers: int
    different: int
    failed: float
    worth: float
    worth_error: float
    valid_ones: float
    reliability: float


def read_probes(run: Path) -> list[ProbeRecord]:
    """Those of a run folder, by round and role; none without the file.

    Raises:
        InputError: The file is damaged.
    """
    path = run / PROBES
    if not path.exists():
        return []
    try:
        return [ProbeRecord(**_numbers(row)) for row in load_json(path)["rows"]]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(f"{path} is no file of a probe: move it away") from None


def keep_probes(run: Path, terms: Mapping[str, Any], rows: Sequence[ProbeRecord]) -> None:
    """Add rows to a run folder, in place of those of the same round and role.

    Args:
        run: The folder.
        terms: What the numbers depend on besides the policy. Rows of other terms are dropped:
            they do not compare.
        rows: What was measured.
    """
    path = run / PROBES
    same = path.exists() and load_json(path).get("terms") == dict(terms)
    kept = {(each.round, each.role): each for each in read_probes(run)} if same else {}
    kept |= {(each.round, each.role): each for each in rows}
    _write(path, terms, [kept[key] for key in sorted(kept)])


def rewind_probes(run: Path, number: int) -> None:
    """Drop the rows of rounds after `number`."""
    path = run / PROBES
    if path.exists():
        left = [each for each in read_probes(run) if each.round <= number]
        _write(path, load_json(path)["terms"], left)


def _numbers(row: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no NaN."""
    return {name: math.nan if value is None else value for name, value in row.items()}


def _write(path: Path, terms: Mapping[str, Any], rows: Sequence[ProbeRecord]) -> None:
    known = [
        {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(row).items()}
        for row in rows
    ]
    write_atomically(path, json.dumps({"terms": dict(terms), "rows": known}))
