"""How far adapters moved from the base: by hand, and for a run that learned."""

import fcntl
import sys
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import divergence
import spo_jax
from common import policies
from spo_jax.config import Settings
from spo_jax.program import Prompt
from spo_jax.rl.policy import Policy
from spo_jax.runs.folders import LOCK
from spo_jax.runs.run import load_run
from tests.rl import speaker


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["divergence.py", *map(str, arguments)])
    return divergence.main()


@pytest.mark.long
def test_it_is_the_divergence_of_whole_distributions(tmp_path):
    folder = speaker.write(tmp_path, ("full_attention",))
    config = Settings.make(
        generator="model", model=str(folder), max_new_tokens=5, context=60, sample_rows=4,
        lora_rank=2, lora_targets="q_proj, v_proj", share_prompts=False,
    )  # fmt: skip
    policy = Policy.load(config)
    prompt = Prompt("tsp", "repair", "initialization", "word word word")
    at_first = divergence.moved(policy, "repair", prompt, 3, 0)
    assert at_first[0] == 0  # b is zero
    assert at_first[2] == 0

    rng = np.random.default_rng(0)
    learner = policy.learners["repair"]
    adapter = jax.tree.map(lambda x: rng.normal(size=x.shape).astype(x.dtype), learner.adapter)
    policy.learners["repair"] = replace(learner, adapter=adapter)
    found = divergence.moved(policy, "repair", prompt, 3, 0)

    scaled = adapter.scaled(policy.lora.scale)
    values, entropies = [], []
    before = policy.tokens_of(prompt)
    [answers] = policy.generate([prompt], 3, 0)
    for answer in answers:
        tokens = np.concatenate([before, answer.tokens])[None].astype(np.int32)
        logits = [
            np.asarray(policy.model(tokens, np.ones_like(tokens, bool), each), np.float64)[0]
            for each in (scaled, None)
        ]
        logs = [each - np.log(np.exp(each).sum(axis=1, keepdims=True)) for each in logits]
        for place in range(len(before) - 1, tokens.size - 1):
            chance = np.exp(logs[0][place])
            values.append(chance @ (logs[0][place] - logs[1][place]))
            entropies.append(-chance @ logs[0][place])
    assert found[0] == pytest.approx(np.mean(values), rel=1e-4)
    assert found[1] == pytest.approx(np.mean(entropies), rel=1e-4)
    square = sum(
        np.linalg.norm(np.float64(each.b[i]) @ np.float64(each.a[i])) ** 2
        for layer in scaled
        for each in layer.values()
        for i in range(each.a.shape[0])
    )
    assert found[2] == pytest.approx(square**0.5, rel=1e-4)


@pytest.mark.slow
def test_a_run_that_learned_has_moved(tmp_path, monkeypatch, capsys):
    path = tmp_path / "run"
    spo_jax.discover(
        "tsp", path=path, rounds=2, mutation_groups=1, crossover_groups=0, responses=2,
        repairs_per_destroy=2, size=8, instances=1, rollouts=1, steps=3, finalists=0, kit="none",
        select="utility", generator="model", model="novice", update="grpo", max_new_tokens=64,
        failure_penalty=0.1, learning_rate=0.01, workers=1,
    )  # fmt: skip
    assert run(monkeypatch, path, "--answers", "2") == 0
    lines = capsys.readouterr().out.split("\n")
    rows = [[each.strip() for each in line.strip("|").split("|")] for line in lines if "|" in line]
    body = [row for row in rows[1:] if row[0] in ("destroy", "repair")]
    assert [row[:2] for row in body] == [[r, n] for r in ("destroy", "repair") for n in "012"]
    assert float(body[0][2]) == float(body[0][4]) == 0
    assert max(float(row[4]) for row in body) > 0
    assert run(monkeypatch, path, "--rounds", "7") == 2
    assert "no checkpoint of round 7; there are 1, 2" in capsys.readouterr().err
    assert run(monkeypatch, path, "--answers", "0") == 2


@pytest.mark.long
def test_a_run_without_adapters_is_refused(grammar_run, monkeypatch, capsys):
    assert run(monkeypatch, grammar_run) == 2
    assert "has no adapters" in capsys.readouterr().err
    assert not (grammar_run / "checkpoints").exists()


@pytest.mark.long
def test_a_run_that_goes_on_is_left_alone(grammar_run, monkeypatch, capsys):
    """Opening the checkpoints of a run would delete the one that is being written."""
    half_written = grammar_run / "checkpoints" / "1" / "arrays"
    half_written.mkdir(parents=True)
    with open(grammar_run / LOCK) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert run(monkeypatch, grammar_run) == 2
    assert "is running: wait until it ends" in capsys.readouterr().err
    assert half_written.exists()


@pytest.mark.long
def test_a_checkpoint_of_a_round_that_was_not_committed_is_none(grammar_run):
    numbers = SimpleNamespace(numbers=lambda: (1, 2))
    (grammar_run / "checkpoints").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policies, "Checkpoints", lambda _: nullcontext(numbers))
        assert policies.kept_rounds(load_run(grammar_run)) == (0, 1)
