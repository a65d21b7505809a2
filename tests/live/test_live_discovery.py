"""A discovery that learns through a real vLLM server, by the command line, and is killed once."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from spo_jax.runs.folders import BEST
from tests.live.serving import MARKS, PATIENCE, PYTHON, descendants, groups_of, left, note

pytestmark = MARKS

SPO = [sys.executable, "-m", "spo_jax"]


def test_a_discovery_learns_through_vllm_and_goes_on_after_a_kill(tmp_path: Path) -> None:
    run = tmp_path / "run"
    line = [*SPO, "discover", "tsp", "--preset", "smoke", "--generator", "vllm", "--rounds", "2"]
    # Larger than the preset, where all pairs of a round may end at the optimum and teach nothing.
    line += ["--size", "100"]
    line += ["--vllm-python", str(PYTHON), "--out", str(run)]
    line += ["--vllm-startup", str(PATIENCE), "--request-timeout", str(PATIENCE)]
    began, seen = time.monotonic(), set()
    with subprocess.Popen(line, start_new_session=True) as process:
        try:
            while "round 2 writing" not in log(run):
                assert process.poll() is None
                assert time.monotonic() < began + 2 * PATIENCE
                seen |= groups_of(descendants(process.pid))
                time.sleep(0.2)
            time.sleep(1.0)  # in the middle of sampling, or of the probe before it
            seen |= groups_of(descendants(process.pid))
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL
    assert len(seen) > 2  # the run itself is not among them; guard, server and workers are
    assert not left(seen, patience=30.0)
    (first,) = rounds(run)
    note(f"a round of a discovery and its start took {time.monotonic() - began:.0f} s, then a kill")

    began, seen = time.monotonic(), set()
    line = [*SPO, "discover", "--resume", str(run)]
    with subprocess.Popen(line, start_new_session=True) as process:
        try:
            while process.poll() is None:
                assert time.monotonic() < began + 2 * PATIENCE
                seen |= groups_of(descendants(process.pid))
                time.sleep(0.2)
        finally:
            process.kill()
    assert process.returncode == 0
    assert not left(seen, patience=5.0)
    found = rounds(run)
    assert found[0] == first
    assert len(found) == 2
    note(f"the other round and the validation took {time.monotonic() - began:.0f} s")
    for number, one in enumerate(found, 1):
        metrics = one["metrics"]
        valid = one["valid_destroys"] + one["valid_repairs"]
        answers = one["destroy_answers"] + one["repair_answers"]
        assert valid >= 0.8 * answers
        assert metrics["probe"] < 0.05
        for role in ("destroy", "repair"):
            assert metrics[f"{role}/drift_mean"] < 0.05
            assert metrics[f"{role}/ratio_mean"] == 1.0
            assert metrics[f"{role}/gradient_norm"] > 0
        # The adapters of a first round change nothing yet, so that there is nothing to tell apart.
        assert ("probe_share" in metrics) == (number > 1)
        assert metrics.get("probe_share", 1.0) > 0.8
        note(
            f"round {number}: {valid} of {answers} answers valid, probe {metrics['probe']:.4f}, "
            f"share {metrics.get('probe_share', float('nan')):.3f}, drift "
            f"{metrics['destroy/drift_mean']:.4f} and {metrics['repair/drift_mean']:.4f}"
        )
    assert (run / BEST).exists()
    full = {path.name for path in (run / "adapters").iterdir() if any(path.iterdir())}
    assert len(full) == 2


def log(run: Path) -> str:
    path = run / "log.txt"
    return path.read_text() if path.exists() else ""


def rounds(run: Path) -> list[dict[str, Any]]:
    with sqlite3.connect(run / "spo.sqlite") as database:
        database.row_factory = sqlite3.Row
        found = [dict(row) for row in database.execute("SELECT * FROM rounds ORDER BY round")]
    return [one | {"metrics": json.loads(one["metrics"])} for one in found]
