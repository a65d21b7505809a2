"""Folders of safetensors files: atomic writes, and reads; errors name the file."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  (gives NumPy bfloat16, which safetensors needs)
from safetensors import SafetensorError, safe_open

from spo_jax import jsontext
from spo_jax.errors import InputError

FLOATS = ("BF16", "F16", "F32")  # readable; other dtypes are quantised or no weights
SHOWN = 10  # tensors of each kind that an error names


@contextmanager
def fresh_folder(folder: str | Path) -> Iterator[Path]:
    """A temporary folder beside `folder`, renamed to it at the end, removed on an error.

    Raises InputError if `folder` exists and is not an empty folder, or cannot be written.
    """
    target = Path(os.path.abspath(folder))
    fresh = target.with_name(f".{target.name}.{os.getpid()}.writing")
    try:
        if target.exists() and not (target.is_dir() and not any(target.iterdir())):
            raise InputError(f"{folder} exists already; name a new folder")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        yield fresh
        for path in fresh.rglob("*"):  # safetensors makes files that only the owner can read
            if path.is_file():
                path.chmod(fresh.stat().st_mode & 0o666)
        os.replace(fresh, target)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{folder} cannot be written: {error}") from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


@contextmanager
def opened(file: Path) -> Iterator[Any]:
    """safetensors' reader of a file. Raises InputError if it is missing, damaged or truncated, also
    later while the file is read.
    """
    try:
        with safe_open(file, "numpy") as tensors:
            yield tensors
    except FileNotFoundError:
        raise InputError(f"{file} is missing; fetch or write the folder again") from None
    except (SafetensorError, OSError) as error:
        raise InputError(
            f"{file} is damaged or truncated ({error}); fetch or write the folder again"
        ) from None


def read_json(file: Path) -> dict[str, Any]:
    """Raises InputError unless the file holds a JSON object."""
    try:
        values = jsontext.parse(file.read_bytes())
    except FileNotFoundError:
        raise InputError(f"{file} is missing; fetch or write the folder again") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read as JSON: {error}") from None
    if not isinstance(values, dict):
        raise InputError(f"{file} holds no JSON object")
    return values


def write_json(file: Path, values: Mapping[str, Any]) -> None:
    file.write_text(json.dumps(values, indent=2) + "\n", "utf-8")


def refuse(where: str, problems: Mapping[str, Sequence[str]]) -> None:
    """Raise one InputError that lists all tensors with a problem, by kind, if any."""
    parts = []
    for kind, names in problems.items():
        if names:
            shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
            parts.append(f"{len(names)} {kind} ({shown})")
    if parts:
        raise InputError(f"{where}: {'; '.join(parts)}")
