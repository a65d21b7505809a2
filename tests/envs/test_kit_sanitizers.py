"""The compiled kits under AddressSanitizer and UndefinedBehaviorSanitizer: a million calls each."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

HERE = Path(__file__).parent
KITS = HERE.parents[1] / "spo_jax" / "envs" / "problems"
CALLS = 1_000_000

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc"),
]


@pytest.mark.parametrize("problem", ["tsp", "cvrp", "vrptw"])
def test_no_call_harms_memory(problem: str, tmp_path: Path) -> None:
    library = tmp_path / "_native.abi3.so"
    include = sysconfig.get_paths()["include"]
    if not Path(include, "Python.h").exists():
        pytest.skip("no headers of Python")
    flags = ["-std=c11", "-g", "-O1", "-ffp-contract=off", "-fPIC", "-shared", f"-I{include}"]
    flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    flags += ["-fno-omit-frame-pointer", "-Wall", "-Wextra", "-Werror"]
    source = KITS / problem / "kit" / "native.c"
    built = subprocess.run(
        ["gcc", *flags, str(source), "-o", str(library), "-lm"], capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    asan = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(asan).is_absolute():
        pytest.skip("no libasan")
    environment = {
        **os.environ,
        "LD_PRELOAD": asan,
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    done = subprocess.run(
        [sys.executable, str(HERE / "kit_fuzz.py"), problem, str(library), str(CALLS)],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    made, returned = (int(word) for word in done.stdout.split() if word.isdigit())
    assert made >= CALLS
    assert returned > CALLS / 4
