"""Worlds in which programs share what they are worth by their parts."""

import numpy as np
import pytest

from spo_jax.errors import InputError
from spo_jax.search.lab.worlds import WorldSpec, bits, make_worlds

LINEAR = WorldSpec(leaders=16, followers=32, spread=0.0)


def test_bits_are_those_of_the_numbers() -> None:
    assert bits(4).tolist() == [[-1, -1], [1, -1], [-1, 1], [1, 1]]
    assert bits(5).shape == (5, 3)
    assert bits(1).shape == (1, 1)


def residual(utility: np.ndarray) -> float:
    """The share of variance of pairs [K, M] that no function of bits explains: of a leader's, of a
    follower's, and of one of each.
    """
    one, two = (np.c_[np.ones(size), bits(size)] for size in utility.shape)
    features = np.einsum("ka,mb->kmab", one, two).reshape(utility.size, -1)
    away = utility.ravel() - utility.mean()
    fitted = features @ np.linalg.lstsq(features, away, rcond=None)[0]
    return float(((away - fitted) ** 2).sum() / (away**2).sum())


def test_parts_explain_all_or_nothing() -> None:
    whole = make_worlds(WorldSpec(16, 32, spread=0.0, parts=1.0), 3, 0).utility
    none = make_worlds(LINEAR, 3, 0).utility
    half = make_worlds(WorldSpec(16, 32, spread=0.0, parts=0.5), 20, 0).utility
    assert max(map(residual, whole)) < 1e-20
    assert min(map(residual, none)) > 0.8  # 29 of 511 degrees of freedom, and chance
    assert 0.3 < np.mean([*map(residual, half)]) < 0.6


@pytest.mark.parametrize("parts", [0.0, 0.4, 1.0])
def test_the_variance_is_the_same_for_any_share(parts: float) -> None:
    """Leaders 1, followers 0.25 and their interaction 1."""
    utility = make_worlds(WorldSpec(16, 32, spread=0.0, parts=parts), 3000, 1).utility
    assert utility.var(axis=0).mean() == pytest.approx(2.25, abs=0.06)
    assert utility.mean(axis=2).var(axis=0).mean() == pytest.approx(1.0, abs=0.08)


@pytest.mark.parametrize("parts", [-0.1, 1.1, float("nan")])
def test_a_share_out_of_range_is_refused(parts: float) -> None:
    with pytest.raises(InputError, match="a share is from 0 to 1"):
        WorldSpec(parts=parts)
