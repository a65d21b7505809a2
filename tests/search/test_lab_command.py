"""The command of the credit laboratory: its tables, its picture, and what it refuses."""

import csv
import io
import json
import math
import sys
import types
from dataclasses import replace

import numpy as np
import pytest

from spo_jax.program import Program
from spo_jax.search.credit import Credits
from spo_jax.search.lab import __main__ as command
from spo_jax.search.lab import show, study
from spo_jax.search.lab.bandit import Training, train
from spo_jax.search.lab.schemes import Scheme
from spo_jax.search.lab.worlds import WorldSpec, draw_rounds, make_worlds

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
    return module


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
            for advantage in ("centred", "standardised"):
                assert f"\n| {world} | {advantage} | {scheme} | " in text
    assert (tmp_path / "credit_lab.png").read_bytes().startswith(b"\x89PNG")
    found = {(r["world"], r["scheme"], r["measure"]): float(r["mean"])
             for r in rows_of(tmp_path / "estimators.csv")}  # fmt: skip
    worst, best = (found["ours", s, "rank"] for s in ("mine:worst", "stackelberg"))
    assert worst < 0 < best  # wide leaders have the worst responses too
    assert len(rows_of(tmp_path / "map.csv")) == 2 * 2 * 4
    assert {r["measure"] for r in rows_of(tmp_path / "learning.csv")} == set(study.LEARNED)
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
    assert heads == "world,scheme,measure,mean,low,high,difference,from,to,p,needed"
    assert line.startswith("w,a,rank,0.5,")
    assert line.endswith(",,,,,")


def test_verdicts_count_corrected_tests_and_excluded_effects():
    def row(scheme, away, half, p):
        return study.Row(scheme, "pair", 0.5, 0.4, 0.6, away, away - half, away + half, p, 9, {})

    first = study.Row("a", "pair", 0.5, 0.4, 0.6, *[np.nan] * 5, {})
    rows = [
        first, row("b", 0.04, 0.005, 0.001), row("b", -0.06, 0.02, 0.02), row("b", 0.0, 0.01, 0.9),
        row("b", -0.2, 0.03, 1e-6), replace(row("b", 9, 1, 0), measure="leader"),
    ]  # fmt: skip
    # By Holm over four: 4e-6, 0.003, 0.04, 0.9.
    apart = show.significant(rows, "pair")
    assert apart == [rows[1], rows[2], rows[4]]
    line = show.verdicts(rows, "pair", apart, True, 0.05).splitlines()[-1]
    assert line == "| b | 4 | 1 | 2 | 2 | 0.230 |"
    line = show.verdicts(rows, "pair", apart, False, 0.05).splitlines()[-1]
    assert line == "| b | 4 | 2 | 1 | 2 | 0.230 |"
    assert show.lead(rows[1], True)[0] == "+0.040* (+0.035 to +0.045)"


@pytest.mark.long
@pytest.mark.parametrize("advantage", ["centred", "standardised"])
def test_a_scheme_identical_to_another_is_level_and_the_list_changes_nothing(advantage):
    """To the last bit, in learning and in rounds."""
    worlds = make_worlds(WorldSpec(8, 12), 10)
    training = Training(steps=20, advantage=advantage)
    lists = [["stackelberg", "shared"], ["shared", "max", "stackelberg@2"], ["shared"]]
    found = []
    for names in lists:
        schemes = [Scheme.of(name) for name in names]
        learned = train(schemes, worlds, training)
        found.append(dict(zip(names, learned, strict=True)))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0]["shared"].curve, other["shared"].curve)
    np.testing.assert_array_equal(found[0]["stackelberg"].curve, found[1]["stackelberg@2"].curve)
    rounds = [draw_rounds(worlds, n, 3) for n in (6, 5)]
    for scheme in ("stackelberg", "shared"):
        few = Scheme(scheme)(rounds[0].utility[..., :5], rounds[0].source[..., :5])
        np.testing.assert_array_equal(
            few.leader, Scheme(scheme)(rounds[1].utility, rounds[1].source).leader
        )


@pytest.mark.long
def test_policies_learn_with_both_advantages_each_as_alone():
    schemes = [Scheme.of("stackelberg"), Scheme.of("shared")]
    own = WorldSpec(leaders=16, followers=32, gamma=2)
    rows = study.learning(schemes, {"w": own}, replace(study.QUICK, worlds=4, steps=5), 3)
    worlds = make_worlds(own, 4, 3)
    for advantage in ("centred", "standardised"):
        runs = train(schemes, worlds, Training(steps=5, advantage=advantage), 3)
        [mine] = [row for row in rows if (row.scheme, row.measure, row.where["advantage"])
                  == ("shared", "pair", advantage)]  # fmt: skip
        assert mine.mean == runs[1].pair.mean()
        assert mine.difference == pytest.approx((runs[1].pair - runs[0].pair).mean())
    assert len(rows) == 2 * 2 * 3


def test_an_advantage_is_a_row_of_the_table_and_a_family_of_tests():
    """b is ahead with one advantage and behind with the other, and neither test pays for both."""

    def row(advantage, scheme, away, p):
        return study.Row(scheme, "pair", 0.5, 0.4, 0.6, away, away - 0.01, away + 0.01, p, 9,
                         {"world": "w", "advantage": advantage})  # fmt: skip

    learned = []
    for advantage, away in (("centred", -0.1), ("standardised", 0.1)):
        learned += [row(advantage, "a", math.nan, math.nan), row(advantage, "b", away, 0.04)]
    learned += [replace(each, measure=name) for name in ("leader", "found") for each in learned[:]]
    text = show.tables([], learned, [Scheme.of("stackelberg")], 0.05)
    cells = " | ".join(["0.50 (0.40 to 0.60)"] * 3)
    assert f"| w | centred | b | {cells} | -0.100* (" in text
    assert f"| w | standardised | b | {cells} | +0.100* (" in text
    assert [line for line in text.splitlines() if line.startswith("| b | 1 |")] == [
        "| b | 1 | 0 | 1 | 0 | 0.110 |", "| b | 1 | 1 | 0 | 0 | 0.110 |",
    ]  # fmt: skip
    heads = show.csv_text(learned).splitlines()[0]
    assert heads.startswith("world,advantage,scheme,measure,")


def test_the_picture_shows_who_leads():
    rows = []
    for gamma, shared in ((0, 0.8), (4, 0.2)):
        where = {"spread": 0, "gamma": gamma, "noise": 1, "pairs": 6}
        for scheme, mean in (("stackelberg", 0.5), ("shared", shared), ("mine:x", 0.5)):
            away = mean - 0.5 if scheme != "stackelberg" else np.nan
            rows.append(study.Row(scheme, "rank", mean, mean, mean, away, away - 0.05,
                                  away + 0.05, 0.5, 3, where))  # fmt: skip
    drawn = show.draw_map(rows, [Scheme("stackelberg"), Scheme("shared")])
    from matplotlib.image import imread

    pixels = imread(io.BytesIO(drawn))[..., :3].reshape(-1, 3)
    assert (pixels[:, 0] - pixels[:, 2]).max() > 0.4  # red where shared leads by 0.3
    assert (pixels[:, 2] - pixels[:, 0]).max() > 0.3  # blue where it is behind
    assert show.letters_of(["stackelberg", "shared", "mine:x"])["mine:x"].isdecimal()


@pytest.mark.slow
def test_a_measured_table_is_in_the_tables_and_in_the_picture(tmp_path, monkeypatch, mine, capsys):
    monkeypatch.setattr(study, "QUICK", replace(TINY, seeds=30))
    true = make_worlds(WorldSpec(12, 14, gamma=2), 1).utility[0]
    rng = np.random.default_rng(0)
    cost = 100 - true[..., None, None, None] + 0.1 * rng.normal(size=(12, 14, 2, 2, 2))
    programs = [Program("destroy", f"def destroy(): return {i}", f"words {i}") for i in range(12)]
    pairs = [{"destroy": {"source": p.source, "strategy": p.strategy}} for p in programs]
    np.savez(tmp_path / "mine.npz", cost=cost, start=np.full((2, 2), 200.0), at=[10, 50],
             destroys=[program.digest for program in programs])  # fmt: skip
    (tmp_path / "mine.json").write_text(json.dumps({"pairs": pairs}))
    monkeypatch.setattr(mine, "oldest", lambda candidates, context: candidates[: context.size],
                        raising=False)  # fmt: skip
    flags = ["--quick", "--schemes", "stackelberg,shared", "--responses", "4", "--out",
             str(tmp_path / "out")]  # fmt: skip
    own = ["--survivors", "ranked@0.3,mine:oldest", "--population", "2", "--replayed-rounds", "3",
           "--candidates", "4,6", "--panels", "2,3"]  # fmt: skip
    assert run(*flags, "--table", str(tmp_path / "mine.npz"), "--step", "10", *own) == 0
    printed = capsys.readouterr().out
    assert "| mine | 12 x 14 | 10 |" in printed
    assert "Rounds replayed from mine, 30 seeds" in printed
    assert "mine, 30 seeds: populations of 2 after rounds of 4 new destroys" in printed
    assert "mean regret, round 3 | - ranked@0.3, round 3" in printed
    assert "\n| mine:oldest | " in printed
    assert "| panel | 2 | 3 |" in printed
    for place in ("0 | 0 | 0", "8 | 4 | 2", "12 | 4 | 3", "12 | 6 | 2", "18 | 6 | 3"):
        assert f"\n| {place} | " in printed
    assert "\n| mine | 4 | shared | 4 | " in printed
    assert "additive" not in printed
    marked = (tmp_path / "out" / "credit_lab.png").read_bytes()
    assert run(*flags) == 0
    assert (tmp_path / "out" / "credit_lab.png").read_bytes() != marked


def test_a_table_without_leaders_is_refused(tmp_path, capsys):
    np.savez(tmp_path / "flat.npz", scores=np.ones((4, 4, 3, 1)))
    assert run("--table", str(tmp_path / "flat.npz"), "--out", str(tmp_path)) == 2
    assert "no difference between leaders" in capsys.readouterr().err


@pytest.mark.parametrize(("flags", "message"), [
    (["--schemes", "nosuch"], "unknown credit 'nosuch'"),
    (["--schemes", ""], "--schemes needs names"),
    (["--schemes", "max,max"], "each scheme once"),
    (["--schemes", "nosuch.module:f"], "cannot import credit"),
    (["--world", "gamma=1"], "is not of the form"),
    (["--world", "x: gamma=-1"], "gamma is -1"),
    (["--table", "nosuch.npz"], "is no payoff table"),
    (["--responses", "0"], "no whole number"),
    (["--responses", ""], "--responses needs"),
    (["--learners", "16"], "--learners 16: two numbers"),
    (["--rate", "-1"], "rate is -1.0"),
    (["--learners", "1,4"], "--learners 1,4: two numbers"),
    (["--worlds", "1"], "--worlds is 1"),
    (["--schemes", "stackelberg@0"], "top is 0"),
    (["--survivors", "nosuch"], "unknown survivors 'nosuch'"),
    (["--survivors", "ranked,ranked@0.1"], "each rule once"),
    (["--survivors", ""], "--survivors needs names"),
    (["--candidates", "0"], "--candidates: '0' is no whole number"),
    (["--panels", "x"], "--panels: 'x' is no whole number"),
    (["--population", "0"], "at least 1, not 0"),
    (["--replayed-rounds", "-2"], "at least 1, not -2"),
    (["--survivors", "ranked"], "are of rounds replayed from a --table"),
])  # fmt: skip
def test_what_it_refuses(capsys, tmp_path, flags, message):
    assert run(*flags, "--out", str(tmp_path)) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
