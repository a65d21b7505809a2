"""Sampler and trainer on one card, in turns, and what they use of it."""

import os
import time
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from spo_jax.errors import InputError
from spo_jax.rl.backend import share_devices
from spo_jax.rl.vllm import cards
from spo_jax.rl.vllm.policy import VllmPolicy
from tests.rl.vllm_home import PROMPTS, Home, N, groups, learn, left, trained


def on_host(policy: VllmPolicy) -> bool:
    return all(isinstance(x, np.ndarray) for x in jax.tree.leaves(policy._trainer._weights))


@pytest.mark.long
def test_server_and_trainer_take_turns_by_sleep(home: Home) -> None:
    policy = home.open(residency="sleep")
    assert on_host(policy)
    answers = policy.generate(PROMPTS, N, 0)
    metrics = policy.update(groups(answers))
    assert on_host(policy)
    assert metrics["repair/drift_mean"] < 1e-4
    for asked, group in zip(PROMPTS, policy.generate(PROMPTS, N, 1), strict=True):
        for completion in group:
            assert np.allclose(completion.logprobs, trained(policy, asked, completion), atol=1e-4)
    paths = [line["path"] for line in home.did()]
    asleep, awake = paths.index("/sleep"), paths.index("/wake_up")
    assert awake == asleep + 1  # nothing is asked of it between
    assert paths[awake + 1] == "/v1/load_lora_adapter"
    home.tell(insomnia=True)
    with pytest.raises(InputError, match="does not go to sleep; use residency restart"):
        policy.update(groups(answers))


@pytest.mark.long
def test_server_and_trainer_take_turns_by_restart(home: Home) -> None:
    policy = home.open(residency="restart", rounds=1)
    learn(policy)
    assert not left(home.pids())  # no round comes that would need it
    assert on_host(policy)
    policy.generate(PROMPTS, N, 1)
    assert len(home.pids()) == 2


@pytest.mark.long
def test_a_server_starts_again_beside_the_rest_of_the_round(home: Home) -> None:
    policy = home.open(residency="restart", rounds=2)
    learn(policy)
    until = time.monotonic() + 30
    while home.adapters("load")[2:] != ["destroy-1.1", "repair-1.1"]:  # before anything is asked
        assert time.monotonic() < until
        time.sleep(0.05)
    first, second = home.pids()
    assert not left([first])
    policy.generate(PROMPTS, N, 1)
    assert home.pids() == [first, second]
    seeds = [line["seed"] for line in home.asked("start")]
    assert len(set(seeds)) == 2  # the same random numbers would draw each round's first answers
    learn(policy)
    assert not left([second])


def test_a_run_ends_while_a_server_starts(home: Home) -> None:
    policy = home.open(residency="restart", rounds=2)
    policy._opened().begin()
    policy.close()
    policy._opened().begin()
    policy.close()
    assert not left(home.pids())


def test_a_server_that_fails_beside_a_round_is_reported_by_the_next(home: Home) -> None:
    policy = home.open(residency="restart", rounds=2, vllm_args=f"{home.arguments} --fail gone")
    policy._opened().begin()
    with pytest.raises(InputError, match="ended while it started"):
        policy.generate(PROMPTS, N, 1)


def test_the_base_goes_to_the_host_and_back_as_it_was(home: Home) -> None:
    policy = home.open()
    trainer = policy._trainer
    before = [np.array(x) for x in jax.tree.leaves(trainer._weights)]
    old = jax.tree.leaves(trainer._weights)
    trainer.to_host()
    assert all(x.is_deleted() for x in old)
    trainer.to_host()
    trainer.to_devices()
    trainer.to_devices()
    now = jax.tree.leaves(trainer._weights)
    assert all(isinstance(x, jax.Array) for x in now)
    assert all(np.array_equal(a, b) for a, b in zip(before, now, strict=True))


# --- memory ---------------------------------------------------------------------------------------

SMI = """\
#!/bin/sh
[ "$1 $2" = "-i GPU-b" ] || exit 6
read first < FILE
echo "$first"
[ $(wc -l < FILE) -gt 1 ] && sed -i 1d FILE
exit 0
"""


class Card:
    """A card that nvidia-smi knows: it says one number after another, and the last for ever."""

    def __init__(self, folder: Path) -> None:
        self._numbers = folder / "numbers"
        program = folder / "nvidia-smi"
        program.write_text(SMI.replace("FILE", str(self._numbers)))
        program.chmod(0o755)

    def say(self, *mebibytes: int) -> None:
        self._numbers.write_text("".join(f"{x}\n" for x in mebibytes))


@pytest.fixture
def card(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Card:
    folder = tmp_path_factory.mktemp("smi")
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.setattr(cards, "card", lambda: "GPU-b")
    monkeypatch.setattr(cards, "EVERY", 0.01)
    monkeypatch.setattr(cards, "TRIAL", 2**20)
    return Card(folder)


@pytest.mark.long
def test_memory_is_recorded_by_phase(home: Home, card: Card) -> None:
    card.say(5000, 20_000, 1000)
    policy = home.open()
    for (sampled, updated), rest in (((20_000, 30_000), 1000), ((8000, 9000), 500)):
        card.say(rest, sampled, rest)
        answers = policy.generate(PROMPTS, N, 0)
        card.say(rest, updated, rest)
        metrics = policy.update(groups(answers))
        assert metrics["memory/sampling_card"] == pytest.approx(sampled * 2**20 / 1e9)
        assert metrics["memory/update_card"] == pytest.approx(updated * 2**20 / 1e9)


@pytest.mark.long
def test_what_is_not_known_of_memory_is_not_recorded(
    home: Home, card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    for used in ((), (1000,)):
        card.say(*used)
        with cards.Peak() as peak:
            pass
        assert peak.most == (1000 * 2**20 if used else None)
    monkeypatch.setattr(cards, "card", lambda: "GPU-a")
    assert cards.used("GPU-a") is None
    assert not [name for name in learn(home.open()) if name.startswith("memory/")]


def test_jax_must_give_back_what_it_frees_where_turns_are_taken(home: Home, card: Card) -> None:
    card.say(600, 601)
    with pytest.raises(InputError, match=r"keeps freed memory on card GPU-b, .*residency both"):
        VllmPolicy.load(home.config(residency="restart"))
    VllmPolicy.load(home.config())
    for given_back in ((600, 601, 600), (600, 601, 601, 600), (600, 600), (600,), ()):
        card.say(*given_back)
        cards.check_given_back()


@pytest.mark.parametrize(
    ("visible", "number", "name"), [(None, 1, "1"), ("4, GPU-b", 1, "GPU-b"), ("3", 0, "3")]
)
def test_the_trainers_card(
    monkeypatch: pytest.MonkeyPatch, visible: str | None, number: int, name: str
) -> None:
    assert cards.card() is None
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    device = SimpleNamespace(local_hardware_id=number)
    monkeypatch.setattr(jax, "local_devices", lambda: [device])
    assert cards.card() == name


def test_devices_are_shared_by_every_run_with_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for in_turns, allocator in ((False, None), (True, "platform")):
        monkeypatch.setattr(os, "environ", {"CUDA_DEVICE_ORDER": "FASTEST_FIRST"})
        share_devices(in_turns)
        assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
        assert os.environ.get("XLA_PYTHON_CLIENT_ALLOCATOR") == allocator
        assert os.environ["CUDA_DEVICE_ORDER"] == "FASTEST_FIRST"  # what is said already, stays
