"""What a probe of a run's policies leaves in the run's folder."""

import math
from pathlib import Path

import pytest

from spo_jax import InputError
from spo_jax.program import Role
from spo_jax.runs.probes import PROBES, ProbeRecord, keep_probes, read_probes, rewind_probes


def measured(number: int, role: Role, worth: float) -> ProbeRecord:
    return ProbeRecord(number, role, 30, 20, 0.5, worth, 0.001, math.nan, math.nan)


def test_rows_are_kept_by_round_and_role_and_dropped_with_their_rounds(tmp_path: Path) -> None:
    assert read_probes(tmp_path) == []
    rewind_probes(tmp_path, 0)  # nothing to drop
    keep_probes(tmp_path, {"seed": 0}, [measured(2, "destroy", 0.2), measured(2, "repair", 0.1)])
    keep_probes(tmp_path, {"seed": 0}, [measured(1, "destroy", 0.3), measured(2, "repair", 0.4)])
    found = read_probes(tmp_path)
    assert [(each.round, each.role, each.worth) for each in found] == [
        (1, "destroy", 0.3), (2, "destroy", 0.2), (2, "repair", 0.4),
    ]  # fmt: skip
    assert all(math.isnan(each.reliability) for each in found)
    rewind_probes(tmp_path, 1)
    assert [each.round for each in read_probes(tmp_path)] == [1]
    keep_probes(tmp_path, {"seed": 1}, [measured(3, "destroy", 0.5)])
    assert [each.round for each in read_probes(tmp_path)] == [3], "other terms do not compare"


@pytest.mark.parametrize("text", ["{}", '{"rows": [{"round": 1}]}', '{"rows": 3}', "[]"])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / PROBES).write_text(text)
    with pytest.raises(InputError, match=r"policy_probe\.json is no file of a probe"):
        read_probes(tmp_path)
