"""Fixtures shared by all tests."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]

# Compiling takes most of a learning test's time, half of it for speed that a test has no use for.
os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0 " + os.environ.get("XLA_FLAGS", "")
# What is compiled is kept for the next run, and for the processes that tests start. The folders are
# made now: programs that read addresses notice a new name in a folder of sys.path.
KEPT = ROOT / ".cache"
for kept in ("jax", "hypothesis"):
    (KEPT / kept).mkdir(parents=True, exist_ok=True)
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(KEPT / "hypothesis"))
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(KEPT / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

# The same examples each time where a failure could not be looked into, fresh ones elsewhere.
# No deadline: it would measure the other process that runs tests.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", derandomize=True, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(scope="session")
def spo_data() -> Path:
    """The folder of benchmark instances (tsplib/, cvrplib/) named by SPO_DATA."""
    folder = os.environ.get("SPO_DATA")
    if not folder:
        pytest.skip("SPO_DATA is not set: it names the folder that holds tsplib/ and cvrplib/")
    if not Path(folder).is_dir():
        pytest.skip(f"SPO_DATA names {folder}, which is not a folder")
    return Path(folder).resolve()


@pytest.fixture
def mine(tmp_path, monkeypatch, request) -> Path:
    """A folder with a user's module, the test file's MINE, where Python looks for modules."""
    (tmp_path / "mine.py").write_text(request.module.MINE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path
