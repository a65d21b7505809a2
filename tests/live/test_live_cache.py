"""A real vLLM server that caches the beginnings of prompts: where an adapter's are stale."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from spo_jax.errors import InputError
from spo_jax.rl.peft import export_peft
from spo_jax.rl.vllm.client import Client
from spo_jax.rl.vllm.policy import VllmPolicy
from spo_jax.rl.vllm.probe import Expected
from tests.live.serving import MARKS, PATIENCE, note, opened, serving, stir

# A hazard of vLLM itself, at the version that is pinned: no need to see it again in each CI run.
pytestmark = [*MARKS, pytest.mark.slow]

CACHING = "--enable-prefix-caching --enable-chunked-prefill --enable-prompt-tokens-details"


def test_a_name_that_is_used_again_has_stale_beginnings(tmp_path: Path) -> None:
    """The hazard that versioned names are for, and that the probe sees it."""
    with serving(tmp_path, CACHING) as server:
        policy = opened(tmp_path, [], seed=1, vllm_url=server.url)
        base = ("base", policy._base_expected)
        one, two = tmp_path / "one", tmp_path / "two"
        old = exported(policy, one)
        stir(policy, 5)
        new = exported(policy, two)

        def check(expected: Expected) -> None:
            policy._probe.check(server, base, {"used": expected}, {}, 9.0, PATIENCE)

        server.load("used", str(one))
        check(old)
        size = cached(server, policy)
        assert size > 0
        server.unload("used")
        shutil.rmtree(one)
        shutil.copytree(two, one)
        server.load("used", str(one))
        tokens, places = policy._probe.tokens, policy._probe.places
        afresh = np.mean(np.abs(server.read("used", tokens, PATIENCE) - new.read))
        assert afresh < 0.1  # the new weights are there
        first = next(i for i, place in enumerate(places) if place > size)  # where most is stale
        ids, logprobs = server.likely("used", tokens[: places[first]], PATIENCE)
        far, near = (np.mean(np.abs(logprobs - e.next[first, ids])) for e in (new, old))
        note(
            f"a folder that was written over, with a block from before in the cache: "
            f"{far:.3f} nats per token from its weights, {near:.3f} from those before; "
            f"without the cache {afresh:.4f}"
        )
        assert far > 10 * afresh
        with pytest.raises(InputError, match=r"adapter used, with its cache, .* nats per token"):
            policy._probe.check(server, base, {"used": new}, {}, 0.15, PATIENCE)
        server.reset_cache()  # the same name and folder are right once nothing is left from before
        policy._probe.check(server, base, {"used": new}, {"used": old}, 0.15, PATIENCE)
        server.unload("used")

        # The same weights under names that the run makes.
        for seed in (1, 5, 1):
            stir(policy, seed)
            policy._publish()
            found = policy._opened().steadily(lambda client: measured(client, policy))
            assert found < 0.1
        policy.close()


def exported(policy: VllmPolicy, folder: Path) -> Expected:
    """Write the destroy adapter; what the trainer says with it."""
    learner = policy.learners["destroy"]
    export_peft(learner.adapter, policy.lora, policy._shape, folder)
    return policy._probe.expect(policy._trainer, learner)


def cached(server: Client, policy: VllmPolicy) -> int:
    """Tokens of the probe that the server need not compute again."""
    body = {"model": "used", "prompt": policy._probe.tokens.tolist(), "max_tokens": 1}
    found = json.loads(server._ask("POST", "/v1/completions", body, timeout=PATIENCE).data)
    size = int(found["usage"]["prompt_tokens_details"]["cached_tokens"])
    note(f"{size} of the probe's {len(policy._probe.tokens)} tokens come from the cache")
    return size


def measured(client: Client, policy: VllmPolicy) -> float:
    """The worst reading of the adapters that the run has published, caches included."""
    return policy._probe.check(
        client, ("base", policy._base_expected), policy._expected, policy._before, 0.15, PATIENCE
    ).apart
