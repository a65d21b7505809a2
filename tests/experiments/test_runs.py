"""Runs that experiments share, from wherever their preset file lies, and the extra they need."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

import common
from common import runs
from common.runs import discover
from spo_jax.errors import InputError

PRESET = """
[search]
rounds = {rounds}
mutation_groups = 1
crossover_groups = 1
responses = 2
repairs_per_destroy = 2
finalists = 0
select = "utility"

[evaluation]
on = ["uniform:8x1"]
steps = 4
rollouts = 1

[generator]
name = "grammar"

[learning]
update = "none"
"""


@pytest.mark.long
def test_a_run_is_read_where_its_preset_file_was_moved(tmp_path, monkeypatch):
    monkeypatch.setenv("SPO_CACHE", str(tmp_path / "cache"))
    here, there = tmp_path / "bench.toml", tmp_path / "checkout" / "bench.toml"
    here.write_text(PRESET.format(rounds=1))
    own = {"seed": 3, "workers": 1}
    run = discover("tsp", str(here), own, tmp_path / "run")
    there.parent.mkdir()
    here.rename(there)
    again = discover("tsp", str(there), own, tmp_path / "run")
    assert again.status == "finished"
    assert again.best == run.best
    other = PRESET.format(rounds=1).replace("steps = 4", "steps = 5")
    there.write_text(other)  # the same name, and other settings
    with pytest.raises(InputError, match="steps is 4 there and 5 here"):
        discover("tsp", str(there), own, tmp_path / "run")


def test_seconds_of_all_calls_that_went_on_with_a_run(tmp_path, monkeypatch):
    path, clock = tmp_path / "discovery" / "spo-seed0", iter([1.0, 4.0, 10.0, 15.0, 20.0, 30.0])

    def call(*, stops=False, done=False):
        def run(*arguments):
            path.mkdir(parents=True, exist_ok=True)
            if stops:
                raise KeyboardInterrupt
            return "the run"

        monkeypatch.setattr(runs, "finished", lambda path: done)
        monkeypatch.setattr(runs, "cpu_seconds", lambda: next(clock))
        monkeypatch.setattr(runs, "discover", run)
        return runs.discover_counted("tsp", "quick", {}, path, tmp_path)

    assert math.isnan(runs.spent_by(path.name, tmp_path))
    with pytest.raises(KeyboardInterrupt):
        call(stops=True)
    assert runs.spent_by(path.name, tmp_path) == 3.0
    assert call() == "the run"
    assert runs.spent_by(path.name, tmp_path) == 8.0
    call(done=True)  # reading costs nothing
    assert runs.spent_by(path.name, tmp_path) == 8.0
    assert math.isnan(runs.spent_by("spo-seed1", tmp_path))


def test_without_the_study_extra_a_script_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as util\n"
        "find = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name == 'pandas' else find(name, *more)\n"
    )
    script = Path(common.__file__).parent.parent / "main_tables.py"
    done = subprocess.run(
        [sys.executable, str(script), "--help"], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "experiments need the study extra: pip install 'spo-jax[study]'\n"
