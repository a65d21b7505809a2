"""A real vLLM server that is killed, that ends between rounds, and that cannot start."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from spo_jax.errors import InputError
from tests.live.serving import (
    MARKS,
    N,
    apart,
    descendants,
    groups,
    groups_of,
    left,
    note,
    opened,
    prompts,
)

pytestmark = MARKS


def processes(policy: Any) -> set[int]:
    """The process groups of a policy's server, which is not the group of its guard."""
    guard = policy._sampler._server._guard.pid
    return groups_of(descendants(guard))


@pytest.mark.long
def test_a_killed_server_is_made_good_and_leaves_the_card_between_rounds(tmp_path: Path) -> None:
    asked, messages = prompts(), []
    # What stirred adapters write hardly ever ends by itself, so a kill comes in the middle.
    policy = opened(tmp_path, messages, seed=1, residency="restart", temperature=1.5, top_p=1.0)
    try:
        policy.generate(asked[:1], N, 0)
        first = processes(policy)
        assert len(first) == 1
        answers: dict[int, Any] = {}
        killed = False
        for part in policy.stream(asked, N, 1):
            answers |= part
            if not killed:
                assert not answers
                os.killpg(*first, signal.SIGKILL)
                killed = True
        assert killed
        assert sorted(answers) == list(range(len(asked)))
        assert [len(group) for group in answers.values()] == [N] * len(asked)
        assert [line for line in messages if "it is started again" in line]
        note(f"after a kill in mid-round: {messages[0]}")
        assert not left(first)
        second = processes(policy)
        assert second != first

        found = [answers[i] for i in range(len(asked))]
        metrics = policy.update(groups(found, asked))
        assert not left(second)  # the card is the trainer's
        for role in ("destroy", "repair"):
            assert metrics[f"{role}/drift_mean"] < 0.05
            assert metrics[f"{role}/gradient_norm"] > 0
        for prompt, group in zip(asked, policy.generate(asked, N, 2), strict=True):
            adapter = policy.learners[prompt.role].adapter
            assert all(apart(policy, prompt, answer, adapter) < 0.1 for answer in group)
        third = processes(policy)
        assert third != second
    finally:
        policy.close()
    assert not left(first | second | third)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"vllm_args": "--no-such-flag 1"}, "unrecognized arguments: --no-such-flag"),
        pytest.param(
            {"vllm_args": "--kv-cache-memory-bytes 1000000000000000"},
            "ValueError: .*memory",
            marks=pytest.mark.long,
        ),
        ({"residency": "sleep"}, "Sleep mode is not supported on current platform"),
    ],
)
def test_a_server_that_cannot_start_says_why(tmp_path: Path, given: Any, why: str) -> None:
    policy = opened(tmp_path, [], **given)
    try:
        with pytest.raises(InputError, match=rf"ended while it started; .*vllm\.log ends: .*{why}"):
            policy.generate(prompts()[:1], N, 0)
        assert not policy._sampler._server.alive()
    except BaseException:
        print((tmp_path / "vllm.log").read_text()[-3000:])
        raise
    finally:
        policy.close()
