"""Run folders: their names, what lies in them, who holds them, and errors of their disk."""

import contextlib
import errno
import fcntl
import os
import sqlite3
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from spo_jax.config import Settings
from spo_jax.constants import SHIPPED, SPO, STORED
from spo_jax.errors import InputError, require_path
from spo_jax.runs.manifest import parse

MANIFEST, DATABASE, BEST, LOG, LOCK = "manifest.json", "spo.sqlite", "best.py", "log.txt", "lock"
CHECKPOINTS = "checkpoints"
INSTANCES = f"instances{STORED}"  # those that were passed to a run
REMEDY = "it was edited or damaged; restore it from a copy, or begin a new run"
_NO_SPACE = "no space left on the disk; finished rounds are kept, so free some and use --resume"


class Locked(InputError):
    """Another process is using the database."""


def check_new(path: str | Path) -> None:
    """Raises InputError unless a run folder can be made at `path`: missing, or an empty folder."""
    path = Path(path)
    if path.is_symlink() or path.exists():
        if not path.is_dir():
            raise InputError(f"{path} exists and is not a folder; choose another --out")
        if (path / MANIFEST).exists():
            raise InputError(f"{path} holds a run already; use --resume {path}, or another --out")
        if any(path.iterdir()):
            raise InputError(f"{path} exists and is not empty; choose another --out")


def default_folder(config: Settings, preset: str, root: str | Path = "runs") -> Path:
    """runs/PROBLEM-PRESET-seedS, or runs/PROBLEM-METHOD-PRESET-seedS for a method other than SPO,
    with -2, -3, ... added while that is taken.
    """
    problem = config.problem.rpartition(":")[2].lower()
    preset = Path(preset).stem
    stem = preset if preset.endswith(f"-{problem}") else f"{problem}-{preset}"
    if config.search.method != SPO:
        stem = f"{problem}-{config.search.method.rpartition(':')[2].lower()}-{preset}"
    name = f"{stem}-seed{config.seed}"
    tries = (Path(root) / (name if k == 1 else f"{name}-{k}") for k in count(1))
    return next(path for path in tries if not (path.exists() or path.is_symlink()))


def list_runs(root: str | Path = "runs") -> list[Path]:
    """The run folders in `root`, by name."""
    root = Path(root)
    if not root.is_dir():
        return []
    return sorted(
        path
        for path in root.iterdir()
        if not path.name.startswith(".") and (path / MANIFEST).is_file()  # a draft has a dot
    )


def read_manifest(path: str | Path) -> dict[str, Any]:
    """A run's manifest. Raises InputError unless `path` is a run folder of this version."""
    require_path("path", path)
    path = Path(path)
    if not path.is_dir():
        pair = str(path) == SHIPPED or path.is_file()
        hint = "; spo evaluate, spo solve, spo compare and spo export also take a pair" * pair
        raise InputError(f"{path}: no such run folder{hint}")
    if not (path / MANIFEST).is_file() or not (path / DATABASE).is_file():
        raise InputError(f"{path} holds no run (no {MANIFEST} and {DATABASE} in it)")
    try:
        return parse((path / MANIFEST).read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{path / MANIFEST} cannot be read: {error}") from None


def config_of(path: Path, manifest: Mapping[str, Any]) -> Settings:
    """The settings of the run in `path`, wherever that was when it began."""
    config = Settings.make(**manifest["config"])
    own = str(path.resolve() / INSTANCES)
    return config.replace(on=tuple(own if s == INSTANCES else s for s in config.evaluation.on))


def write_new(path: Path, text: str) -> None:
    """A file that is on the disk when this returns."""
    with open(path, "x", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def locked(path: Path) -> bool:
    """Whether another process holds the run."""
    try:
        with open(path / LOCK) as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def storage(path: Path) -> Iterator[None]:
    """Errors of the disk and the database as one sentence (InputError), for the user to mend."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            raise Locked(f"{path}: another process is using the run database") from None
        if "full" in str(error):
            raise InputError(f"{path}: {_NO_SPACE}") from None
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        damaged = code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
        remedy = f"; {REMEDY}" if damaged else ""
        raise InputError(f"{path}: the run database cannot be used: {error}{remedy}") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise InputError(f"{path}: {_NO_SPACE}") from None
        raise InputError(f"{path}: the run cannot be written: {error.strerror or error}") from None
