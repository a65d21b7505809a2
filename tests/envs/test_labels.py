"""Names that tell instances apart, by hand and of any names."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spo_jax.envs.files.labels import labels, numbered, with_unique_names
from spo_jax.envs.instance import Instance


def instance(name, path=None):
    return Instance("tsp", name, 3, dist=np.ones((3, 3)), file={"path": path} if path else {})


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ([("a", "x/a.tsp"), ("b", "x/b.tsp")], ["a", "b"]),
        ([("a", "x/1.tsp"), ("b", "x/a.tsp"), ("a", "x/2.tsp")], ["a (1.tsp)", "b", "a (2.tsp)"]),
        ([("a", "mon/a.csv"), ("a", "tue/a.csv")], ["a (mon/a.csv)", "a (tue/a.csv)"]),
        ([("a", "a.csv"), ("a", "/tue/a.csv")], ["a (a.csv)", "a (tue/a.csv)"]),
        ([("a", "x/a.csv"), ("a", None), ("a", None)], ["a", "a (2)", "a (3)"]),
        ([("a (2)", None), ("a", None), ("a", None)], ["a (2)", "a", "a (3)"]),
        ([("", "1.tsp"), ("", "2.tsp")], [" (1.tsp)", " (2.tsp)"]),
    ],
)
def test_labels_by_hand(given, found):
    instances = [instance(*each) for each in given]
    assert labels(instances) == found
    labelled = with_unique_names(instances)
    assert [each.name for each in labelled] == found
    assert all(one.dist is other.dist for one, other in zip(labelled, instances, strict=True))


@given(st.lists(st.tuples(st.sampled_from(["a", "a (2)", "a (1)", ""]), st.sampled_from(
    [None, "1", "2", "x/1", "y/x/1"]))))  # fmt: skip
def test_no_label_is_there_twice(given):
    found = labels([instance(*each) for each in given])
    assert len(set(found)) == len(given)
    assert all(label.startswith(name) for label, (name, _) in zip(found, given, strict=True))


def test_numbered():
    assert numbered(["a", "a", "b", "a", "a (2)"]) == ["a", "a (2)", "b", "a (3)", "a (2) (2)"]
