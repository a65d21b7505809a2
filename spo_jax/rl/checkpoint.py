"""Numbered checkpoints of any tree of arrays, written while the run continues.

Orbax writes in the background and renames a finished checkpoint into place. Checksums of its files
follow, and make it valid: a kill leaves only complete checkpoints, and damage is detected before
any read. Arrays are stored by name beside a layout, so that errors name a wrong array.
"""

import contextlib
import errno
import json
import logging
import os
import re
import shutil
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.experimental import multihost_utils

from spo_jax.errors import InputError

T = TypeVar("T")
# Deleting many files is not atomic but renaming their folder is, so they move here first.
_DISCARDED = "discarded"
_LAYOUT, _ARRAYS, _CHECKSUMS = "layout", "arrays", "checksums.json"
_GO_BACK = "--rewind goes back to the round of an earlier one"
_MISFIT = "the run had another model, or an adapter of another shape or rank"


class Checkpoints:
    """The numbered checkpoints in a folder, created if missing; a context manager.

    keep: number of newest checkpoints that stay, at least two, because a run that is killed between
    a checkpoint and the commit of its round returns to the previous one. Only one run at a time can
    open the folder; with several processes, all must call every method, on one file system.
    Raises InputError if `folder` is a file or cannot be written.
    """

    def __init__(self, folder: str | Path, keep: int = 3) -> None:
        if keep < 2:
            raise InputError(f"keep is {keep}; a run needs its two newest checkpoints at least")
        self.folder, self.keep = Path(folder).absolute(), keep
        self._saving: int | None = None
        if self.folder.is_file():
            raise InputError(f"{self.folder} is a file; checkpoints need a folder")
        with _explained(f"{self.folder} cannot hold checkpoints"):
            if jax.process_index() == 0:
                self._tidy()
            self._manager = ocp.CheckpointManager(
                self.folder,
                options=ocp.CheckpointManagerOptions(
                    cleanup_tmp_directories=True, todelete_subdir=_DISCARDED
                ),
            )

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        # The error that ended the block matters more than a failed write.
        with contextlib.suppress(InputError) if kind else contextlib.nullcontext():
            self.close()

    # --- writing ----------------------------------------------------------------------------------

    def save(self, number: int, state: Any) -> None:
        """Start writing a tree of arrays as checkpoint `number`; replaces one of that number.

        Waits for the previous save and returns once the arrays are copied to the host, so that they
        may be donated. Leaves are JAX arrays, typed keys, NumPy arrays or Python numbers. The
        checkpoint is complete when `wait` returns. Raises InputError if a save failed, or if
        checkpoints with higher numbers exist; TypeError for another leaf.
        """
        numbers = self.numbers()
        leaves = _named(state)
        layout = {name: _describe(leaf) for name, leaf in leaves.items()}
        arrays = {name: _stored(leaf) for name, leaf in leaves.items() if leaf.size}
        if numbers and numbers[-1] > number:
            raise InputError(
                f"{self.folder} has a checkpoint {numbers[-1]}, made after number {number}: "
                f"discard the later ones, or use another folder"
            )
        self._discard([n for n in numbers if n == number])
        with _explained(f"checkpoint {number} could not be written in {self.folder}"):
            args = {
                _LAYOUT: ocp.args.JsonSave(layout),
                _ARRAYS: ocp.args.StandardSave(arrays or _NOTHING),
            }
            self._manager.save(number, args=ocp.args.Composite(**args), force=True)
        self._saving = number

    def wait(self) -> None:
        """Return when everything saved is on the disk, and all but `keep` checkpoints are deleted.

        Raises InputError if the write failed; earlier checkpoints then still exist.
        """
        number, self._saving = self._saving, None
        if number is None:
            return
        with _explained(f"checkpoint {number} could not be written in {self.folder}"):
            self._manager.wait_until_finished()
            if jax.process_index() == 0:
                _write_checksums(self.folder / str(number))
            if jax.process_count() > 1:
                multihost_utils.sync_global_devices(f"checksums of {self.folder} {number}")
        self._discard(self.numbers()[: -self.keep])

    def discard_after(self, number: int) -> None:
        """Delete the checkpoints with higher numbers, for a run that resumes from `number`."""
        self._discard([n for n in self.numbers() if n > number])

    def close(self) -> None:
        """Wait, and release the folder."""
        try:
            self.wait()
        finally:
            with _explained(f"{self.folder} could not be closed"):
                self._manager.close()

    # --- reading ----------------------------------------------------------------------------------

    def numbers(self) -> tuple[int, ...]:
        """The checkpoints on the disk, ascending; waits for a running save."""
        self.wait()
        found = sorted(self._manager.all_steps())
        return tuple(n for n in found if (self.folder / str(n) / _CHECKSUMS).exists())

    def latest(self) -> int | None:
        """The highest number, or None."""
        return max(self.numbers(), default=None)

    def restore(self, number: int, like: T) -> T:
        """Checkpoint `number` in the structure of `like`, each leaf on the devices of its
        counterpart.

        like: a tree whose leaves have the saved shapes and dtypes: arrays, or
        jax.ShapeDtypeStruct; static fields come from it. A leaf without a sharding, or not
        committed to one, is restored uncommitted on the default device. NumPy arrays and Python
        numbers keep their types. Raises InputError if the checkpoint is missing, damaged or does
        not fit.
        """
        numbers = self.numbers()
        if number not in numbers:
            there = "there are none"
            if numbers:
                there = f"there are {', '.join(map(str, numbers))}; {_GO_BACK}"
            raise InputError(f"{self.folder} has no checkpoint {number}; {there}")
        leaves = _named(like)
        sentence = f"checkpoint {number} in {self.folder} is damaged"
        with _explained(sentence, advice=f"; {_GO_BACK}"):
            _verify_checksums(self.folder / str(number))
            layout = self._read(number, _LAYOUT, ocp.args.JsonRestore())
        self._check_fit(number, {name: _describe(leaf) for name, leaf in leaves.items()}, layout)
        targets = {name: _target(leaf) for name, leaf in leaves.items() if leaf.size}
        with _explained(sentence, advice=f"; {_GO_BACK}"):
            stored = self._read(number, _ARRAYS, ocp.args.StandardRestore(targets or _NOTHING))
        return jax.tree.unflatten(
            jax.tree.structure(like),
            [
                _restored(given, leaf, stored.get(name))
                for (name, leaf), given in zip(leaves.items(), jax.tree.leaves(like), strict=True)
            ],
        )

    # --- in the folder ----------------------------------------------------------------------------

    def _read(self, number: int, item: str, how: ocp.args.CheckpointArgs) -> dict[str, Any]:
        return self._manager.restore(number, args=ocp.args.Composite(**{item: how}))[item]

    def _check_fit(self, number: int, expected: dict[str, str], layout: dict[str, str]) -> None:
        for name in sorted(expected.keys() | layout.keys()):
            there, here = layout.get(name, "absent"), expected.get(name, "absent")
            if there != here:
                raise InputError(
                    f"checkpoint {number} in {self.folder} does not fit: {name} is {there} "
                    f"there and {here} here; {_MISFIT}"
                )

    def _tidy(self) -> None:
        """Make the folder, and remove unfinished files of a killed process."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        discarded = self.folder / _DISCARDED
        for layout in self.folder.glob(f"*/{_LAYOUT}"):  # a number without a layout is not ours
            half = layout.parent
            if half.name.isdecimal() and not (half / _CHECKSUMS).exists():
                self._empty_bin()
                discarded.mkdir()
                half.rename(discarded / half.name)
        self._empty_bin()

    def _discard(self, numbers: Sequence[int]) -> None:
        with _explained(f"checkpoints could not be deleted in {self.folder}"):
            for number in sorted(numbers, reverse=True):
                self._manager.delete(number)
                self._empty_bin()

    def _empty_bin(self) -> None:
        if jax.process_index() == 0:
            shutil.rmtree(self.folder / _DISCARDED, ignore_errors=True)


# --- files ----------------------------------------------------------------------------------------


def _checksum(path: Path) -> int:
    crc = 0
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            crc = zlib.crc32(chunk, crc)
    return crc


def _write_checksums(folder: Path) -> None:
    """Write the last file of a checkpoint, atomically.

    Everything is on the disk when this returns, because a committed round relies on it.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sums = {str(path.relative_to(folder)): _checksum(path) for path in files}
    draft = folder / f".{_CHECKSUMS}"
    draft.write_text(json.dumps(sums, indent=1) + "\n", encoding="utf-8")
    for path in (*files, draft, *(path for path in folder.rglob("*") if path.is_dir())):
        _sync(path)
    draft.rename(folder / _CHECKSUMS)
    for path in (folder, folder.parent):
        _sync(path)


def _sync(path: Path) -> None:
    """Sync a file, or a folder's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems cannot sync a folder
            raise
    finally:
        os.close(descriptor)


def _verify_checksums(folder: Path) -> None:
    for name, crc in json.loads((folder / _CHECKSUMS).read_text(encoding="utf-8")).items():
        if _checksum(folder / name) != crc:
            raise ValueError(f"{name} has changed")


# --- leaves ---------------------------------------------------------------------------------------

_NOTHING = {"nothing": np.zeros(1, np.int8)}  # Orbax has no empty trees
_Leaf = jax.Array | jax.ShapeDtypeStruct | np.ndarray


def _named(tree: Any) -> dict[str, _Leaf]:
    """The leaves by their paths, in the tree's order; Python numbers as NumPy arrays."""
    leaves = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        name = jax.tree_util.keystr(path)
        if isinstance(leaf, bool | int | float | np.generic):
            leaf = np.asarray(leaf)
        if not isinstance(leaf, _Leaf) or leaf.dtype == object:
            raise TypeError(f"{name} is a {type(leaf).__name__}; a checkpoint holds arrays")
        leaves[name] = leaf
    return leaves


def _implementation(leaf: _Leaf) -> str | None:
    """The key type of typed keys; None for numbers."""
    if not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return None
    found: list[str] = []
    jax.eval_shape(lambda keys: found.append(str(jax.random.key_impl(keys))), leaf)
    return found[0]


def _describe(leaf: _Leaf) -> str:
    """For example float32[4,16], or key<threefry2x32>[] for a typed key."""
    implementation = _implementation(leaf)
    kind = f"key<{implementation}>" if implementation else leaf.dtype.name
    return f"{kind}[{','.join(map(str, leaf.shape))}]"


def _stored(leaf: _Leaf) -> jax.Array | np.ndarray:
    """A leaf that Orbax can write and that cannot change meanwhile."""
    if isinstance(leaf, np.ndarray):
        return leaf.copy()
    if isinstance(leaf, jax.ShapeDtypeStruct):
        raise TypeError("an abstract array has no values to save")
    if _implementation(leaf):
        leaf = jax.random.key_data(leaf)
    # With several processes Orbax refuses a JAX array of one process.
    return np.array(leaf) if jax.process_count() > 1 and leaf.is_fully_addressable else leaf


def _target(leaf: _Leaf) -> jax.ShapeDtypeStruct | np.ndarray:
    """Restore arguments for Orbax: onto the given devices, else to the host."""
    numbers = leaf
    if _implementation(leaf):
        numbers = jax.eval_shape(jax.random.key_data, leaf)
    sharding = _sharding(leaf)
    if sharding is None:
        return np.empty(numbers.shape, numbers.dtype)
    return jax.ShapeDtypeStruct(numbers.shape, numbers.dtype, sharding=sharding)


def _sharding(leaf: _Leaf) -> jax.sharding.Sharding | None:
    if isinstance(leaf, np.ndarray) or (isinstance(leaf, jax.Array) and not leaf.committed):
        return None
    return leaf.sharding


def _restored(given: Any, leaf: _Leaf, value: jax.Array | np.ndarray | None) -> Any:
    """`value` in the type of `given`; `leaf` is its form from `_named`; None: no numbers."""
    if value is None:
        target = _target(leaf)
        value = np.empty(target.shape, target.dtype)
        if isinstance(target, jax.ShapeDtypeStruct):
            value = jax.device_put(value, target.sharding)
    if isinstance(given, bool | int | float):
        return type(given)(value)
    if isinstance(leaf, np.ndarray):
        return np.asarray(value)
    numbers = jnp.asarray(value)
    implementation = _implementation(leaf)
    return jax.random.wrap_key_data(numbers, impl=implementation) if implementation else numbers


# --- errors ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def _explained(what: str, advice: str = "") -> Iterator[None]:
    """One sentence for any error of Orbax and its lower layers."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{what} ({_reason(error)}){advice}") from error


def _reason(error: Exception) -> str:
    """The operating system's error text, else the start of the message."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    if code := re.search(r"os_error_code='(\d+)'", str(error)):  # TensorStore's
        return os.strerror(int(code[1]))
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


def _is_wanted(record: logging.LogRecord) -> bool:
    """Silence Orbax, which logs a traceback per layer for a failed write; `wait` raises anyway.

    A higher absl verbosity shows the tracebacks.
    """
    asked = logging.getLogger("absl").isEnabledFor(logging.INFO)
    return asked or f"{os.sep}orbax{os.sep}" not in record.pathname


logging.getLogger("absl").addFilter(_is_wanted)
