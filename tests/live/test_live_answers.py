"""A real vLLM server: what it answers is what the trainer takes it for."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spo_jax.cli import main
from spo_jax.constants import EMBEDDED
from spo_jax.errors import InputError
from spo_jax.rl.endpoint.request_log import REQUESTS
from spo_jax.rl.policy import model_folder
from spo_jax.rl.tokens import Tokenizer
from spo_jax.rl.vllm.client import Client
from spo_jax.rl.vllm.policy import VllmPolicy
from spo_jax.rl.vllm.replies import Sampling
from spo_jax.runs.database.store import Store
from spo_jax.runs.folders import BEST
from tests.live.serving import (
    MARKS,
    PATIENCE,
    N,
    apart,
    groups,
    note,
    opened,
    prompts,
    serving,
    stir,
)

pytestmark = MARKS


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serving(tmp_path_factory.mktemp("server")) as client:
        yield client


def test_answers_are_distinct_and_end_where_they_should(server: Client) -> None:
    tokenizer = Tokenizer.load(model_folder(EMBEDDED))
    how = Sampling(6, 1.0, 1.0, 300, tokenizer.stops, timeout=PATIENCE)
    for asked in prompts()[:3]:
        prompt = tokenizer.prompt(asked.text)
        first, other = (server.complete("base", prompt, how, tokenizer) for _ in range(2))
        assert len({c.text for c in first}) == 6
        assert not {c.text for c in first} & {c.text for c in other}
        assert all(c.tokens[-1] in tokenizer.stops for c in first)
    cut = server.complete("base", prompt, replace(how, max_new_tokens=8), tokenizer)
    assert [len(c.tokens) for c in cut] == [8] * 6
    # A character that is cut in two, and tokens that are no text: whatever comes is read.
    strange = replace(how, temperature=2.0, max_new_tokens=60)
    for found in server.complete("base", prompt, strange, tokenizer):
        assert found.text == tokenizer.decode(found.tokens)


def test_a_server_says_what_its_cache_holds(server: Client) -> None:
    cache = server.cache()
    assert cache is not None
    note(f"a cache of {cache.blocks} blocks of {cache.size} tokens")
    # A block is one of keys and values in bfloat16: of one layer here, as deep as a state.
    assert cache.blocks > 8
    assert cache.size >= 16


def test_log_probabilities_are_the_trainers_and_adapters_are_swapped(
    server: Client, tmp_path: Path
) -> None:
    """With the right weights, with the other role's, with the base, and with those before."""
    asked, sizes, before = prompts(), {}, {}
    policy = opened(tmp_path, [], seed=1, vllm_url=server.url)
    names = []
    for stage in ("first", "second"):
        answers = policy.generate(asked, N, 3)
        names.append({name for name, _ in policy._names.values()})
        assert set(server.models()) == {"base"} | names[-1]
        now = {role: learner.adapter for role, learner in policy.learners.items()}
        rivals = {
            "right": now,
            "other role": {"destroy": now["repair"], "repair": now["destroy"]},
            "base": dict.fromkeys(now),
        }
        if stage == "second":
            rivals["before"] = before
        for what, adapters in rivals.items():
            sizes[stage, what] = [
                apart(policy, prompt, completion, adapters[prompt.role])
                for prompt, group in zip(asked, answers, strict=True)
                for completion in group
            ]
        before = now
        stir(policy, 3)
        policy._publish()
    assert not names[0] & names[1]
    policy.close()
    assert server.models() == ["base"]

    how = Sampling(6, 1.0, 1.0, 300, policy._tokenizer.stops, timeout=PATIENCE)
    tokens = policy._tokenizer.prompt(asked[2].text)
    found = server.complete("base", tokens, how, policy._tokenizer)
    base = [apart(policy, asked[2], completion, None) for completion in found]
    note(f"base: {np.mean(base):.4f} nats per token from the trainer's")
    for (stage, what), size in sizes.items():
        note(
            f"{stage} adapters, compared with {what}: {np.mean(size):.4f} nats per token, "
            f"answers from {min(size):.4f} to {max(size):.4f}"
        )
    assert np.mean(base) < 0.05
    for (_, what), size in sizes.items():
        assert np.mean(size) < 0.05 if what == "right" else np.mean(size) > 1.0


@pytest.fixture(scope="module")
def learned(server: Client, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmPolicy]:
    """A policy after two updates at the preset's learning rate, whose server has its adapters."""
    asked = prompts()
    policy = opened(tmp_path_factory.mktemp("learned"), [], vllm_url=server.url)
    for number in range(3):
        answers = policy.generate(asked, N, number)
        if number < 2:
            metrics = policy.update(groups(answers, asked, number))
            for role in ("destroy", "repair"):
                assert metrics[f"{role}/ratio_mean"] == 1.0
                assert metrics[f"{role}/gradient_norm"] > 0
                drift = [metrics[f"{role}/{name}"] for name in ("drift_mean", "drift_max")]
                note(
                    f"update {number + 1}, {role}: drift {drift[0]:.4f} nats per token, at most "
                    f"{drift[1]:.3f}, effective {metrics[f'{role}/effective']:.3f}"
                )
                assert drift[0] < 0.05
    yield policy
    policy.close()


@pytest.mark.long
def test_the_probe_tells_one_update_apart(server: Client, learned: VllmPolicy) -> None:
    """Weights that differ by less than the tolerance are not taken for the right ones."""
    found = learned._probe.check(
        server, ("base", learned._base_expected), learned._expected, learned._before, 0.15, PATIENCE
    )
    note(f"probe with the right weights: {found.apart:.4f} nats per token, share {found.share:.3f}")
    assert found.apart < 0.05
    assert found.share == pytest.approx(1, abs=0.2)
    (one, own), (other, theirs) = learned._expected.items()
    shifts = {
        "the other role's": np.mean(np.abs(own.read - theirs.read)),
        "the update before": np.mean(np.abs(own.read - learned._before[one].read)),
        "the base": np.mean(np.abs(own.read - learned._base_expected.read)),
    }
    note("one adapter from " + ", ".join(f"{what}: {x:.4f}" for what, x in shifts.items()))
    assert shifts["the update before"] < 0.15  # which the tolerance alone would let through
    base = learned._base_expected
    for what, expected, before in (
        ("adapter", {one: theirs, other: own}, learned._before),
        ("the previous adapter", learned._before, learned._expected),
    ):
        with pytest.raises(InputError, match=f"are closest to those of {what}"):
            learned._probe.check(server, ("base", base), expected, before, 9.0, PATIENCE)
    with pytest.raises(InputError, match="answers without adapter base,"):
        learned._probe.check(server, ("base", base), {"base": own}, {}, 9.0, PATIENCE)


def test_the_same_server_as_an_endpoint(
    server: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    line = ["discover", "tsp", "--preset", "smoke", "--generator", "openai", "--model", "base"]
    line += ["--base-url", f"{server.url}/v1", "--max-new-tokens", "400", "--concurrency", "4"]
    line += ["--prompt-price", "2", "--completion-price", "8", "--out", str(run)]
    line += ["--prompts-style", "paper", "--mend", "0"]  # what the model that ships has learnt
    assert main(line) == 0
    shown = capsys.readouterr().out
    used = [json.loads(entry) for entry in (run / REQUESTS).read_text().splitlines()]
    prompt, done = (
        sum(entry[name] for entry in used) for name in ("prompt_tokens", "completion_tokens")
    )
    assert f"Endpoint: {prompt:,} prompt tokens, {done:,} completion tokens, cost " in shown
    with Store.reopen(run) as store:
        totals = store.totals()
    for name, value in (("prompt_tokens", prompt), ("tokens", done), ("lost", 0)):
        assert sum(totals[f"{role}/{name}"] for role in ("destroy", "repair")) == value
    assert all(entry["model"] == "base" for entry in used)
    assert (run / BEST).exists()
    note(f"endpoint: {len(used)} requests, {prompt:,} and {done:,} tokens, none lost")


def test_weights_compare_what_was_sampled(tmp_path: Path) -> None:
    """With a cap a server gives log-probabilities at the sampling temperature (processed)."""
    how = {"importance_cap": 2.0, "temperature": 0.7, "top_p": 1.0}
    policy = opened(tmp_path, [], seed=1, **how)
    asked = prompts()[:4]
    try:
        answers = policy.generate(asked, N, 0)
        cold = [apart(policy, p, c, policy.learners[p.role].adapter) for p in asked[:1]
                for c in answers[0]]  # fmt: skip
        metrics = policy.update(groups(answers, asked))
    finally:
        policy.close()
    drift, effective = (metrics[f"destroy/{name}"] for name in ("drift_mean", "effective"))
    note(
        f"processed: drift {drift:.4f} nats per token, effective {effective:.3f}; at temperature "
        f"1 {np.mean(cold):.3f}"
    )
    assert drift < 0.05
    assert np.mean(cold) > 2 * drift
