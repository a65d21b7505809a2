"""Rows of rollouts in a file: what evaluations keep, so that a script that was killed goes on.

An entry is one .npz file under a hash of everything that decides its rows, and a .json file beside
it that says what that is. Entries are written whole or not at all.
"""

import dataclasses
import fcntl
import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.textfiles import write_atomically
from spo_jax.errors import InputError

FORMAT = 1  # of an entry


@dataclass(frozen=True, eq=False)
class Row:
    """One instance's rollouts: best_cost [S, T+1], state [S, T], seconds, statuses, reasons [S]."""

    best_cost: np.ndarray
    state: np.ndarray
    seconds: np.ndarray
    statuses: np.ndarray
    reasons: np.ndarray

    @property
    def stands(self) -> bool:
        """Whether no rollout failed by our own fault."""
        return not (self.statuses == Status.HOST_FAULT).any()


ROW = tuple(field.name for field in dataclasses.fields(Row))


class Entry:
    """One file of rows and the JSON beside it that says what they are of."""

    def __init__(self, folder: Path, key: Mapping[str, Any], steps: int, seeds: int):
        self.key = {"format": FORMAT, **key}
        digest = hashlib.blake2b(json.dumps(self.key, sort_keys=True).encode(), digest_size=8)
        self.path = folder / f"{digest.hexdigest()}.npz"
        self._shape = (seeds, steps + 1)

    @contextmanager
    def held(self) -> Iterator[None]:
        """While one process has it; another is told to wait. Raises InputError."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = open(self.path.with_suffix(".lock"), "a")  # noqa: SIM115 - held until the end
        except OSError as error:
            raise InputError(f"{self.path.parent} cannot be written: {error.strerror}") from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError(
                    f"{self.path} is being written by another experiment; wait for it, or choose "
                    "another --out"
                ) from None
            yield

    def read(self) -> dict[str, Row]:
        """The rows by digest; none of a file that is not there, or cannot be read."""
        try:
            with np.load(self.path) as file:
                held = {name: file[name] for name in (*ROW, "digests")}
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
            return {}
        if held["best_cost"].shape[1:] != self._shape:
            return {}
        return {
            str(digest): Row(*(held[name][k] for name in ROW))
            for k, digest in enumerate(held["digests"])
        }

    def write(self, rows: Mapping[str, Row]) -> None:
        """All rows that stand, whole or not at all."""
        rows = {digest: row for digest, row in rows.items() if row.stands}
        if not rows:
            return
        columns: Any = {name: np.stack([getattr(r, name) for r in rows.values()]) for name in ROW}
        buffer = io.BytesIO()
        np.savez_compressed(buffer, digests=np.array(list(rows)), **columns)
        write_atomically(self.path, buffer.getvalue())
        told = {**self.key, "instances": len(rows)}
        write_atomically(self.path.with_suffix(".json"), json.dumps(told, indent=1) + "\n")
