import numpy as np

from spo_jax.rl.buckets import FEW, FINE, LARGE, bucket, pad_left, pad_right, rung


def test_the_ladder_has_two_rungs_an_octave():
    ladder = sorted({bucket(length) for length in range(1, 8193)})
    assert ladder == [
        64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192
    ]  # fmt: skip
    assert sorted({rung(count) for count in range(1, 65)}) == [
        1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64
    ]  # fmt: skip


def test_a_cpu_compiles_for_powers_of_two():
    lengths = [1, 127, 128, 129, 256, 257, 1000, 1025]
    assert [FEW.of_completion(n) for n in lengths] == [128, 128, 128, 256, 256, 512, 1024, 2048]
    assert [FEW.of_prompt(n) for n in lengths] == [256, 256, 256, 256, 256, 512, 1024, 2048]
    assert [FEW.rung(n) for n in (1, 2, 3, 5, 25, 33)] == [1, 2, 4, 8, 32, 64]


def test_a_large_model_has_few_shapes():
    prompts = {LARGE.of_prompt(n) for n in range(1, 8193)}
    answers = {LARGE.of_completion(n) for n in range(1, 1201)}
    assert sorted(prompts) == [1024, 1536, 2048, 3072, 4096, 6144, 8192]
    assert sorted(answers) == [512, 768, 1024, 1536]
    assert [FINE.of_prompt(n) for n in (1, 65, 5000)] == [bucket(n) for n in (1, 65, 5000)]


def test_a_bucket_is_the_lowest_rung_that_holds_the_length():
    assert [bucket(n) for n in (1, 64, 65, 129, 192, 193, 257, 385, 513, 769)] == [
        64, 64, 128, 192, 192, 256, 384, 512, 768, 1024
    ]  # fmt: skip
    assert [rung(n) for n in (1, 2, 3, 4, 5, 6, 7, 9, 13)] == [1, 2, 3, 4, 6, 6, 8, 12, 16]


def test_padding():
    rows = [np.array([5, 6, 7], np.int32), np.array([8], np.int32), np.array([], np.int32)]
    tokens, mask = pad_left(rows, 4, fill=9)
    assert tokens.tolist() == [[9, 5, 6, 7], [9, 9, 9, 8], [9, 9, 9, 9]]
    assert mask.tolist() == [[False, True, True, True], [False] * 3 + [True], [False] * 4]
    assert (tokens.dtype, mask.dtype) == (np.int32, bool)
    tokens, mask = pad_right(rows, 4)
    assert tokens.tolist() == [[5, 6, 7, 0], [8, 0, 0, 0], [0, 0, 0, 0]]
    assert mask.tolist() == [[True, True, True, False], [True] + [False] * 3, [False] * 4]
    assert (tokens.dtype, mask.dtype) == (np.int32, bool)
