"""Checks of what programs return, and sums of distances, beside their plain definitions."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spo_jax.envs.rules import exact_sum
from spo_jax.envs.views import node_list, nodes_of

_ITEMS = st.one_of(
    st.integers(-3, 2**70), st.booleans(), st.floats(), st.none(), st.integers(0, 9).map(np.int32)
)
_PARTS = st.one_of(
    st.lists(st.integers(0, 9)),
    st.lists(_ITEMS),
    st.lists(_ITEMS).map(tuple),
    st.lists(st.integers(0, 9)).map(lambda nodes: np.array(nodes, dtype=np.int64)),
    st.integers(),
    st.sets(st.integers()),
)


@given(st.one_of(st.lists(_PARTS), st.lists(_PARTS).map(tuple), _PARTS))
def test_lists_of_nodes_are_read_one_by_one(value):
    found = nodes_of(value)
    parts = [node_list(part) for part in value] if type(value) in (list, tuple) else [None]
    assert found == (None if None in parts else parts)
    if found is not None:
        assert all(type(node) is int for part in found for node in part)


def test_lists_of_nodes_are_copies():
    value = [[1, 2], [3]]
    found = nodes_of(value)
    value[0].append(4)
    assert found == [[1, 2], [3]]


@given(
    st.lists(st.integers(-(2**52), 2**52).map(float) | st.floats(-1e9, 1e9), min_size=1),
    st.integers(1, 9),
)
def test_sums_are_those_of_fsum(terms, times):
    chosen = terms * times
    found = exact_sum(np.array(terms), len(chosen))(chosen)
    assert type(found) is float
    assert found == math.fsum(chosen)


def test_whole_numbers_are_added_by_the_quick_sum_while_it_is_exact():
    whole = np.array([3.0, 2.0**40])
    assert exact_sum(whole, 2**13) is not math.fsum
    assert exact_sum(whole, 2**13 + 1) is math.fsum
    assert exact_sum(whole + 0.5, 2) is math.fsum
    assert exact_sum(np.array([]), 2)([]) == 0.0
