"""Payoff tables of runs: which programs, which are left out, and what is said of them."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import payoff_shares
from common.runs import fresh_instances
from spo_jax.errors import InputError
from spo_jax.search.lab.measured.shares import shares_of
from spo_jax.search.lab.worlds import WorldSpec, make_worlds


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["payoff_shares.py", *map(str, arguments)])
    return payoff_shares.main()


def test_programs_are_drawn_alike_and_once():
    names = [f"{i}" for i in range(9)] * 2
    one, again = (payoff_shares.drawn(order, 4, "repairs") for order in (names, names[::-1]))
    assert one == again
    assert len(set(one)) == 4
    assert sorted(payoff_shares.drawn(names, 99, "repairs")) == sorted(set(names))
    with pytest.raises(InputError, match="2 valid repairs"):
        payoff_shares.drawn(["a", "b", "a"], 4, "repairs")


def test_instances_are_of_the_sizes_that_the_run_trains_on(tmp_path):
    def of(on):
        evaluation = SimpleNamespace(on=on, size=50)
        config = SimpleNamespace(problem="tsp", evaluation=evaluation)
        found = fresh_instances(SimpleNamespace(config=config, path="runs/mine"), 2, 0)
        return [each.size for each in found]

    assert of(()) == [50] * 2
    assert of(("uniform:100x2", "uniform:200x1", "uniform:100x1@3")) == [100] * 2 + [200] * 2
    (tmp_path / "a.tsp").write_text("")
    with pytest.raises(InputError, match="runs/mine trains on files"):
        of((str(tmp_path / "a.tsp"),))


@pytest.mark.long
def test_a_summary_of_a_known_world():
    true = make_worlds(WorldSpec(12, 10, gamma=1, follower_sd=0.5, noise=0), 1).utility[0]
    rng = np.random.default_rng(0)
    scores = true[..., None, None] + rng.normal(size=(12, 10, 3, 2))
    found = payoff_shares.summary(scores)
    assert (found["destroys"], found["repairs"]) == (12, 10)
    assert sum(found[name] for name in payoff_shares.PARTS) == pytest.approx(1)
    assert found["mean"] == pytest.approx(scores.mean())
    assert found["gamma_low"] < found["lab_gamma"] < found["gamma_high"]
    flat = shares_of(scores.reshape(12, 10, 6))
    assert found["lab_noise"] == pytest.approx(flat.noise_in_leaders)
    assert found["failed"] == 0
    scores[3, 4, 0, 0] = scores[3, 5, 2, 1] = np.nan
    rest = payoff_shares.summary(scores)
    assert (rest["destroys"], rest["repairs"]) == (11, 10)
    assert rest["failed"] == pytest.approx(2 / 120)
    assert rest["mean"] == pytest.approx(np.delete(scores, 3, axis=0).mean())
    with pytest.raises(InputError, match="too many pairs failed"):
        payoff_shares.summary(scores[:2])


@pytest.mark.slow
def test_a_run_of_the_grammar(grammar_run, tmp_path, monkeypatch, capsys):
    flags = ("--run", grammar_run, "--rounds", 1, "--programs", 4, "--instances", 2,
             "--out", tmp_path / "out")  # fmt: skip
    assert run(monkeypatch, *flags) == 0
    first = capsys.readouterr().out
    assert "| run | round | table |" in first
    with np.load(tmp_path / "out" / "run-1.npz") as known:
        assert known["scores"].shape == (len(known["destroys"]), len(known["repairs"]), 2, 1)
        assert np.isfinite(known["scores"]).all()
    monkeypatch.setattr(payoff_shares, "made", None)  # a table that is there is not made again
    assert run(monkeypatch, *flags) == 0
    assert capsys.readouterr().out == first
    assert run(monkeypatch, *flags[:-4], "--instances", 3, *flags[-2:]) == 2
    assert "use another --out" in capsys.readouterr().err


@pytest.mark.parametrize(("flags", "message"), [
    (["--run", "nosuch"], "no such run folder"),
    (["--run", "nosuch", "--programs", 2], "at least 3"),
    (["--run", "nosuch", "--instances", 1], "at least 2"),
])  # fmt: skip
def test_what_it_refuses(monkeypatch, capsys, tmp_path, flags, message):
    assert run(monkeypatch, *flags, "--out", tmp_path) == 2
    assert message in capsys.readouterr().err
