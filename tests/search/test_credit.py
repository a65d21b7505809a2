"""Credit schemes by hand, against loops, and what `get_credit` refuses."""

import math
import sys
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spo_jax.errors import InputError
from spo_jax.search.credit import Credits, Payoff, get_credit, shared, stackelberg

NAN = math.nan


def payoff_of(rows):
    rows = np.array(rows, dtype=float)
    return Payoff(
        rows,
        tuple(f"d{i}" for i in range(len(rows))),
        tuple(tuple(f"r{i}{j}" for j in range(rows.shape[1])) for i in range(len(rows))),
    )


PAYOFF = payoff_of([[0.5, NAN, 1.0, 0.0], [NAN, 0.25, NAN, NAN], [NAN] * 4])


class TestSchemes:
    def test_stackelberg_by_hand(self):
        credits = stackelberg(PAYOFF, top=2)
        # (1.0 + 0.5) / 2 = 0.75; its only response 0.25; none
        np.testing.assert_array_equal(credits.leader, [0.75, 0.25, NAN])
        np.testing.assert_array_equal(credits.follower, PAYOFF.utility)

    def test_shared_by_hand(self):
        credits = shared(PAYOFF, top=2)
        # (0.5 + 1.0 + 0.0) / 3 = 0.5; 0.25 / 1; none
        np.testing.assert_array_equal(credits.leader, [0.5, 0.25, NAN])
        np.testing.assert_array_equal(credits.follower, PAYOFF.utility)

    def test_weak_responses_hurt_a_leader_only_when_credit_is_shared(self):
        strong = payoff_of([[0.9, 0.8, NAN, NAN]])
        diluted = payoff_of([[0.9, 0.8, 0.1, 0.1]])
        assert stackelberg(strong).leader == stackelberg(diluted).leader
        assert shared(strong).leader > shared(diluted).leader

    @settings(max_examples=30, deadline=None)
    @given(
        st.integers(1, 6).flatmap(
            lambda width: st.lists(
                st.lists(
                    st.floats(0, 1, allow_subnormal=False) | st.just(NAN),
                    min_size=width,
                    max_size=width,
                ),
                min_size=1,
                max_size=6,
            )
        ),
        st.integers(1, 7),
    )
    def test_against_loops(self, rows, top):
        payoff = payoff_of(rows)
        leader = get_credit("stackelberg")(payoff, top=top).leader
        mean = get_credit("shared")(payoff, top=top).leader
        for i, row in enumerate(rows):
            scores = sorted((u for u in row if not math.isnan(u)), reverse=True)
            if scores:
                assert leader[i] == sum(scores[:top]) / len(scores[:top])
                assert mean[i] == pytest.approx(sum(scores) / len(scores), abs=1e-15)
                assert leader[i] >= mean[i] - 1e-15
            else:
                assert math.isnan(leader[i])
                assert math.isnan(mean[i])

    @pytest.mark.parametrize("name", ["stackelberg", "shared"])
    @pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)])
    def test_rounds_without_pairs(self, name, shape):
        credits = get_credit(name)(payoff_of(np.full(shape, NAN)), top=2)
        np.testing.assert_array_equal(credits.leader, np.full(shape[0], NAN))
        assert credits.follower.shape == shape


class TestPayoff:
    def test_rows_may_be_ragged(self):
        payoff = Payoff(np.array([[0.1, NAN], [NAN, 0.2]]), ("a", "b"), (("r",), ("", "s")))
        assert payoff.utility.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            payoff.utility[0, 0] = 1.0

    def test_the_callers_array_stays_writable(self):
        utility = np.array([[0.1]])
        payoff = Payoff(utility, ("a",), (("r",),))
        utility[0, 0] = 0.9
        assert payoff.utility[0, 0] == 0.1

    @pytest.mark.parametrize(
        ("utility", "destroys", "repairs"),
        [
            ([0.1], ("a",), (("r",),)),
            ([[0.1]], (), (("r",),)),
            ([[0.1]], ("a",), ()),
            ([[0.1]], ("a",), (("r", "s"),)),
            ([[0.1, 0.2]], ("a",), (("r",),)),
            ([[0.1]], ("a",), (("",),)),
        ],
    )
    def test_shapes_must_agree(self, utility, destroys, repairs):
        with pytest.raises(InputError):
            Payoff(np.array(utility), destroys, repairs)


def double(payoff, *, top):
    return Credits(np.arange(len(payoff.destroys)), 2 * payoff.utility)


def wrong_leader(payoff, *, top):
    return Credits(np.zeros(len(payoff.destroys) + 1), payoff.utility)


def wrong_follower(payoff, *, top):
    return Credits(np.zeros(len(payoff.destroys)), payoff.utility.T)


def infinite(payoff, *, top):
    return Credits(np.full(len(payoff.destroys), -np.inf), payoff.utility)


def words(payoff, *, top):
    return Credits(["much"] * len(payoff.destroys), payoff.utility)


def a_tuple(payoff, *, top):
    return np.zeros(len(payoff.destroys)), payoff.utility


class TestGetCredit:
    @pytest.fixture(autouse=True)
    def module(self, monkeypatch):
        module = types.ModuleType("my_credit")
        for function in (double, wrong_leader, wrong_follower, infinite, words, a_tuple):
            setattr(module, function.__name__, function)
        module.number = 3
        monkeypatch.setitem(sys.modules, "my_credit", module)

    def test_a_users_scheme(self):
        credits = get_credit("my_credit:double")(PAYOFF, top=2)
        np.testing.assert_array_equal(credits.leader, [0.0, 1.0, 2.0])
        np.testing.assert_array_equal(credits.follower, 2 * PAYOFF.utility)
        assert credits.leader.dtype == credits.follower.dtype == np.float64

    @pytest.mark.parametrize(
        "name",
        [
            "",
            "stackleberg",
            "my_credit",
            "my_credit:",
            ":double",
            ".my_credit:double",
            "my_credit:triple",
            "no_such_module_here:double",
            "my_credit:number",
        ],
    )
    def test_names_that_find_nothing(self, name):
        with pytest.raises(InputError, match="credit"):
            get_credit(name)

    def test_a_module_that_cannot_be_imported(self, tmp_path, monkeypatch):
        (tmp_path / "broken_credit.py").write_text("def scheme(:\n")
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(InputError, match="SyntaxError"):
            get_credit("broken_credit:scheme")

    @pytest.mark.parametrize(
        ("name", "complaint"),
        [
            ("wrong_leader", "leader of shape"),
            ("wrong_follower", "follower of shape"),
            ("infinite", "infinite leader"),
            ("words", "no array"),
            ("a_tuple", "returned a tuple"),
        ],
    )
    def test_results_are_checked(self, name, complaint):
        scheme = get_credit(f"my_credit:{name}")
        with pytest.raises(InputError, match=complaint):
            scheme(PAYOFF, top=2)

    @pytest.mark.parametrize("name", ["stackelberg", "shared", "my_credit:double"])
    def test_top_must_be_positive(self, name):
        with pytest.raises(InputError, match="top"):
            get_credit(name)(PAYOFF, top=0)
