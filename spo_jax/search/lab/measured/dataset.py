"""A data set of payoffs: every destroy with every repair, and what became of each evaluation.

One .npz, which NumPy alone reads: arrays, and a text `about` in JSON with all that is no array. It
is self-contained, holds no pickled object, and has a VERSION. experiments/payoff_table.py makes it;
`tables.load_table` replays it.

Axes: D destroy, R repair, I instance, S seed, C step.
"""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from spo_jax.envs.files.textfiles import write_atomically
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.jsontext import parse
from spo_jax.program import Program

Array = np.ndarray
VERSION = 1  # of the file
ARRAYS = {  # name -> axes
    "scores": "DRISC", "seconds": "DRIS", "status": "DRIS", "reason": "DRIS", "start": "IS",
    "at": "C", "answer": "D", "test": "I",
}  # fmt: skip


@dataclass(frozen=True)
class DataProgram:
    """A program of a data set. origin: the run, file or model that it is from. round: of the run
    that added it; 0 where it is of no run.
    """

    program: Program
    origin: str
    round: int = 0


@dataclass(frozen=True)
class DataInstance:
    """An instance by its name, which says how to draw it again ("uniform-50-0@1": size, index,
    seed), the digest of its data, and its size.
    """

    name: str
    digest: str
    size: int


@dataclass(frozen=True, eq=False)
class PayoffData:
    """Every destroy with every repair on the same instances with the same seeds.

    scores: [D, R, I, S, C] float32, J = (start - cost) / start after the steps `at`; NaN where the
        evaluation failed. start: [I, S] float64, cost of the first solution. at: [C] int.
    seconds: [D, R, I, S] float32, CPU seconds; NaN where none were reported.
    status: [D, R, I, S] int8, a `Status`. reason: [D, R, I, S] int16, why, as an index of
        `reasons`, whose first is "": they have no word of a program's making.
    answer: [D] int, the repair that was written for each destroy; -1 where it is not there.
    test: [I] bool, the instances of the test evaluations; the others are for training.
    made: of the file: "command", "package" (its version), "problem", and what decides a rollout.
    """

    scores: Array
    start: Array
    at: Array
    seconds: Array
    status: Array
    reason: Array
    answer: Array
    test: Array
    reasons: tuple[str, ...]
    destroys: tuple[DataProgram, ...]
    repairs: tuple[DataProgram, ...]
    instances: tuple[DataInstance, ...]
    made: Mapping[str, Any]

    def __post_init__(self) -> None:
        sizes = {"D": len(self.destroys), "R": len(self.repairs), "I": len(self.instances)}
        sizes |= dict(zip("SC", np.shape(self.scores)[3:], strict=False))
        for name, axes in ARRAYS.items():
            if np.shape(getattr(self, name)) != tuple(sizes.get(axis, -1) for axis in axes):
                raise InputError(f"{name} of a data set is [{', '.join(axes)}]")
        if not (np.isfinite(self.scores).all(axis=-1) == (self.status == Status.OK)).all():
            raise InputError("an evaluation of a data set has scores exactly where none failed")
        if not np.isin(self.reason, range(len(self.reasons))).all():
            raise InputError("a reason of a data set is an index of its reasons")

    @property
    def failed(self) -> Array:
        """[D, R] bool: pairs of which an evaluation failed."""
        return np.asarray((self.status != Status.OK).any(axis=(2, 3)))

    def save(self, path: str | Path) -> None:
        """Write the file, whole or not at all; the same data give the same bytes."""
        about = {
            "version": VERSION, "made": dict(self.made), "reasons": self.reasons,
            "statuses": [each.label for each in Status],
            "instances": [asdict(each) for each in self.instances],
            **{role: [_record(each) for each in getattr(self, role)]
               for role in ("destroys", "repairs")},
        }  # fmt: skip
        held = io.BytesIO()
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ARRAYS}
        np.savez_compressed(held, **arrays, about=np.array(json.dumps(about)))
        write_atomically(Path(path), held.getvalue())


def load_data(path: str | Path) -> PayoffData:
    """Read a data set. Raises InputError for what is none, or one of another version."""
    try:
        with np.load(io.BytesIO(Path(path).read_bytes())) as known:
            arrays = {name: known[name] for name in known.files}
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} is no data set of payoffs ({error})") from None
    return data_of(arrays, path)


def data_of(arrays: Mapping[str, Array], path: str | Path) -> PayoffData:
    """The data set of a file's arrays. Raises as `load_data`."""
    try:
        about = parse(str(arrays["about"]))
        if about["version"] != VERSION:
            raise InputError(
                f"a data set of version {about['version']}, and this package reads version "
                f"{VERSION}: make it again, or use the package that made it"
            )
        return PayoffData(
            **{name: np.asarray(arrays[name]) for name in ARRAYS},
            reasons=tuple(about["reasons"]),
            destroys=_members("destroy", about["destroys"]),
            repairs=_members("repair", about["repairs"]),
            instances=tuple(DataInstance(**each) for each in about["instances"]),
            made=about["made"],
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is no data set of payoffs ({error})") from None


_PROGRAM = [each.name for each in fields(Program) if each.name != "role"]


def _record(member: DataProgram) -> dict[str, Any]:
    own = {name: getattr(member.program, name) for name in _PROGRAM}
    return {"origin": member.origin, "round": member.round, **own}


def _members(role: Any, records: Sequence[Mapping[str, Any]]) -> tuple[DataProgram, ...]:
    return tuple(
        DataProgram(
            Program(role, **({name: each[name] for name in _PROGRAM}
                             | {"parents": tuple(each["parents"])})),
            each["origin"], each["round"],
        )
        for each in records
    )  # fmt: skip
