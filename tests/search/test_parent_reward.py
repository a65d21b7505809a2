"""CALM's rewards by hand, from equations 3 and 4 of the paper with J in place of costs."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spo_jax.config import Settings
from spo_jax.config.updates import Calm
from spo_jax.program import Program
from spo_jax.search.credit import CrossPlay, Payoff
from spo_jax.search.credit.parent_reward import ParentReward, difference, learning_credit_of, reward

NAN = math.nan
SETTINGS = Calm(invalid=-0.8, copy=0.75, worse=0.5)


def test_the_numbers_of_our_own_are_those_of_the_docs() -> None:
    assert Calm() == Calm(invalid=-0.8, copy=0.75, worse=0.5, kl=0.04)


def repair(name: str, *parents: str) -> Program:
    return Program("repair", name, parents=tuple(Program("repair", p).digest for p in parents))


def destroy(name: str, *parents: str) -> Program:
    return Program("destroy", name, parents=tuple(Program("destroy", p).digest for p in parents))


def test_differences_are_those_of_costs() -> None:
    """J of 0.8 and 0.75 are costs of 0.2 and 0.25 of the start's: 0.05 / 0.2."""
    assert difference(0.8, 0.75) == difference(0.75, 0.8) == pytest.approx(0.25)
    assert difference(0.9, 0.5) == 1.0  # costs of 0.1 and 0.5: four times the smaller, clipped
    assert difference(1.0, 1.0) == 0.0
    assert difference(1.0, 0.99) == 1.0  # nothing is smaller than a cost of 0


def test_the_tiers_by_hand() -> None:
    bars = [0.7, 0.75, NAN]  # the last parent failed
    assert reward(0.8, bars, False, SETTINGS) == pytest.approx(1.25)  # 1 + 0.05 / 0.2
    assert reward(0.7, bars, False, SETTINGS) == pytest.approx(-0.6)  # as good as a parent: a copy
    assert reward(0.75, bars, False, SETTINGS) == pytest.approx(-0.6)
    assert reward(0.9, bars, True, SETTINGS) == pytest.approx(-0.6)  # a parent's source
    # Costs 0.5 and 0.25: 0.5 x -0.8 x 1.
    assert reward(0.5, bars, False, SETTINGS) == pytest.approx(-0.4)
    assert reward(0.74, bars, False, SETTINGS) == pytest.approx(-0.4 * 0.01 / 0.25)
    assert reward(0.5, [NAN], False, SETTINGS) == reward(0.5, [], False, SETTINGS) == 1.0
    assert math.isnan(reward(NAN, bars, False, SETTINGS))


@given(st.floats(-1, 1), st.lists(st.floats(-1, 1), min_size=1), st.booleans())
def test_the_order_of_the_tiers(value: float, bars: list[float], copy: bool) -> None:
    """Invalid < copy < new but worse <= 0 < better, which is in (1, 2]."""
    settings = Calm()
    found = reward(value, bars, copy, settings)
    copied = settings.copy * settings.invalid
    assert settings.invalid < copied
    if copy or value in bars:
        assert found == copied
    elif value < max(bars):
        assert copied < found <= 0
    else:
        assert 1 <= found <= 2


def test_a_round_by_hand() -> None:
    """Repairs against their parents with the same destroy; destroys by C_D against a parent's."""
    old = tuple(map(repair, "pq"))
    rows = (
        (repair("a", "p"), repair("b", "p", "q"), repair("c"), repair("p", "p")),
        (repair("x", "q"), repair("y", "p"), repair("z", "p"), None),
    )
    destroys = (destroy("d", "m"), destroy("e", "m"), destroy("m", "m"))
    utility = np.array([[0.8, 0.7, 0.6, 0.5], [NAN, 0.5, 0.4, NAN], [NAN] * 4])
    known = {("d", "p"): 0.5, ("d", "q"): 0.75, ("e", "p"): NAN, ("e", "q"): 0.9}
    asked = {(destroy(d).digest, repair(r).digest): v for (d, r), v in known.items()}
    payoff = Payoff(
        utility, destroys, (*rows, ()), leader_baseline=[0.7, 0.5, 0.5],
        cross_play=CrossPlay((), old, np.zeros((0, 2)), np.zeros((0, 2, 1, 1))), asked=asked,
    )  # fmt: skip
    scheme = ParentReward(SETTINGS)
    pairs = {(p.destroy.source, p.repair.source) for p in scheme.asks(payoff, top=2)}
    assert pairs == {("d", "p"), ("d", "q"), ("e", "p")}  # x failed, so its parent is not asked for
    credits = scheme(payoff, top=2)
    # a: costs 0.2 and 0.5, clipped. b: below q, costs 0.3 and 0.25. c: no parent. p: a copy.
    want = [[2.0, -0.4 * 0.05 / 0.25, 1.0, -0.6], [NAN, 1.0, 1.0, NAN], [NAN] * 4]
    np.testing.assert_allclose(credits.follower, want)
    # d: C_D 0.75 against 0.7, costs 0.25 and 0.3. e: 0.45 against 0.5. The last has no valid pair.
    np.testing.assert_allclose(credits.leader, [1.2, -0.4 * 0.05 / 0.5, NAN])


def test_a_run_of_calm_learns_from_its_rewards() -> None:
    made = learning_credit_of(Settings.make(update="calm", update_settings={"worse": 0.25}))
    assert made == ParentReward(Calm(worse=0.25))
    assert learning_credit_of(Settings.make()) is None
    assert learning_credit_of(Settings.make(learning_credit="shared")) is not None
