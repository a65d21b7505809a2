"""Instances that come back from a file as they were, of any problem and with anything in them."""

import math
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, scalar_dtypes

from spo_jax.envs.canonical import canonical
from spo_jax.envs.files.stored import load_instances, save_instances
from spo_jax.envs.problem import Instance
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError

LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.binary(),
    st.text(st.characters()), arrays(scalar_dtypes(), array_shapes(min_dims=0, min_side=0)),
    scalar_dtypes().flatmap(lambda dtype: arrays(dtype, ())).map(lambda array: array[()]),
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(st.text(), inner),
        st.dictionaries(st.one_of(st.integers(), st.binary(), st.booleans()), inner),
    ),
    max_leaves=8,
)  # fmt: skip


def same(one: Instance, other: Instance) -> None:
    """By bytes that differ if a program could see a difference, field by field."""
    for field in fields(Instance):
        pair = [canonical(getattr(each, field.name), field.name) for each in (one, other)]
        assert pair[0] == pair[1], field.name


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.text(), VALUES), st.dictionaries(st.text(), VALUES))
def test_whatever_an_instance_holds_comes_back(tmp_path_factory, extra, file):
    path = tmp_path_factory.mktemp("stored") / "i.spo.npz"
    known = Instance("mine", "näme", 3, extra=extra, file=file, reference=0.1, certified=True)
    save_instances(path, [known])
    [found] = load_instances(path)
    same(found, known)
    assert found.digest == known.digest


@pytest.mark.parametrize("name", ["tsp", "cvrp", "vrptw"])
def test_instances_of_the_package(tmp_path, name):
    problem = get_problem(name)
    known = problem.sample(9, 2, 3)
    skew = np.array(known[0].dist)
    skew[0, 1] += math.pi
    known.append(replace(known[0], name="skew", dist=np.asfortranarray(skew), coords=None))
    save_instances(tmp_path / "i.spo.npz", known)
    found = load_instances(tmp_path / "i.spo.npz")
    for one, other in zip(found, known, strict=True):
        same(one, other)
        assert one.digest == other.digest
        for array in (one.dist, one.demands, *one.extra.values()):
            assert not isinstance(array, np.ndarray) or not array.flags.writeable


def test_a_file_with_remarks_and_ids(tmp_path, spo_data):
    known = get_problem("tsp").read(spo_data / "tsplib" / "berlin52.tsp")
    save_instances(tmp_path / "i.spo.npz", [known])
    same(load_instances(tmp_path / "i.spo.npz")[0], known)


class Odd:
    pass


@pytest.mark.parametrize("value", [Odd(), {1}, np.array([Odd()]), [[{"a": (Odd(),)}]]])
def test_what_cannot_be_stored_is_named(tmp_path, value):
    with pytest.raises(InputError, match=r"`file` of the instance it holds a .*, which cannot be"):
        save_instances(tmp_path / "i.spo.npz", [Instance("mine", "it", 3, file={"x": value})])


def test_what_is_nested_in_itself_is_named(tmp_path):
    round_: list[Any] = []
    round_.append(round_)
    with pytest.raises(InputError, match="nested deeper than 50 levels"):
        save_instances(tmp_path / "i.spo.npz", [Instance("mine", "it", 3, file={"x": round_})])


def test_a_damaged_file_is_one_sentence(tmp_path: Path):
    path = tmp_path / "i.spo.npz"
    save_instances(path, get_problem("tsp").sample(5, 1, 1))
    data = path.read_bytes()
    np.savez(tmp_path / "other.npz", index=np.zeros(3, np.uint8))
    wrong = [b"", data[: len(data) // 2], b"x" * 50, (tmp_path / "other.npz").read_bytes()]
    rows = [b"3", b"[3]", b'[["dict", "problem"]]', b'[["set", 1]]', b'[["array", 7]]', b"[[]]"]
    for row in rows:
        np.savez(tmp_path / "row.npz", index=np.frombuffer(row, np.uint8))
        wrong.append((tmp_path / "row.npz").read_bytes())
    for each in wrong:
        path.write_bytes(each)
        with pytest.raises(InputError, match=r"i\.spo\.npz cannot be read: "):
            load_instances(path)
