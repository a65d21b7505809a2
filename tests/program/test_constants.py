"""Numbers of programs that are parameters, against listed ones and Python's own reading."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spo_jax.errors import Rejection
from spo_jax.program.constants import Constant, around, constants_of, with_values

SOURCE = '''\
def destroy(dist, tour, steps, rng, share=0.25):
    """Takes 7 nodes, or 0.5 of them."""
    n = max(2, int(share * len(tour)))
    ä = -1.5e-1 if steps > 30 else 1  # 99
    label = f"{n + 5}", "6.0"
    far = 1e9 + 1e-9 + 0.0
    return tour[3:], [tour[i + 4] for i in tour[: max(10, 5 - int(0.5 * n))]], True, 0x10
'''


def test_numbers_by_hand():
    assert [each.value for each in constants_of(SOURCE)] == [0.25, 2, 0.15, 30, 10, 5, 0.5, 16]
    assert [each.line for each in constants_of(SOURCE)] == [1, 3, 4, 4, 7, 7, 7, 7]
    with pytest.raises(Rejection):
        constants_of("def destroy(:")


def test_other_values_stand_where_the_old_ones_did():
    share, fewest, minus, patience, count, *_ = constants_of(SOURCE)
    text = with_values(
        SOURCE, {share: 1 / 3, count: 3.5, patience: -2.6, minus: -0.5, fewest: 2.49}
    )
    assert "share=0.333333)" in text
    assert "max(2, int" in text
    assert "ä = -(-0.5) if steps > (-3) else 1  # 99" in text
    assert "max(4, 5" in text
    assert "tour[i + 4]" in text
    ast.parse(text)
    assert with_values(SOURCE, {}) == SOURCE


@given(st.floats(1e-6, 1e6), st.floats(-1e6, 1e6))
def test_a_float_stays_a_float_of_six_digits(old, new):
    source = f"x = {old!r}\n"
    [found] = constants_of(source)
    assert found.value == old
    value = ast.literal_eval(with_values(source, {found: new}).partition("= ")[2].strip())
    assert type(value) is float
    assert value == pytest.approx(new, rel=1e-5, abs=0)


@given(st.integers(2, 10**6), st.floats(-1e6, 1e6))
def test_a_whole_number_stays_whole(old, new):
    [found] = constants_of(f"x = {old}\n")
    value = ast.literal_eval(with_values(f"x = {old}\n", {found: new}).partition("= ")[2].strip())
    assert type(value) is int
    assert abs(value - new) <= 0.5


def test_bounds_around_a_value():
    one, two = Constant(0.5, 1, 0, 3), Constant(8, 1, 5, 6)
    assert around([one, two]) == {one: (0.25, 1.0), two: (4.0, 16)}
