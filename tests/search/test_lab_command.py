"""The command of the credit laboratory: its tables, its picture, and what it refuses."""

import csv
import io
import math
import sys
import types
from dataclasses import replace

import numpy as np
import pytest

from spo_jax.errors import InputError
from spo_jax.search.credit import Credits
from spo_jax.search.lab import __main__ as command
from spo_jax.search.lab import show, study
from spo_jax.search.lab.schemes import Scheme
from spo_jax.search.lab.worlds import Knobs, make_worlds

TINY = replace(
    study.QUICK, worlds=3, steps=2, map_worlds=3,
    gammas=(0, 4), noises=(0.5,), spreads=(1,), responses=(3, 12),
)  # fmt: skip


def run(*arguments):
    return command.main(list(arguments))


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.fixture
def mine(monkeypatch):
    """A module of the user's own, with one scheme: the worst response."""
    module = types.ModuleType("mine")
    module.worst = lambda payoff, *, top: Credits(payoff.utility.min(axis=1), payoff.utility)
    monkeypatch.setitem(sys.modules, "mine", module)


@pytest.mark.slow
def test_a_scheme_of_ones_own_and_a_world_of_ones_own_have_their_rows(
    tmp_path, monkeypatch, mine, capsys
):
    monkeypatch.setattr(study, "QUICK", TINY)
    monkeypatch.setattr(command, "WORLDS", {"unequal spreads": ""})
    flags = ["--quick", "--schemes", "stackelberg,shared@1,shapley,mine:worst",
             "--world", "ours: gamma=3 spread=1", "--responses", "5",
             "--out", str(tmp_path)]  # fmt: skip
    assert run(*flags) == 0
    printed = capsys.readouterr().out
    text = (tmp_path / "tables.md").read_text()
    assert text in printed
    for world in ("unequal spreads", "ours"):
        for scheme in ("stackelberg", "shared@1", "shapley", "mine:worst"):
            # Shapley values take two more pairs for each response, and one: 2 + 2 + 1 of 5.
            assert f"\n| {world} | 5 | {scheme} | {2 if scheme == 'shapley' else 5} | " in text
            assert f"\n| {world} | {scheme} | " in text
    assert (tmp_path / "credit_lab.png").read_bytes().startswith(b"\x89PNG")
    found = {(r["world"], r["scheme"], r["measure"]): float(r["mean"])
             for r in rows_of(tmp_path / "estimators.csv")}  # fmt: skip
    worst, best = (found["ours", s, "rank"] for s in ("mine:worst", "stackelberg"))
    assert worst < 0 < best  # wide leaders have the worst responses too
    assert len(rows_of(tmp_path / "map.csv")) == 2 * 2 * 4
    assert {r["measure"] for r in rows_of(tmp_path / "learning.csv")} == {"pair", "leader"}
    first = {name: (tmp_path / name).read_bytes() for name in ("map.csv", "credit_lab.png")}
    assert run(*flags) == 0
    for name, before in first.items():
        assert (tmp_path / name).read_bytes() == before


def test_comparisons_are_paired_by_world():
    first = {"rank": np.array([0.1, 0.5, 0.9])}
    ahead = {"rank": np.array([0.2, 0.6, 1.0]) + np.array([0.0, 0.01, -0.01])}
    a, b, _ = study.compared({"a": first, "b": ahead, "c": first}, {"world": "w"})
    assert a.mean == pytest.approx(0.5)
    assert math.isnan(a.difference)  # from itself
    assert b.difference == pytest.approx(0.1)
    # t is 4.30265 for three values; their deviation is 0.01.
    half = 4.30265 * 0.01 / np.sqrt(3)
    assert (b.start, b.end) == pytest.approx((0.1 - half, 0.1 + half))
    assert b.needed == 3  # a difference of ten deviations
    assert show.lead(a) == ["", ""]
    assert show.lead(b) == ["+0.100 (+0.075 to +0.125)", "3"]
    heads, line, *_ = show.csv_text([a, b]).splitlines()
    assert heads == "world,scheme,measure,mean,low,high,difference,from,to,needed"
    assert line.startswith("w,a,rank,0.5,")
    assert line.endswith(",,,,")


def test_the_picture_shows_who_leads():
    rows = []
    for gamma, shared in ((0, 0.8), (4, 0.2)):
        where = {"spread": 0, "gamma": gamma, "noise": 1, "pairs": 6}
        for scheme, mean in (("stackelberg", 0.5), ("shared", shared), ("mine:x", 0.5)):
            away = mean - 0.5 if scheme != "stackelberg" else np.nan
            rows.append(study.Row(scheme, "rank", mean, mean, mean, away, away - 0.05,
                                  away + 0.05, 3, where))  # fmt: skip
    drawn = show.draw_map(rows, [Scheme("stackelberg"), Scheme("shared")])
    from matplotlib.image import imread

    pixels = imread(io.BytesIO(drawn))[..., :3].reshape(-1, 3)
    assert (pixels[:, 0] - pixels[:, 2]).max() > 0.4  # red where shared leads by 0.3
    assert (pixels[:, 2] - pixels[:, 0]).max() > 0.3  # blue where it is behind
    assert show.letters_of(["stackelberg", "shared", "mine:x"])["mine:x"].isdecimal()


def test_a_measured_table_is_a_world_in_the_unit_of_its_leaders(tmp_path):
    true = make_worlds(Knobs(40, 30, gamma=1, follower_sd=0.5, spread=0), 1).utility[0]
    rng = np.random.default_rng(0)
    scores = 0.7 + 1e-3 * (true[..., None, None] + 0.6 * rng.normal(size=(40, 30, 3, 2)))
    np.savez(tmp_path / "known.npz", scores=scores)
    world = study.table_world(str(tmp_path / "known.npz"), 3)
    assert world.utility.shape == (3, 40, 30)
    np.testing.assert_array_equal(world.utility[0], world.utility[2])
    assert world.utility[0].mean(axis=1).std() == pytest.approx(1, abs=0.1)
    main = true.mean(axis=1).std()
    assert world.noise == pytest.approx(0.6 / np.sqrt(6) / main, rel=0.1)
    for name, scores in (("flat", np.ones((4, 4, 3, 1))), ("none", np.array(["x"]))):
        np.savez(tmp_path / f"{name}.npz", **{"scores" if name == "flat" else "other": scores})
        with pytest.raises(InputError, match="--table"):
            study.table_world(str(tmp_path / f"{name}.npz"), 3)


@pytest.mark.parametrize(("flags", "told"), [
    (["--schemes", "nosuch"], "unknown credit 'nosuch'"),
    (["--schemes", ""], "--schemes needs names"),
    (["--schemes", "max,max"], "each scheme once"),
    (["--schemes", "nosuch.module:f"], "cannot import credit"),
    (["--world", "gamma=1"], "is not of the form"),
    (["--world", "x: gamma=-1"], "gamma is -1"),
    (["--table", "nosuch.npz"], "is no table"),
    (["--responses", "0"], "no whole number"),
    (["--responses", ""], "--responses needs"),
    (["--worlds", "1"], "--worlds is 1"),
    (["--schemes", "stackelberg@0"], "top is 0"),
])  # fmt: skip
def test_what_it_refuses(capsys, tmp_path, flags, told):
    assert run(*flags, "--out", str(tmp_path)) == 2
    error = capsys.readouterr().err
    assert told in error
    assert "Traceback" not in error
