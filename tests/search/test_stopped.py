"""SIGTERM ends a discovery as Ctrl-C does: a sentence, how to go on, and nobody is left."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import killed_run
import pytest
from test_learning_run import MOMENTS, ROOT, SETTINGS

from spo_jax.runs.run import load_run
from tests.rl import speaker


def gone(pids):
    """Wait until none of some processes runs; the test's time limit is the only one."""

    def runs(pid):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] not in "ZX"

    while any(map(runs, pids)):
        time.sleep(0.02)


def stopped(home, moment, line, by="SIGTERM"):
    """The command's exit code and what it said; its children are gone."""
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "SPO_CACHE": str(home / "cache"),
        "JAX_ENABLE_COMPILATION_CACHE": "true",
        "END_BY": by,
        "CHILDREN": str(home / "children"),
    }
    done = subprocess.run(
        [sys.executable, killed_run.__file__, moment, "discover", *line],
        env=environment, capture_output=True, text=True, timeout=250,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    gone((home / "children").read_text().split())
    return done


@pytest.mark.long
@pytest.mark.parametrize(
    ("by", "code", "moments"),
    [
        ("SIGTERM", 143, ["1:update"]),
        ("SIGINT", 130, ["1:commit"]),
        pytest.param("SIGTERM", 143, MOMENTS, marks=pytest.mark.slow),
    ],
)
def test_stopped_at_many_moments(tmp_path, by, code, moments):
    speaker.write(tmp_path / "model", ("full_attention",))
    place = str(tmp_path / "run")
    line = ["tsp", "--model", str(tmp_path / "model"), *SETTINGS, "--lora-targets", "q_proj"]
    line += ["--out", place]
    for moment in moments:
        done = stopped(tmp_path, moment, line, by)
        assert done.returncode == code, (moment, done.stdout, done.stderr)
        kept = load_run(place).rounds
        assert kept == int(moment[0]) - 1
        words = f"Stopped. {kept} of 2 rounds are kept; go on with:\n  spo discover tsp --resume "
        assert done.stdout.endswith(f"\n{words}{place}\n")
        assert done.stderr == ""
        line = ["--resume", place]
