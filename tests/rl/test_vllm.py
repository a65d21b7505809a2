"""The policy that samples from a vLLM server, against a process that speaks its interface."""

import math
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from spo_jax.config import Settings
from spo_jax.errors import InputError
from spo_jax.program import Completion, Group
from spo_jax.rl.endpoint.web import Lost, Reply
from spo_jax.rl.qwen import named_config
from spo_jax.rl.tokens import Tokenizer
from spo_jax.rl.vllm.client import Cache, Client
from spo_jax.rl.vllm.policy import VllmPolicy, states_of
from spo_jax.rl.vllm.probe import CACHED, Probe
from spo_jax.rl.vllm.replies import Sampling, read_choice
from spo_jax.rl.vllm.sampler import AT_ONCE, MOST, at_once
from spo_jax.rl.vllm.server import free_port
from spo_jax.search.plugins import require_parts
from tests.rl import tiny
from tests.rl.vllm_home import PROMPTS, Home, N, groups, learn, trained

# --- answers --------------------------------------------------------------------------------------


@pytest.mark.long
def test_answers_are_those_of_each_roles_adapter_and_each_round(home: Home) -> None:
    policy = home.open(rounds=2)  # a third would load its adapters beside what is asserted here
    for _ in range(2):
        answers = policy.generate(PROMPTS, N, 7)
        for asked, group in zip(PROMPTS, answers, strict=True):
            assert len(group) == N
            for completion in group:
                tokens = completion.tokens
                assert tokens.dtype == np.int32
                assert completion.text == policy._tokenizer.decode(tokens)
                assert (tokens[-1] in policy._tokenizer.stops) or len(tokens) == 3
                assert np.allclose(
                    completion.logprobs, trained(policy, asked, completion), atol=1e-4
                )
        metrics = policy.update(groups(answers))
    for role in ("destroy", "repair"):
        assert metrics[f"{role}/ratio_mean"] == 1.0  # the trainer's own, whatever the server says
        assert metrics[f"{role}/drift_mean"] < 1e-4
        assert metrics[f"{role}/effective"] == pytest.approx(1.0)
        assert metrics[f"{role}/gradient_norm"] > 0
    assert metrics["probe"] < 1e-3
    loaded = ["destroy-0.1", "repair-0.1", "destroy-1.1", "repair-1.1"]
    assert home.adapters("load") == loaded
    assert home.adapters("unload") == loaded[:2]
    asked = Counter(line["model"] for line in home.did() if line["path"] == "/v1/completions")
    assert len(asked) == 5  # both roles' adapters twice, and the base of the probe
    assert home.messages == []


@pytest.mark.long
def test_parts_come_in_order(home: Home) -> None:
    parts = [part for part in home.open().stream(PROMPTS, N, 7) if part]
    assert [list(part) for part in parts] == [[0, 1], [2, 3]]


def test_a_system_message_and_a_warmer_draw(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[float, int]] = []

    def complete(client: Any, name: str, tokens: Any, how: Any, tokenizer: Any) -> Any:
        asked.append((how.temperature, len(tokens)))
        return (Completion("text"),) * how.n

    monkeypatch.setattr(Client, "complete", complete)
    policy = home.open()
    changed = [replace(PROMPTS[0], warmer=0.25, system="word word"), PROMPTS[0]]
    policy.generate(changed, N, 7)
    usual = policy._sampling.temperature
    assert sorted({temperature for temperature, _ in asked}) == [usual, usual + 0.25]
    longer = policy._tokenizer.prompt(PROMPTS[0].text, "word word")
    lengths = dict(asked)
    assert lengths[usual + 0.25] == len(longer) > lengths[usual]


def test_prompts_at_a_time_follow_from_the_cache() -> None:
    assert states_of(named_config("9B")) == 3
    assert states_of(tiny.config("qwen3")) == 0
    cache = Cache(1200, 528)  # an A100 of 40 GB beside the 9B: 6 blocks of tokens, 3 of states
    assert at_once(cache, 3, 6, 1500 + 1200) == 1200 // 9 // 6 == 22
    assert at_once(cache, 3, 6, 6 * 528) == 22
    assert at_once(cache, 3, 6, 6 * 528 + 1) == 1200 // 10 // 6
    assert at_once(Cache(10**6, 16), 3, 6, 2700) == MOST // 6
    assert at_once(Cache(5, 528), 3, 6, 2700) == 1  # vLLM itself waits for room
    assert at_once(None, 3, 6, 2700) == AT_ONCE


@pytest.mark.long
@pytest.mark.parametrize(
    ("cache", "own", "most"),
    [([2, 30], None, 1), ([4, 30], None, 2), ([10**6, 16], None, 4), ([4, 30], 3, 3)],
)
def test_a_server_is_asked_as_much_as_its_cache_holds(
    home: Home, monkeypatch: pytest.MonkeyPatch, cache: Any, own: Any, most: int
) -> None:
    """Answers of at most 30 tokens with their prompts, of a model without states, in twos."""
    home.tell(cache=cache, from_n=99)
    running, seen, lock = 0, [], threading.Lock()
    inner = Client.complete

    def complete(*given: Any) -> Any:
        nonlocal running
        with lock:
            running += 1
            seen.append(running)
        time.sleep(0.3)
        with lock:
            running -= 1
        return inner(*given)

    monkeypatch.setattr(Client, "complete", complete)
    policy = home.open(concurrency=own)
    policy.generate(PROMPTS, N, 0)
    assert max(seen) == most


@pytest.mark.parametrize(
    ("metric", "found"),
    [
        ('vllm:cache_config_info{block_size="16",x="}",num_gpu_blocks="3"} 1.0', None),
        ('vllm:cache_config_info{block_size="16",num_gpu_blocks="None"} 1.0', None),
        ('vllm:cache_config_info{num_gpu_blocks="9",block_size="528"} 1.0', Cache(9, 528)),
        (
            'vllm:cache_config_info{enable_prefix_caching="False",num_gpu_blocks="9",'
            'block_size="528"} 1.0',
            Cache(9, 528, prefixes=False),
        ),
        (
            'vllm:cache_config_info{enable_prefix_caching="True",num_gpu_blocks="9",'
            'block_size="528"} 1.0',
            Cache(9, 528),
        ),
        ('vllm:cache_config_info{num_gpu_blocks="0",block_size="528"} 1.0', None),
        ('x_vllm:cache_config_info{num_gpu_blocks="9",block_size="528"} 1.0', None),
        ("", None),
    ],
)
def test_what_metrics_say_of_the_cache(
    monkeypatch: pytest.MonkeyPatch, metric: str, found: Cache | None
) -> None:
    text = f"# HELP\nvllm:other 1.0\n{metric}\nvllm:more 2.0\n".encode()
    monkeypatch.setattr(Client, "_ask", lambda *given, **more: Reply(200, {}, text))
    assert Client("http://127.0.0.1:1").cache() == found


@pytest.mark.parametrize(
    ("cache", "asked"), [(None, 3), (Cache(9, 16), 3), (Cache(9, 16, prefixes=False), 1)]
)
def test_a_server_that_keeps_no_prefixes_is_asked_once(cache: Cache | None, asked: int) -> None:
    """Each prefix thrice where a cache may answer, which is what a stale one is found by."""
    places: list[int] = []

    class Scores:
        def cache(self) -> Cache | None:
            return cache

        def read(self, name: str, tokens: np.ndarray, timeout: float) -> np.ndarray:
            return np.zeros(len(tokens) - 1)

        def likely(self, name: str, tokens: np.ndarray, timeout: float) -> Any:
            places.append(len(tokens))
            return np.arange(2), np.zeros(2)

    probe = Probe(np.arange(12), (4, 8, 12), "raw_logprobs")
    readings = [*probe._readings(cast(Client, Scores()), "adapter", 1.0)]
    assert [each.what for each in readings] == ["without its cache", *[CACHED] * asked]
    assert sorted(places) == sorted([4, 8, 12] * asked)


HOW = Sampling(
    n=1, temperature=1.0, top_p=1.0, max_new_tokens=3, stop_tokens=(2,), timeout=1.0
)  # fmt: skip
GOOD = {
    "token_ids": [90, 2], "text": "word4\n", "finish_reason": "stop",
    "logprobs": {"token_logprobs": [-1.0, -2]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"text": "word5\n"}, "is not that of its tokens"),
        ({"token_ids": None}, "returns no token ids"),
        ({"token_ids": []}, "returns no token ids"),
        ({"token_ids": [90, 96]}, "token 96, which the tokenizer"),
        ({"logprobs": {"token_logprobs": [-1.0]}}, "1 log-probabilities to 2 tokens"),
        ({"logprobs": {"token_logprobs": [-1.0, None]}}, "no log-probabilities to 2 tokens"),
        ({"logprobs": {"token_logprobs": [-1.0, -math.inf]}}, "needs a finite one"),
        ({"logprobs": None}, "no log-probabilities"),
        ({"finish_reason": "length"}, "ended by 'length'"),
        ({"token_ids": [90, 90], "text": "word4\nword4\n"}, "its stop token is not in it"),
        ({"token_ids": [2, 90]}, "its stop token is not its last"),
        (
            {"token_ids": [90] * 4, "text": "word4\n" * 4, "finish_reason": "length",
             "logprobs": {"token_logprobs": [0.0] * 4}},
            "has 4 tokens; the request allows 3",
        ),
    ],
)  # fmt: skip
def test_answers_that_do_not_fit_are_refused(markov: Path, wrong: Any, why: str) -> None:
    tokenizer = Tokenizer.load(markov)
    good = read_choice(GOOD, tokenizer, HOW)
    assert (good.tokens.tolist(), good.logprobs.tolist(), good.text) == (
        [90, 2],
        [-1, -2],
        "word4\n",
    )
    with pytest.raises(InputError, match=why):
        read_choice({**GOOD, **wrong}, tokenizer, HOW)


@pytest.mark.parametrize("tokens", [[90, 2], []])
def test_an_answer_that_was_broken_off_is_none(markov: Path, tokens: list[int]) -> None:
    choice = {**GOOD, "token_ids": tokens, "finish_reason": "abort"}
    with pytest.raises(Lost, match="abort"):
        read_choice(choice, Tokenizer.load(markov), HOW)


def test_a_server_with_another_tokenizer_ends_the_run(home: Home) -> None:
    policy = home.open()
    policy.generate(PROMPTS[:1], N, 0)
    home.tell(other_text=True)
    with pytest.raises(InputError, match="is not that of its tokens"):
        policy.generate(PROMPTS, N, 0)


# --- the right weights ----------------------------------------------------------------------------


REPAIR = r"with adapter repair-2\.1-\w+, without its cache, its .* are closest to those of "


@pytest.mark.long
@pytest.mark.parametrize(
    ("what", "tolerance", "why"),
    [
        ({"stale": True}, 0.15, r"does not serve the trainer's weights.*probe_tolerance"),
        (
            {"stale": True},
            9.0,
            r"without its cache, its .* closest to those of the previous adapter",
        ),
        (
            {"stale": "cached"},
            9.0,
            r"with its cache, its .* closest to those of the previous adapter",
        ),
        ({"other": True}, 9.0, REPAIR + "adapter destroy-2"),
        ({"base": True}, 9.0, r"answers without adapter destroy-2\.1-\w+,"),
        (
            {"processed": True},
            0.15,
            r"with its cache, .* another --logprobs-mode",
        ),
        ({"wrong": 0.2}, 0.15, r"does not have the model of the trainer: .* are 0\.2 nats"),
    ],
)
def test_wrong_weights_end_the_run(home: Home, what: Any, tolerance: float, why: str) -> None:
    policy = home.open(probe_tolerance=tolerance, rounds=2)  # the third's are loaded when told to
    learn(policy)
    assert learn(policy)["probe_share"] == pytest.approx(1, abs=0.01)
    home.tell(**what)
    with pytest.raises(InputError, match=why):
        policy.generate(PROMPTS, N, 1)


@pytest.mark.long
def test_weights_compare_probabilities_of_what_was_sampled(home: Home) -> None:
    """With a cap the server gives them at the sampling temperature, of which the probe makes sure,
    so that right weights differ by rounding alone.
    """
    policy = home.open(importance_cap=2.0, top_p=1.0, temperature=0.7)
    answers = policy.generate(PROMPTS, N, 0)
    for asked, group in zip(PROMPTS, answers, strict=True):
        for one in group:
            assert one.logprobs == pytest.approx(trained(policy, asked, one, 0.7), abs=1e-4)
            assert np.abs(one.logprobs - trained(policy, asked, one)).max() > 0.01
    metrics = policy.update(groups(answers))
    assert metrics["destroy/drift_max"] < 1e-4
    assert metrics["destroy/effective"] == pytest.approx(1, abs=1e-4)
    policy.close()  # its check, in the background, tidies the folder of adapters that both have
    with home.serving(free_port()) as theirs:
        policy = home.open(importance_cap=2.0, top_p=1.0, **theirs)
        with pytest.raises(InputError, match=r"another --logprobs-mode than processed_logprobs"):
            policy.generate(PROMPTS, N, 0)


def test_weights_need_what_was_sampled(home: Home) -> None:
    with pytest.raises(InputError, match=r"importance_cap is given, .* top_p is 0\.95; use --top"):
        VllmPolicy.load(home.config(importance_cap=2.0))
    given = {"importance_cap": 2.0, "top_p": 1.0, "mended": "sample"}
    with pytest.raises(InputError, match="mended is sample, whose answers are sampled at temp"):
        VllmPolicy.load(home.config(**given))
    with pytest.raises(InputError, match="mended is sample, whose answers are sampled at temp"):
        require_parts(home.config(**given))  # before the run, as --dump-config does


@pytest.mark.slow
def test_drift_is_measured_and_can_be_corrected(home: Home) -> None:
    """Each of three tokens is 0.1 nats more likely on the server than here for a destroy, so that
    it counts exp(-0.3) of what it did, and less likely for a repair, which then counts the cap, or
    nothing; by token all count the cap.
    """
    found = {}
    modes = ("sequence-truncate", "sequence-mask", "token-truncate")
    for cap, mode in ((None, modes[0]), *((0.9, mode) for mode in modes)):
        policy = home.open(importance_cap=cap, importance_mode=mode, drift_warning=1.0, top_p=1.0)
        batch: dict[str, list[Group]] = {"destroy": [], "repair": []}
        for asked in PROMPTS:
            apart = np.float32(0.1 if asked.role == "destroy" else -0.1)
            whole = [Completion("", np.array([i, 6, 7], np.int32)) for i in (5, 9)]
            warm = policy._sampling.temperature if cap else 1.0
            group = [replace(c, logprobs=trained(policy, asked, c, warm) + apart) for c in whole]
            batch[asked.role].append(Group(asked, tuple(group), np.array([1.0, 0.5])))
        found[cap, mode] = metrics = policy.update(batch)
        for role in ("destroy", "repair"):
            assert metrics[f"{role}/drift_mean"] == pytest.approx(0.1, abs=1e-4)
            assert metrics[f"{role}/drift_max"] == pytest.approx(0.1, abs=1e-4)
            assert metrics[f"{role}/ratio_mean"] == 1.0
    whole, token = math.exp(-0.3), min(math.exp(-0.1), 0.9)
    expected = ({"destroy": whole, "repair": 0.9}, {"destroy": whole, "repair": 0},
                {"destroy": token, "repair": 0.9})  # fmt: skip
    for mode, due in zip(modes, expected, strict=True):
        for role, weight in due.items():
            plain = found[None, modes[0]][f"{role}/gradient_norm"]
            corrected = found[0.9, mode][f"{role}/gradient_norm"]
            assert corrected == pytest.approx(plain * weight, rel=1e-3)


@pytest.mark.long
def test_too_much_drift_is_reported(home: Home) -> None:
    policy = home.open(drift_warning=0.2)
    answers = policy.generate(PROMPTS, N, 0)
    policy.update(groups([[replace(c, logprobs=c.logprobs - 0.3) for c in g] for g in answers]))
    assert len(home.messages) == 2
    assert "of destroy answers are 0.3 nats per token from the trainer's" in home.messages[0]


# --- adapters -------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_name_or_folder_is_never_used_again(home: Home) -> None:
    policy, kept = home.open(), home.path / "kept"
    learn(policy)
    policy.save(kept, 1)
    learn(policy)  # and killed before it is saved
    policy.generate(PROMPTS, N, 0)
    policy.close()
    again = VllmPolicy.load(home.config(seed=9))
    again.restore(kept, 1)
    again.open(home.path, home.messages.append)
    home.opened.append(again)
    learn(again)
    again.generate(PROMPTS, N, 0)
    names = home.adapters("load")
    assert names[::2] == ["destroy-0.1", "destroy-1.1", "destroy-2.1", "destroy-1.2", "destroy-2.2"]
    assert len([n for n in home.adapters("load") if n.startswith("repair")]) == 5

    def full() -> set[str]:
        return {p.name for p in (home.path / "adapters").iterdir() if any(p.iterdir())}

    assert full() == {"destroy-2.2", "repair-2.2"}  # what is not needed takes no room
    learn(again)
    again.close()
    assert full() == {"destroy-3.1", "repair-3.1"}


def test_settings_that_do_not_go_together() -> None:
    with pytest.raises(InputError, match="give either --vllm-python PATH"):
        Settings.make(generator="vllm")
    with pytest.raises(InputError, match="give either --vllm-python PATH"):
        Settings.make(generator="vllm", vllm_python="a", vllm_url="b")
    with pytest.raises(InputError, match="not ours to start"):
        Settings.make(generator="vllm", vllm_url="b", residency="restart")
    with pytest.raises(InputError, match="vllm_devices is given, but a server at vllm_url"):
        Settings.make(generator="vllm", vllm_url="b", vllm_devices="1")
    with pytest.raises(InputError, match="importance_cap is given, but generator is model"):
        Settings.make(importance_cap=2.0)
    with pytest.raises(InputError, match="vllm_args is given, but generator is model"):
        Settings.make(vllm_args="--seed 1")
    assert Settings.make(generator="vllm", vllm_url="b").learning.update == "grpo"
