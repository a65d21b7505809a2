"""Pairs of answers: by hand, their properties, and the record that a killed run goes on from."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spo_jax.errors import InputError
from spo_jax.program import ROLES
from spo_jax.rl.updates.batches import TokenGroup
from spo_jax.rl.updates.preferences import FOLDER, Gathered, Preference, Record, gather, pairs_of

NAN = np.nan


def answer(*tokens: int) -> np.ndarray:
    return np.array(tokens, np.int32)


def group(texts: list[list[int]], credits: list[float], failed: list[bool]) -> TokenGroup:
    return TokenGroup(
        name="g",
        prompt=answer(9, 9),
        completions=[answer(*text) for text in texts],
        logprobs=[np.zeros(len(text), np.float32) for text in texts],
        credits=np.array(credits),
        failed=np.array(failed),
    )


def named(found: Gathered) -> list[tuple[list[int], list[int], float]]:
    return [(p.chosen.tolist(), p.rejected.tolist(), p.score) for p in found.pairs]


def test_the_better_half_is_preferred_to_the_worse_one_and_all_to_failures() -> None:
    """Scores 4, 3, 2, 1: 4 over 2 and 3 over 1; three failures lose to 4, 3 and 2."""
    texts = [[1], [2], [3], [4], [5], [6], [7]]
    credits = [2.0, 4.0, NAN, 1.0, NAN, 3.0, NAN]
    failed = [False, False, True, False, True, False, True]
    found = gather([group(texts, credits, failed)])
    assert named(found) == [
        ([2], [1], 4.0), ([6], [4], 3.0),
        ([2], [3], 4.0), ([6], [5], 3.0), ([1], [7], 2.0),
    ]  # fmt: skip
    assert found.scores == (2.0, 4.0, 1.0, 3.0)
    assert all(pair.prompt.tolist() == [9, 9] for pair in found.pairs)


def test_halves_are_of_distinct_scores() -> None:
    """Of 3, 3, 3, 2, 1 the score 3 alone is better: its first two answers over 2 and over 1."""
    texts = [[1], [2], [3], [4], [5]]
    found = gather([group(texts, [3.0, 1.0, 3.0, 2.0, 3.0], [False] * 5)])
    assert named(found) == [([1], [4], 3.0), ([3], [2], 3.0)]


def test_equal_answers_count_once_and_equal_scores_make_no_pair() -> None:
    same = group([[1], [1], [2]], [1.0, 1.0, 1.0], [False] * 3)
    assert named(gather([same])) == []
    assert gather([same]).scores == (1.0, 1.0)


def test_what_failed_by_no_fault_of_its_own_is_in_no_pair() -> None:
    found = gather([group([[1], [2], [3], []], [1.0, NAN, NAN, NAN], [False, False, True, True])])
    assert named(found) == [([1], [3], 1.0)]
    assert gather([group([[1], [2]], [NAN, NAN], [True, True])]).pairs == ()


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, -1.0]), max_size=9), st.integers(0, 6))
def test_pairs_of_any_answers(scores: list[float], failures: int) -> None:
    passed = [(answer(i), score) for i, score in enumerate(scores)]
    failed = [answer(100 + i) for i in range(failures)]
    pairs = [(int(a[0]), int(b[0]), score) for a, b, score in pairs_of(passed, failed)]
    valid = [(a, b) for a, b, _ in pairs if b < 100]
    lost = [(a, b) for a, b, _ in pairs if b >= 100]
    assert all(scores[a] == score for a, _, score in pairs)
    assert all(scores[a] > scores[b] for a, b in valid)
    # A set cut at one level: no better one scores less than any of the worse ones.
    if valid:
        assert min(scores[a] for a, _ in valid) > max(scores[b] for _, b in valid)
    assert len({x for pair in valid for x in pair}) == 2 * len(valid)  # none is in two of them
    levels = sorted(set(scores), reverse=True)
    better = sum(score in levels[: len(levels) // 2] for score in scores)
    assert len(valid) == min(better, len(scores) - better)
    assert [b for _, b in lost] == ([100 + i for i in range(failures)] if scores else [])
    best_first = sorted(range(len(scores)), key=lambda i: -scores[i])
    assert [a for a, _ in lost] == [best_first[i % len(scores)] for i in range(len(lost))]


# --- the record -----------------------------------------------------------------------------------


def filled(rounds: int, seed: int = 0) -> Record:
    rng = np.random.default_rng(seed)
    record = Record()

    def text() -> np.ndarray:
        return rng.integers(0, 99, rng.integers(1, 7), dtype=np.int32)

    for _ in range(rounds):
        for role in ROLES:
            count = int(rng.integers(0, 4))
            pairs = [Preference(text(), text(), text(), float(rng.normal())) for _ in range(count)]
            scores = tuple(rng.normal(size=count).tolist())
            record.rounds[role].append(Gathered(tuple(pairs), scores))
    return record


def contents(record: Record) -> object:
    return {
        role: [
            (
                each.scores,
                [(*map(bytes, (p.prompt, p.chosen, p.rejected)), p.score) for p in each.pairs],
            )
            for each in rounds
        ]
        for role, rounds in record.rounds.items()
    }


def saved(run: Path, rounds: int) -> Record:
    record = filled(rounds)
    for number in range(1, rounds + 1):
        record.save(run, number)
    return record


def test_a_record_comes_back_to_the_bit_at_any_round(tmp_path: Path) -> None:
    record, back = saved(tmp_path, 6), Record()
    assert sum(len(record.pairs(role)) for role in ROLES) > 5
    back.restore(tmp_path, 6)
    assert contents(back) == contents(record)
    back.restore(tmp_path, 2)
    assert contents(back) == {role: rounds[:2] for role, rounds in contents(record).items()}  # type: ignore[attr-defined]
    assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == [
        "000001.npz", "000002.npz"
    ]  # fmt: skip
    assert back.scores("repair", 1) == list(record.rounds["repair"][1].scores)


def test_a_damaged_record_is_one_sentence(tmp_path: Path) -> None:
    saved(tmp_path, 2)
    file = tmp_path / FOLDER / "000001.npz"
    whole = file.read_bytes()
    for k in range(0, len(whole), 7):
        file.write_bytes(whole[:k] + bytes([whole[k] ^ 4]) + whole[k + 1 :])
        with suppress(InputError):  # some bytes of a zip file are not read
            Record().restore(tmp_path, 2)
    for wrong in (whole[: len(whole) // 2], b"", b"x" * 100):
        file.write_bytes(wrong)
        with pytest.raises(InputError, match=r"000001.npz is missing or damaged .* --rewind"):
            Record().restore(tmp_path, 2)
    file.unlink()
    with pytest.raises(InputError, match=r"000001.npz is missing or damaged"):
        Record().restore(tmp_path, 2)
    assert (tmp_path / FOLDER / "000002.npz").exists()


def test_an_unfinished_file_is_removed(tmp_path: Path) -> None:
    saved(tmp_path, 1)
    half = tmp_path / FOLDER / ".000002.npz.7.writing"
    half.write_bytes(b"PK")
    Record().restore(tmp_path, 1)
    assert not half.exists()
