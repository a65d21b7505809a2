"""Variance components of payoff tables: by hand, and recovered from worlds that have them."""

import math

import numpy as np
import pytest

from spo_jax.errors import InputError
from spo_jax.search.lab.measured import shares
from spo_jax.search.lab.measured.shares import Shares, bootstrap, jackknife, shares_of
from spo_jax.search.lab.worlds import WorldSpec, make_worlds


def table(spec, evaluations=4, seed=0):
    """[K, M, E]: a world's table, with evaluations that shift all pairs alike and have noise."""
    rng = np.random.default_rng(seed)
    true = make_worlds(spec, 1, seed).utility[0][..., None]
    noise = spec.noise * math.sqrt(evaluations) * rng.normal(size=(*true.shape[:2], evaluations))
    return true + 10 * rng.normal(size=evaluations) + noise


def test_by_hand():
    # Two leaders, two followers, evaluations that differ by a constant: no noise. Cells 0 2 / 4 2:
    # row means 1 and 3, column means 2 and 2, interaction -1 +1 +1 -1 with one degree: 4.
    cells = np.array([[0.0, 2.0], [4.0, 2.0]])
    found = shares_of(np.stack([cells, cells + 5], axis=2))
    assert found.noise == pytest.approx(0)
    assert found.interaction == pytest.approx(4)
    assert found.leader == 0  # the rows' variance of 2 is 4 / 2, all of it interaction
    assert found.follower == 0
    assert found.gamma == math.inf
    with pytest.raises(InputError, match="no unit"):
        found.spec()


def test_the_components_of_a_world_are_recovered():
    spec = WorldSpec(200, 150, gamma=1.5, follower_sd=0.7, noise=0.4, spread=0.6)
    found = shares_of(table(spec))
    assert found.gamma == pytest.approx(1.5, rel=0.15)
    assert found.follower_in_leaders == pytest.approx(0.7, rel=0.2)
    assert found.noise_in_leaders == pytest.approx(0.4, rel=0.15)
    assert found.spread == pytest.approx(0.6, rel=0.15)
    again = found.spec(5, 6)
    assert (again.leaders, again.followers, again.gamma) == (5, 6, found.gamma)


def test_equal_spreads_and_no_interaction_are_seen_as_such():
    equal = shares_of(table(WorldSpec(150, 80, gamma=1, spread=0, noise=0.1)))
    assert equal.spread < 0.05
    none = shares_of(table(WorldSpec(150, 80, gamma=0, noise=0.5)))
    assert none.gamma < 0.05
    assert none.total == pytest.approx(none.leader + none.follower + none.interaction + none.noise)


@pytest.mark.long
@pytest.mark.parametrize(("leaders", "tables"), [(10, 24), (30, 60)])
def test_intervals_hold_the_truth_about_as_often_as_they_say(leaders, tables, monkeypatch):
    first = table(WorldSpec(leaders, 25, gamma=1, spread=0.3, noise=0.2))
    whole = jackknife(first)
    # gamma and the spread are estimated apart, and fitting spreads takes nearly all of the time.
    monkeypatch.setattr(shares, "_spread", lambda *_: 0.3)
    assert jackknife(first) == whole | {"spread": (0.3, 0.3)}
    held = []
    for seed in range(tables):
        ends = jackknife(table(WorldSpec(leaders, 25, gamma=1, spread=0.3, noise=0.2), seed=seed))
        held.append(ends["gamma"][0] < 1 < ends["gamma"][1])
    assert np.mean(held) > 0.85


def test_bootstrap_intervals_are_for_other_programs_of_both_roles():
    held = []
    for seed in range(60):
        scores = table(
            WorldSpec(30, 25, gamma=1, follower_sd=0.5, spread=0.3, noise=0.2), seed=seed
        )
        ends = bootstrap(scores, 60)
        # Of 1 + 0.25 + 1 + 0.04.
        held.append([ends["gamma"][0] < 1 < ends["gamma"][1],
                     ends["interaction"][0] < 1 / 2.29 < ends["interaction"][1],
                     ends["noise"][0] < 0.04 / 2.29 < ends["noise"][1]])  # fmt: skip
    assert np.all(np.mean(held, axis=0) > 0.8)


def test_units_do_not_show():
    scores = table(WorldSpec(10, 12))
    one, other = shares_of(scores), shares_of(1e-3 * scores - 7)
    assert isinstance(one, Shares)
    assert one.gamma == pytest.approx(other.gamma)
    assert one.spread == pytest.approx(other.spread)


@pytest.mark.parametrize("shape", [(1, 3, 2), (3, 1, 2), (3, 3, 1), (3, 3)])
def test_what_is_no_table(shape):
    with pytest.raises(InputError, match="two of each"):
        shares_of(np.zeros(shape))
    with pytest.raises(InputError, match="finite"):
        shares_of(np.full((3, 3, 3), math.nan))
