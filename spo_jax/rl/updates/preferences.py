"""Preferences: pairs of answers to one prompt, a better and a worse, and a run's record of them.

As in the released code of EvoTune (Surina et al. 2025, CLAIRE-Labo/EvoTune).
"""

import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, cycle
from pathlib import Path

import numpy as np

from spo_jax.errors import InputError
from spo_jax.program import ROLES, Role
from spo_jax.rl.updates.batches import TokenGroup

FOLDER = "preferences"  # in a run's folder; one file for each round


@dataclass(frozen=True, eq=False)
class Preference:
    """An answer to a prompt that is preferred to another one.

    prompt, chosen, rejected: [T] int32 tokens. score: of the chosen one.
    """

    prompt: np.ndarray
    chosen: np.ndarray
    rejected: np.ndarray
    score: float


@dataclass(frozen=True, eq=False)
class Gathered:
    """What a round adds for one role. scores: of its distinct valid answers, by prompt."""

    pairs: tuple[Preference, ...]
    scores: tuple[float, ...]


def gather(groups: Sequence[TokenGroup]) -> Gathered:
    """The pairs of some groups, each group's as `pairs_of`."""
    found = [_answers(group) for group in groups]
    pairs = [
        Preference(group.prompt, chosen, rejected, score)
        for group, (passed, failed) in zip(groups, found, strict=True)
        for chosen, rejected, score in pairs_of(passed, failed)
    ]
    return Gathered(tuple(pairs), tuple(score for passed, _ in found for _, score in passed))


Scored = tuple[np.ndarray, float]  # an answer's tokens, and its score


def pairs_of(
    passed: Sequence[Scored], failed: Sequence[np.ndarray]
) -> list[tuple[np.ndarray, np.ndarray, float]]:
    """(chosen, rejected, score of the chosen) of distinct answers to one prompt.

    Half of the distinct scores, rounded down, are the better ones: the k-th best answer with one of
    them is preferred to the k-th best of the others, as long as there are both. And each failed
    answer is rejected in favour of a passed one, from the best down and around again.
    """
    ranked = sorted(passed, key=lambda each: -each[1])  # stable, so ties stay in order
    levels = sorted({score for _, score in ranked}, reverse=True)
    upper = set(levels[: len(levels) // 2])
    better = [each for each in ranked if each[1] in upper]
    worse = [each for each in ranked if each[1] not in upper]
    pairs = [(a, b, score) for (a, score), (b, _) in zip(better, worse, strict=False)]
    if ranked:
        pairs += [(a, b, score) for (a, score), b in zip(cycle(ranked), failed, strict=False)]
    return pairs


def _answers(group: TokenGroup) -> tuple[list[Scored], list[np.ndarray]]:
    """A group's distinct answers: those with a credit, their score, and those that failed.

    Of equal answers the first stays; one that is without a credit by no fault of its own is left
    out.
    """
    failed = np.zeros(len(group.credits), bool) if group.failed is None else group.failed
    passed: dict[bytes, Scored] = {}
    refused: dict[bytes, np.ndarray] = {}
    for tokens, credit, fault in zip(group.completions, group.credits, failed, strict=True):
        key = np.asarray(tokens, np.int32).tobytes()
        if not key:
            continue
        if np.isfinite(credit):
            passed.setdefault(key, (tokens, float(credit)))
        elif fault:
            refused.setdefault(key, tokens)
    return list(passed.values()), [v for k, v in refused.items() if k not in passed]


# --- the record -----------------------------------------------------------------------------------


class Record:
    """What all rounds of a run added, in a file for each, so that a killed run goes on from any.

    rounds: by role, the first round first.
    """

    def __init__(self) -> None:
        self.rounds: dict[Role, list[Gathered]] = {role: [] for role in ROLES}

    def pairs(self, role: Role) -> list[Preference]:
        """Of all rounds, the oldest first."""
        return [pair for each in self.rounds[role] for pair in each.pairs]

    def scores(self, role: Role, rounds: int) -> list[float]:
        """Of the valid answers of the last rounds."""
        return [score for each in self.rounds[role][-rounds:] for score in each.scores]

    def save(self, run: Path, number: int) -> None:
        """Write round `number`, on the disk when this returns. Raises InputError if it cannot."""
        arrays: dict[str, np.ndarray] = {}
        for role, rounds in self.rounds.items():
            arrays |= {f"{role}/{k}": v for k, v in _packed(rounds[number - 1]).items()}
        file = _file(run, number)
        fresh = file.with_name(f".{file.name}.{os.getpid()}.writing")
        try:
            file.parent.mkdir(exist_ok=True)
            with open(fresh, "wb") as out:
                np.savez_compressed(out, **arrays)  # type: ignore[arg-type]
                out.flush()
                os.fsync(out.fileno())
            os.replace(fresh, file)
        except OSError as error:
            raise InputError(f"{file} cannot be written: {error}") from None
        finally:
            fresh.unlink(missing_ok=True)

    def restore(self, run: Path, number: int) -> None:
        """Go back to the end of round `number`, and delete later files and unfinished ones.

        Raises InputError for a file that is missing or damaged.
        """
        read = [_read(_file(run, each)) for each in range(1, number + 1)]
        for path in (run / FOLDER).glob("*"):
            later = path.suffix == ".npz" and path.stem.isdecimal() and int(path.stem) > number
            if later or path.name.endswith(".writing"):
                path.unlink()
        self.rounds = {role: [each[role] for each in read] for role in ROLES}


def _file(run: Path, number: int) -> Path:
    return run / FOLDER / f"{number:06d}.npz"


def _packed(gathered: Gathered) -> dict[str, np.ndarray]:
    """Texts of different lengths as one array, with their lengths."""
    texts = list(chain.from_iterable((p.prompt, p.chosen, p.rejected) for p in gathered.pairs))
    return {
        "tokens": np.concatenate([np.zeros(0, np.int32), *texts]).astype(np.int32),
        "lengths": np.array([len(each) for each in texts], np.int64).reshape(-1, 3),
        "chosen": np.array([pair.score for pair in gathered.pairs], np.float64),
        "scores": np.array(gathered.scores, np.float64),
    }


def _unpacked(arrays: Mapping[str, np.ndarray], role: Role) -> Gathered:
    tokens, lengths, chosen, scores = (
        arrays[f"{role}/{name}"] for name in ("tokens", "lengths", "chosen", "scores")
    )
    texts = iter(np.split(tokens, np.cumsum(lengths.ravel())[:-1]))
    pairs = [Preference(next(texts), next(texts), next(texts), s) for s in chosen.tolist()]
    return Gathered(tuple(pairs), tuple(scores.tolist()))


def _read(file: Path) -> dict[Role, Gathered]:
    try:
        with np.load(file) as arrays:
            return {role: _unpacked(arrays, role) for role in ROLES}
    except (
        OSError, ValueError, KeyError, EOFError, StopIteration, NotImplementedError, RuntimeError,
        zipfile.BadZipFile, zlib.error,
    ) as error:  # fmt: skip
        raise InputError(
            f"{file} is missing or damaged ({error}); --rewind goes back to a round before it, "
            "if there is one"
        ) from None
