"""What a policy writes is worth: values by hand, frozen programs, a run of the grammar."""

import math
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import policy_probe
from policy_probe import (
    DATA,
    Probe,
    differences,
    error_of_mean,
    frozen_of,
    kept,
    read,
    reliability,
    uses_kit,
)
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.errors import InputError
from spo_jax.program import Completion, Program
from spo_jax.runs.run import load_run
from spo_jax.search.writing.prompts import templates_of

NAN = math.nan


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["policy_probe.py", *map(str, arguments)])
    return policy_probe.main()


def named(number, role="destroy"):
    return Program(role, f"def {role}(): return {number}", "")


def test_a_response_is_chosen_on_one_half_and_scored_on_the_other():
    scores = np.array([
        [[1.0, 2.0, 3.0, 4.0], [0.0, 9.0, 0.0, 9.0]],  # halves: means 2, 3 and 0, 9
        [[5.0, 1.0, 5.0, 1.0], [9.0, NAN, 9.0, 9.0]],  # the second fails once, so it is no response
        [[NAN] * 4, [1.0, 1.0, NAN, 1.0]],
    ])  # fmt: skip
    probe = Probe("destroy", (named(1), named(2), None), scores, 3)
    one, two = np.array([0, 2]), np.array([1, 3])
    np.testing.assert_array_equal(probe.value(one, two), [3, 1, NAN])
    np.testing.assert_array_equal(probe.value(two, one), [0, 5, NAN])
    np.testing.assert_array_equal(probe.values(), [1.5, 3, NAN])
    found = probe.summary()
    assert found["failed"] == pytest.approx(1 / 3)
    assert found["worth"] == pytest.approx((1.5 + 3 + 0) / 3)
    assert found["valid_ones"] == pytest.approx(2.25)
    assert (found["answers"], found["different"]) == (3, 2)


def test_noise_alone_is_worth_its_mean():
    """The maximum of noise would flatter by about 1.6 deviations."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(400, 12, 8))
    found = Probe("destroy", (None,) * 400, scores, 400).summary()
    assert abs(found["worth"]) < 4 * found["worth_error"]
    assert scores.mean(axis=2).max(axis=1).mean() > 0.5


def test_the_error_is_that_of_draws_for_given_prompts():
    rng = np.random.default_rng(1)
    levels = np.repeat([0.0, 100.0, 200.0], 4)  # of the prompts
    drawn = [(levels + rng.normal(size=12)).mean() for _ in range(4000)]
    errors = [error_of_mean(levels + rng.normal(size=12), 4) for _ in range(400)]
    assert np.mean(errors) == pytest.approx(np.std(drawn), rel=0.05)
    assert math.isnan(error_of_mean(levels, 1))


def test_reliability_is_that_of_the_mean_of_two():
    rng = np.random.default_rng(2)
    true = rng.normal(size=20_000)
    ways = true[:, None] + rng.normal(size=(20_000, 2))
    due = np.corrcoef(ways.mean(axis=1), true)[0, 1] ** 2
    assert reliability(ways) == pytest.approx(due, abs=0.02)
    assert reliability(ways * [1, -1]) == 0
    assert math.isnan(reliability(ways[:2]))
    assert math.isnan(reliability(np.ones((5, 2))))


@pytest.mark.long
@pytest.mark.parametrize("partners", [2, 12])
def test_noise_is_not_reliable_and_levels_are(partners):
    """Not even where all partners but one are out of the question, or a response is chosen."""
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(4000, partners, 8))
    programs = tuple(map(named, range(4000)))
    assert Probe("destroy", programs, scores, 4000).reliability() < 0.1
    scores += 3 * rng.normal(size=(4000, 1, 1))
    assert Probe("destroy", programs, scores, 4000).reliability() > 0.9
    assert math.isnan(Probe("destroy", programs, scores[..., :3], 4000).reliability())


def test_a_repair_counts_once_for_each_destroy_that_it_answers():
    rng = np.random.default_rng(6)
    same, other = named(1, "repair"), named(2, "repair")
    scores = rng.normal(size=(6, 1, 8))
    ways = np.stack([scores[:, 0, part::2].mean(axis=1) for part in (0, 1)], axis=1)
    own = ways.reshape(2, 3, 2) - ways.reshape(2, 3, 2).mean(axis=1, keepdims=True)
    found = Probe("repair", (same, other, same, same, other, other), scores, 3).reliability()
    left = own.reshape(6, 2)[[0, 1, 3, 4]]
    assert found == pytest.approx(reliability(left))


def test_prompts_that_differ_make_nothing_reliable():
    rng = np.random.default_rng(3)
    scores = 100.0 * np.repeat(np.arange(8), 50)[:, None, None] + rng.normal(size=(400, 1, 4))
    programs = tuple(named(i, "repair") for i in range(400))
    assert Probe("repair", programs, scores, 50).summary()["reliability"] < 0.2
    assert Probe("repair", programs, scores, 400).summary()["reliability"] > 0.99


@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
@pytest.mark.parametrize("kit", [True, False])
def test_frozen_programs_of_the_data_that_ship(problem, kit):
    path = DATA / f"{problem}-rounds-v1.npz"
    found = frozen_of(path, 12, kit)
    for role, members in (("destroy", found.destroys), ("repair", found.repairs)):
        assert {each.role for each in members} == {role}
        assert len({each.digest for each in members}) == 12
        assert any(map(uses_kit, members)) == kit
    with pytest.raises(InputError, match="without failures" + (" and" if not kit else "")):
        frozen_of(path, 99, kit)


def test_arms_are_paired_by_seed():
    """Seeds differ by far more than arms; b is ahead by 0.01 give or take, c is level."""
    rng = np.random.default_rng(4)
    rows = []
    for seed in range(8):
        level = rng.normal()
        for arm, ahead, noise in (("a", 0, 0), ("b", 0.01, 0.001), ("c", 0, 0.0002)):
            for role in ("destroy", "repair"):
                worth = level + ahead + noise * rng.normal()
                rows.append({"run": f"{arm}-seed{seed}", "round": 5, "role": role, "worth": worth})
    frame = pd.DataFrame(rows)
    lines = differences(frame, 0.002).strip().splitlines()
    assert len(lines) == 2 + 4
    for line in lines[2:]:
        role, number, arm, seeds, difference, p, _, excluded = line.strip("| ").split(" | ")
        table = frame[frame.role == role].assign(arm=frame.run.str[0], seed=frame.run.str[-1])
        table = table.pivot(index="seed", columns="arm", values="worth")
        away = table[arm] - table["a"]
        found = stats.ttest_rel(table[arm], table["a"])
        low, high = found.confidence_interval()
        assert (number, seeds) == ("5", "8")
        assert difference == f"{away.mean():+.4f} ({low:+.4f} to {high:+.4f})"
        assert float(p) >= found.pvalue - 1e-3
        assert excluded == ("yes" if arm == "c" else "no")
        assert (float(p) < 0.05) == (arm == "b")
    late = frame.assign(round=np.where(frame.run.str.startswith("a"), 4, 5))
    assert differences(late, 0.002) == ""  # the first arm has no such round
    assert differences(frame.assign(round=0), 0.002) == ""
    alone = differences(frame[frame.run.str.startswith("a")], 0.002)
    assert alone == differences(frame.assign(run="mine"), 0.002) == ""


def test_what_is_no_program_has_a_place_and_no_score():
    """Of four answers one has no program, one is refused, and two are the same."""
    good = "STRATEGY: keep\nCODE:\n```python\ndef destroy(dist, current_tour, steps, rng):\n"
    good += "    return list(current_tour[1:]), [current_tour[0]]\n```"
    bad = good.replace("    return", "    import os\n    return")
    texts = [good, "no program", bad, good]

    class Fixed:
        def generate(self, prompts, n, seed):
            return [tuple(Completion(text) for text in texts[:n]) for _ in prompts]

    problem = get_problem("tsp")
    prompt = templates_of("tsp", False).render("tsp", "destroy", "initialization", [], None)
    frozen = frozen_of(DATA / "tsp-rounds-v1.npz", 2, False)
    config = SimpleNamespace(evaluation=SimpleNamespace(rollouts=1, steps=5, utility="improvement"))
    with LocalEvaluator(problem, 1, seed=0) as evaluator:
        found = policy_probe.written(Fixed(), [prompt], 4, 0, evaluator)
        assert [each is None for each in found] == [False, True, True, False]
        pairs = [each and policy_probe.Pair(each, frozen.repairs[0]) for each in found]
        scores = policy_probe.played(
            SimpleNamespace(config=config), pairs, problem.sample(10, 3, 0), evaluator
        )
        nothing = policy_probe.played(
            SimpleNamespace(config=config), [None], problem.sample(10, 3, 0), evaluator
        )
        twice = SimpleNamespace(rollouts=2, steps=5, utility="improvement")
        means = policy_probe.played(
            SimpleNamespace(config=SimpleNamespace(evaluation=twice)), pairs[:1],
            problem.sample(10, 3, 0), evaluator,
        )  # fmt: skip
    assert scores.shape == (4, 3)
    assert means.shape == (1, 3)
    assert not np.array_equal(means[0], scores[0])
    assert np.isfinite(scores[[0, 3]]).all()
    np.testing.assert_array_equal(scores[0], scores[3])
    assert np.isnan(scores[[1, 2]]).all()
    assert np.isnan(nothing).all()


def test_a_file_gives_back_what_it_was_given(tmp_path):
    scores = np.array([[[0.1, NAN]], [[0.3, 0.4]]])
    probe = Probe("repair", (named(1, "repair"), None), scores, 2)
    path = tmp_path / "a-1.json"
    path.write_text(kept([probe], {"seed": 0}))
    [found] = read(path, {"seed": 0})
    assert (found.role, found.programs, found.count) == (probe.role, probe.programs, probe.count)
    np.testing.assert_array_equal(found.scores, scores)
    with pytest.raises(InputError, match="use another --out"):
        read(path, {"seed": 1})
    for text in ("{}", "[]", '{"asked": 1, "roles": [{}]}'):
        path.write_text(text)
        with pytest.raises(InputError, match="no file of a probe"):
            read(path, {"seed": 0})


def test_policies_that_it_cannot_have(tmp_path):
    for name, status, message in (
        ("vllm", "finished", "sampled by vLLM"), ("model", "running", "is running"),
    ):  # fmt: skip
        config = SimpleNamespace(generator=SimpleNamespace(name=name))
        run = SimpleNamespace(path=tmp_path, config=config, status=status)
        with pytest.raises(InputError, match=message):
            policy_probe.policy_at(run, 0)


@pytest.mark.slow
def test_a_run_of_the_grammar(grammar_run, tmp_path, monkeypatch, capsys):
    flags = ("--run", grammar_run, "--programs", 4, "--partners", 2, "--instances", 2,
             "--out", tmp_path / "out")  # fmt: skip
    assert run(monkeypatch, *flags, "--rounds", 0) == 0
    first = capsys.readouterr().out
    assert "| run | 0 | destroy | 4 |" in first
    assert "| run | 0 | repair | 4 |" in first
    assert [(each.round, each.role, each.answers) for each in load_run(grammar_run).probes] == [
        (0, "destroy", 4), (0, "repair", 4),
    ]  # fmt: skip
    monkeypatch.setattr(policy_probe, "probed", None)  # what is there is not made again
    assert run(monkeypatch, *flags, "--rounds", 0) == 0
    assert capsys.readouterr().out == first
    monkeypatch.undo()
    assert run(monkeypatch, *flags) == 2
    assert "no checkpoint of round 1; there are none" in capsys.readouterr().err
    assert run(monkeypatch, *flags, "--run", grammar_run, grammar_run) == 2
    assert "names of their own" in capsys.readouterr().err
    manifest = grammar_run / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"created": "2', '"created": "3'))
    assert run(monkeypatch, *flags, "--rounds", 0) == 2  # a run that was made anew
    assert "another run" in capsys.readouterr().err


@pytest.mark.parametrize(("flags", "message"), [
    (["--run", "nosuch"], "no such run folder"),
    (["--run", "nosuch", "--programs", 1], "at least 2"),
    (["--run", "nosuch", "--instances", 7], "even number"),
    (["--run", "nosuch", "--exclude", 0], "--exclude is 0"),
])  # fmt: skip
def test_what_it_refuses(monkeypatch, capsys, tmp_path, flags, message):
    assert run(monkeypatch, *flags, "--out", tmp_path) == 2
    assert message in capsys.readouterr().err
