"""Registered studies: the files that ship, what is compared, and the spoilt evaluator."""

import math
import sys
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import pytest

import registered
from common.spoilt import SHARE, Spoilt, as_played, spoilt
from registered import Plan, compared, middle_half, picture, profile
from spo_jax import presets
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.program import Pair, Program
from spo_jax.search.credit import CREDITS
from spo_jax.search.plugins import require_parts

FOLDER = Path(registered.__file__).parent / "registered"
PLANS = sorted(FOLDER.glob("*.toml"))


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["registered.py", *map(str, arguments)])
    return registered.main()


@pytest.mark.parametrize("cores", [1, 2, 64])
def test_kept_rows_are_of_the_settings_of_today_on_every_machine(monkeypatch, cores):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(cores)))
    for path in PLANS:
        plan = Plan.read(path)
        for condition in plan.conditions:
            terms = {arm: registered.terms_of(plan, condition, arm) for arm in plan.arms}
            registered.rows_of(path.with_name(f"{path.stem}-{condition}.csv"), terms)


def pairs_of(problem, count):
    grammars = [get_problem(problem).grammar(role).novice() for role in ("destroy", "repair")]
    rng = Random(1)

    def drawn(role, grammar):
        strategy, source = grammar.render(grammar.sample(rng))
        return Program.from_source(role, source, strategy)

    return [Pair(drawn("destroy", grammars[0]), drawn("repair", grammars[1])) for _ in range(count)]


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_every_arm_of_a_file_that_ships_can_run(path):
    plan = Plan.read(path)
    for arm in plan.arms.values():
        for condition in plan.conditions.values():
            settings = presets.settings(
                plan.problem, plan.preset, **{**plan.settings, **condition, **arm}
            )
            require_parts(settings)
            CREDITS[settings.learning.learning_credit]
            assert settings.search.credit == "stackelberg"  # selection is the same in all
    for condition, predicted in plan.predicted.items():
        assert condition in plan.conditions
        assert predicted.keys() == {*plan.arms} - {next(iter(plan.arms))}
        assert all(low <= high for low, high in predicted.values())


@pytest.mark.long
def test_a_spoilt_pair_depends_on_its_programs_alone():
    pairs = pairs_of("tsp", 300)
    broken = [as_played(pair) != pair for pair in pairs]
    assert SHARE - 0.1 < np.mean(broken) < SHARE + 0.1
    assert [as_played(pair) != pair for pair in pairs[::-1]] == broken[::-1]
    assert all(as_played(pair).destroy == pair.destroy for pair in pairs)
    shares = []
    for destroy in dict.fromkeys(pair.destroy for pair in pairs[:60]):
        own = [Pair(destroy, pair.repair) for pair in pairs[:100]]
        shares.append(np.mean([as_played(pair) != pair for pair in own]))
    assert min(shares) < 0.15 < 0.5 < max(shares) < 0.8  # a chance of each destroy


@pytest.mark.long
@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_spoilt_pairs_fail_by_their_repair_and_the_others_run_as_ever(problem):
    pairs = pairs_of(problem, 12)
    broken = np.array([as_played(pair) != pair for pair in pairs])
    assert 0 < broken.sum() < len(pairs)
    instances = get_problem(problem).sample(12, 2, 0)
    with Spoilt(get_problem(problem), 1, seed=3) as evaluator:
        assert evaluator.check([spoilt(pairs[0].repair)]) == [None]
        found = evaluator.run(pairs, instances, (0, 1), 10)
    with LocalEvaluator(get_problem(problem), 1, seed=3) as evaluator:
        plain = evaluator.run(pairs, instances, (0, 1), 10)
    assert {found.failure(int(p))[2] for p in np.flatnonzero(broken)} == {"repair"}
    np.testing.assert_array_equal(found.best_cost[~broken], plain.best_cost[~broken])
    np.testing.assert_array_equal(found.ok[~broken], plain.ok[~broken])


def test_arms_are_compared_by_seed_and_held_against_what_was_predicted():
    plan = Plan(
        "", "tsp", 3, "worth", 0.5, {}, {}, {"a": {}, "b": {}, "c": {}}, {"x": {}},
        {"x": {"b": (-0.3, -0.1), "c": (0.0, 1.0)}},
    )  # fmt: skip
    rows = [("a", 0, 1.0), ("b", 0, 0.7), ("a", 1, 2.0), ("b", 1, 1.9), ("a", 2, 3.0), ("c", 2, 9)]
    text = compared(pd.DataFrame(rows, columns=["arm", "seed", "worth"]), plan, "x")
    line = next(line for line in text.splitlines() if line.startswith("| b | 2"))
    # Differences -0.3 and -0.1: mean -0.2, deviation 0.1414, t of one degree 12.706.
    assert "-0.2000 (-1.4706 to +1.0706)" in line
    # Within 0.5: t = 0.3 / 0.1, and of one degree P(T > t) is 1/2 - arctan(t) / pi.
    assert f"| {0.5 - math.atan(3) / math.pi:.3f} |" in line
    assert line.endswith("| -0.3000 to -0.1000 | yes |")
    # t = 2 of one degree: p = 1 - 2 arctan(2) / pi, times the two tests of the family.
    assert f"| {2 * (1 - 2 * math.atan(2) / math.pi):.3f} |" in line
    assert "| c |" not in text.split("\n\n")[1]  # one seed is no comparison


def test_the_interquartile_mean_leaves_out_a_quarter_at_each_end():
    values = np.array([-100.0, 7.0, 1.0, 2.0, 3.0, 4.0, 500.0, -9.0])
    mean, low, high = middle_half(values)
    assert mean == 2.5  # of 1, 2, 3, 4
    assert low < mean < high
    assert middle_half(np.full(8, 0.25)) == (0.25, 0.25, 0.25)
    assert middle_half(values) == (mean, low, high)


def test_a_profile_is_the_share_of_runs_at_least_so_good():
    values = np.array([0.3, np.nan, 0.1, 0.4, 0.3])
    assert profile(values, np.array([0.0, 0.1, 0.2, 0.4, 0.5])).tolist() == [0.8, 0.8, 0.6, 0.2, 0]


def test_the_picture_has_arms_without_runs_and_is_the_same_again():
    plan = Plan.read(PLANS[0])
    condition, arms = next(iter(plan.conditions)), list(plan.arms)[:2]
    rows = [(arm, seed, 0.1 * k + seed) for k, arm in enumerate(arms) for seed in range(3)]
    frame = pd.DataFrame(rows, columns=["arm", "seed", plan.outcome])
    png = picture(frame, plan, condition)
    assert png.startswith(b"\x89PNG")
    assert picture(frame, plan, condition) == png


BROKEN = {"": "lacks preset", "seeds = 1": "lacks preset, problem", "= 3": "no registered study"}


@pytest.mark.parametrize("text", BROKEN)
def test_a_file_that_is_no_plan_is_a_sentence(text, tmp_path, monkeypatch, capsys):
    (tmp_path / "plan.toml").write_text(text)
    assert run(monkeypatch, tmp_path / "plan.toml", "--condition", "x") == 2
    assert BROKEN[text] in capsys.readouterr().err


def test_unknown_names_are_sentences(monkeypatch, capsys):
    plan = PLANS[0]
    assert run(monkeypatch, plan, "--condition", "none such") == 2
    assert "--condition" in capsys.readouterr().err
    condition = next(iter(Plan.read(plan).conditions))
    assert run(monkeypatch, plan, "--condition", condition, "--arms", "none such") == 2
    assert "--arms none such" in capsys.readouterr().err


SMALL = """
problem = "tsp"
preset = "preset.toml"
seeds = 1
outcome = "destroy_worth"
equivalence = 0.001
[settings]
model = "novice"
kit = "none"
update = "grpo"
advantage = "centred"
[probe]
programs = 2
partners = 2
instances = 2
seed = 0
[arms]
stackelberg = { learning_credit = "stackelberg" }
shared = { learning_credit = "shared" }
[conditions.plain]
[predicted.plain]
shared = [-1.0, 1.0]
"""
PRESET = """
[search]
rounds = 1
parents = "none"
mutation_groups = 1
crossover_groups = 0
responses = 2
repairs_per_destroy = 2
panel_evolved = 1
finalists = 0
select = "utility"
[evaluation]
on = ["uniform:10x1"]
steps = 5
rollouts = 1
"""


def stand_in(monkeypatch):
    """Runs that cost nothing: a folder each, and a row that follows from arm and seed."""
    begun = []

    def discovered(problem, preset, own, path, out):
        assert not path.exists()
        path.mkdir(parents=True)
        begun.append(path.relative_to(out.parent))
        return path

    def row(path, plan, terms, out, workers):
        name = path.name
        return {plan.outcome: len(name) * (1 + int(name[-1])) / 7, "pairs": 4, "best": float("nan")}

    monkeypatch.setattr(registered, "discover_counted", discovered)
    monkeypatch.setattr(registered, "measured", row)
    return begun


@pytest.mark.long
def test_a_study_keeps_its_rows(tmp_path, monkeypatch, capsys):
    (tmp_path / "plan.toml").write_text(SMALL)
    (tmp_path / "preset.toml").write_text(PRESET)
    begun = stand_in(monkeypatch)
    command = (tmp_path / "plan.toml", "--condition", "plain", "--workers", 1)
    assert run(monkeypatch, *command, "--arms", "shared", "--out", tmp_path / "one") == 0
    rows = pd.read_csv(tmp_path / "plan-plain.csv")
    assert rows.arm.tolist() == ["shared"]
    assert run(monkeypatch, *command, "--seeds", 2, "--out", tmp_path / "two") == 0
    rows = pd.read_csv(tmp_path / "plan-plain.csv")
    assert rows.arm.tolist() == ["stackelberg"] * 2 + ["shared"] * 2
    assert rows.seed.tolist() == [0, 1, 0, 1]
    assert not (tmp_path / "two" / "plan-plain" / "shared-seed0").exists()  # it was there
    assert len(begun) == 4
    again = (*command, "--arms", "shared", "--again")
    assert run(monkeypatch, *again, "--out", tmp_path / "one") == 2
    assert "give another --out" in capsys.readouterr().err
    assert run(monkeypatch, *again, "--out", tmp_path / "three") == 0
    assert len(begun) == 5
    pd.testing.assert_frame_equal(rows, pd.read_csv(tmp_path / "plan-plain.csv"))
    changed = rows.copy()
    changed.loc[rows.arm == "shared", "pairs"] += 1
    changed.to_csv(tmp_path / "plan-plain.csv", index=False)
    assert run(monkeypatch, *again, "--out", tmp_path / "four") == 2
    assert "another version, or another machine" in capsys.readouterr().err
    pd.concat([rows, rows[:1]]).to_csv(tmp_path / "plan-plain.csv", index=False)
    assert run(monkeypatch, *command) == 2
    assert "two rows of stackelberg, seed 0" in capsys.readouterr().err
    rows.to_csv(tmp_path / "plan-plain.csv", index=False)
    (tmp_path / "plan.toml").write_text(SMALL.replace("programs = 2", "programs = 3"))
    assert run(monkeypatch, *command) == 2
    assert "of other settings" in capsys.readouterr().err


@pytest.mark.slow
def test_an_arm_that_runs_again_is_equal(tmp_path, monkeypatch):
    """With the model, its learning and its probe."""
    (tmp_path / "plan.toml").write_text(SMALL)
    (tmp_path / "preset.toml").write_text(PRESET)
    command = (tmp_path / "plan.toml", "--condition", "plain", "--workers", 1, "--arms", "shared")
    assert run(monkeypatch, *command, "--out", tmp_path / "one") == 0
    rows = pd.read_csv(tmp_path / "plan-plain.csv")
    assert rows.arm.tolist() == ["shared"]
    assert (tmp_path / "one" / "plan-plain" / "probes" / "shared-seed0.json").exists()
    assert run(monkeypatch, *command, "--again", "--out", tmp_path / "two") == 0
    pd.testing.assert_frame_equal(
        rows.drop(columns="cpu_seconds"),
        pd.read_csv(tmp_path / "plan-plain.csv").drop(columns="cpu_seconds"),
    )
