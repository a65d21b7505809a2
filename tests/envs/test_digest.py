"""What tells instances apart: everything that a rollout can see, and nothing else."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spo_jax.envs.canonical import canonical
from spo_jax.envs.problem import Instance
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError


def instance(problem="path", **changes) -> Instance:
    dist = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    made = Instance(problem, "a", 3, np.zeros((3, 2)), dist, np.array([0, 1, 2]), 9)
    return replace(made, **changes)


# --- the digests that shipped references and seeds depend on --------------------------------------

SHIPPED = {
    ("tsp", 5): ("fe602c8f2aea6dc2301d240e32725985", "48857e01abe9778efa191550377d8daf"),
    ("tsp", 50): ("323974e906f7ea30d9fad55940280814", "a4d91fea70114c66595260f4abf26c61"),
    ("cvrp", 5): ("a950fbe3a3ee699ae1b89d93e45322c2", "30c16ac94737b7652b32cb37b74f9f6d"),
    ("cvrp", 50): ("f5f0a7ae192fcc421a2f970eb7586c6c", "4589b6e86ef7c679249cefee252e6d9d"),
}


@pytest.mark.parametrize("what", SHIPPED)
def test_digests_of_uniform_instances_never_change(what) -> None:
    problem, size = what
    found = get_problem(problem).sample(size, 2, 2026)
    assert tuple(each.digest for each in found) == SHIPPED[what]


def test_what_a_file_says_besides_does_not_count() -> None:
    for problem in ("tsp", "cvrp", "path"):
        plain = instance(problem)
        other = replace(plain, name="b", reference=1.0, certified=True, file={"ids": [3, 1, 2]})
        assert other.digest == plain.digest


# --- what counts ----------------------------------------------------------------------------------

WINDOWS = np.array([[0.0, 5.0], [1.0, 2.0]])
EXTRAS = [
    {}, {"a": None}, {"a": 0}, {"a": False}, {"a": 0.0}, {"a": -0.0}, {"a": float("nan")},
    {"a": 0j}, {"a": ""}, {"a": b""}, {"a": "0"}, {"a": b"0"}, {"a": []}, {"a": ()},
    {"a": {}}, {"a": [0]}, {"a": [0, 0]}, {"a": [[0], 0]}, {"a": [[0, 0]]},
    {"b": 0}, {0: 0}, {"0": 0}, {"a": 0, "b": 1}, {"a": 1, "b": 0}, {"a": {"b": 0}},
    {"a": WINDOWS}, {"a": WINDOWS.T}, {"a": WINDOWS.ravel()}, {"a": WINDOWS.tolist()},
    {"a": WINDOWS.astype("f4")}, {"a": WINDOWS.astype(">f8")}, {"a": WINDOWS.astype(int)},
    {"a": WINDOWS.astype("i4")}, {"a": WINDOWS + 1e-16}, {"a": WINDOWS + 1e-9},
    {"a": np.float64(0)}, {"a": np.float32(0)}, {"a": np.int64(0)}, {"a": np.bool_(False)},
    {"a": np.zeros(())}, {"a": np.zeros(0)}, {"a": np.zeros((0, 3))}, {"a": np.array(["x"])},
    {"a": 10**400}, {"a": "\ud800"}, {"a": (1, "2")}, {"a": ("1", 2)},
    {"a": {1: 0, 2: 0}}, {"a": {2: 0, 1: 0}},
]  # fmt: skip


@pytest.mark.parametrize("problem", ["tsp", "cvrp", "path"])
def test_different_extras_are_different_instances(problem) -> None:
    digests = [instance(problem, extra=extra).digest for extra in EXTRAS]
    assert len(set(digests)) == len(EXTRAS)


@pytest.mark.parametrize(
    "change",
    [
        {"size": 4}, {"size": 2}, {"demands": None}, {"capacity": 8}, {"capacity": None},
        {"capacity": 9.0}, {"demands": np.array([0, 1, 3])}, {"dist": np.zeros((3, 3))},
        {"demands": np.array([0, 1])}, {"dist": None}, {"dist": None, "size": 4},
        {"dist": None, "demands": None}, {"dist": np.ones((2, 3))}, {"dist": np.ones((4, 4))},
        {"demands": None, "size": 2}, {"demands": None, "extra": {"a": 0}},
    ],
)  # fmt: skip
def test_whatever_rules_can_read_counts(change) -> None:
    assert instance(**change).digest != instance().digest
    assert instance(**change).digest == instance(**change).seen().digest


@pytest.mark.parametrize("problem", ["tsp", "cvrp", "path"])
def test_rules_see_nothing_that_does_not_count(problem) -> None:
    """Two instances of one digest are one to the workers, so they must be the same to rules."""
    plain = instance(problem)
    other = replace(plain, coords=np.ones((3, 2)), file={"a": 1}, reference=1.0, certified=True)
    assert plain.digest == other.digest
    for name, value in vars(plain.seen()).items():
        np.testing.assert_equal(vars(other.seen())[name], value)


def test_numbers_of_another_type_are_converted_or_refused() -> None:
    same = instance(dist=instance().dist.astype(int).tolist(), demands=[0.0, 1.0, 2.0])
    assert same.digest == instance().digest
    assert (same.dist.dtype, same.demands.dtype) == (np.float64, np.int64)
    with pytest.raises(InputError, match="a: demands must be whole numbers"):
        instance(demands=[0, 1, 2.5])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
    | st.sampled_from([np.zeros(2), np.ones((2, 2), int), np.int32(3)]),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple)
    | st.dictionaries(st.text(max_size=2) | st.integers(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def spelled(value) -> str:
    """An independent text of a value that says all of its types, dictionaries in their order."""
    if isinstance(value, dict):
        return f"dict{[(spelled(k), spelled(v)) for k, v in value.items()]}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}[{','.join(map(spelled, value))}]"
    if isinstance(value, np.ndarray | np.generic):
        return f"{type(value).__name__}:{value.dtype.str}{value.shape}{value.tolist()}"
    return f"{type(value).__name__}:{value!r}"


@pytest.mark.long
@settings(deadline=None, max_examples=400)
@given(VALUES, VALUES)
def test_equal_bytes_are_equal_values(first, second) -> None:
    equal = spelled(first) == spelled(second)
    assert (canonical(first, "") == canonical(second, "")) == equal


def test_the_order_in_memory_does_not_count() -> None:
    square = np.arange(12.0).reshape(3, 4)
    for same in (np.asfortranarray(square), np.stack([square, square])[1], square.copy()):
        assert canonical(same, "") == canonical(square, "")
    assert canonical(square[:, ::2], "") == canonical(square[:, ::2].copy(), "")


def test_arrays_in_extra_cannot_be_written_to() -> None:
    made = instance(extra={"windows": WINDOWS.copy(), "limit": 3})
    with pytest.raises(ValueError, match="read-only"):
        made.extra["windows"][0] = 1


# --- what has no digest ---------------------------------------------------------------------------


@dataclass
class Windows:
    early: float = 0.0


class Number(int):
    pass


LOOP: list = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (Windows(), "a Windows"), (object(), "a object"), (lambda: 0, "a function"),
        (Number(3), "a Number"), (np.array([None]), "ndarray of object"), (LOOP, "in itself"),
        (np.zeros(2, [("a", "i1"), ("b", "f8")]), "ndarray of "), (np.longdouble(1), "longdouble"),
        (np.ma.masked_array([1.0]), "a MaskedArray"), (range(3), "a range"), (iter([]), "iterator"),
    ],
)  # fmt: skip
def test_anything_else_is_one_sentence(value, says) -> None:
    with pytest.raises(InputError, match=says) as caught:
        instance(name="rc101", extra={"windows": [value]}).digest  # noqa: B018
    text = str(caught.value)
    assert text.startswith("`extra` of the instance rc101")
    assert "\n" not in text
