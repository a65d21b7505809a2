"""A run behind a language model that writes nothing valid in its first round stops there."""

import pytest

import spo_jax
from spo_jax.cli import main
from spo_jax.errors import InputError
from spo_jax.runs.run import load_run
from tests.rl.chat_server import serving

ASKED = {
    "preset": "smoke", "generator": "openai", "model": "fake", "rounds": 2, "workers": 1,
    "size": 8, "validation_size": 8, "steps": 5, "validation_steps": 5, "mend": 0,
    "kit": "none", "retries": 0,
}  # fmt: skip
DESTROY = "```python\ndef destroy(dist, tour, z, rng):\n    return tour[2:], tour[:2]\n```"
REPAIR = "```python\ndef repair(dist, tour, removed, z, rng):\n    return tour + removed\n```"
LOST = REPAIR.replace(" + removed", "")


def role(body):
    return "destroy" if "Write one new destroy" in body["messages"][0]["content"] else "repair"


def discover(path, reply, **more):
    with serving(reply) as server:
        found = spo_jax.discover("tsp", **{**ASKED, **more}, base_url=server.url(), path=path)
    return found, server


def test_nothing_but_prose_stops_the_run_with_what_to_try(tmp_path, capsys):
    with pytest.raises(InputError) as raised:
        discover(tmp_path / "run", lambda body, count: "I would remove some nodes.")
    message = str(raised.value)
    assert message.startswith("no answer of the first round is a valid program")
    assert "of 6 answers with a destroy 0 hold a program, and 0 passed the gate" in message
    assert "of 0 answers with a repair 0" in message
    assert "6 times destroy unparsable: no function named destroy" in message
    assert "mend 1 or another model" in message
    assert "prompts_style" not in message
    assert "resume=True goes on" in message
    run = load_run(tmp_path / "run")
    assert run.rounds == 1
    assert run.best is None
    assert len(run.failures) == 6


def test_pairs_that_fail_stop_it_and_paper_prompts_are_named(tmp_path):
    def reply(body, count):
        return DESTROY if role(body) == "destroy" else LOST

    with pytest.raises(InputError) as raised:
        discover(tmp_path / "run", reply, prompts_style="paper")
    message = str(raised.value)
    assert "of 6 answers with a destroy 6 hold a program, and 6 passed the gate" in message
    assert "of 4 answers with a repair 4 hold a program, and 4 passed the gate" in message
    assert "prompts_style frame" in message


@pytest.mark.long
def test_it_goes_on_where_it_is_told_to(tmp_path, capsys):
    with pytest.raises(InputError):
        discover(tmp_path / "run", lambda body, count: "Nothing.")

    def better(body, count):
        return DESTROY if role(body) == "destroy" else REPAIR

    with serving(better) as server:
        args = ["discover", "--resume", str(tmp_path / "run"), "--base-url", server.url()]
        assert main(args) == 0
    run = load_run(tmp_path / "run")
    assert (run.rounds, run.status) == (2, "finished")
    assert run.best is not None


def test_one_valid_pair_is_enough(tmp_path):
    answers = {"destroy": 0, "repair": 0}

    def reply(body, count):
        answers[role(body)] += 1
        if answers[role(body)] > 1:
            return "Nothing."
        return DESTROY if role(body) == "destroy" else REPAIR

    found, _ = discover(tmp_path / "run", reply, concurrency=1, rounds=1)
    assert found.best is not None


@pytest.mark.parametrize("method", ["eoh", "best-of-n"])
def test_other_methods_stop_too(tmp_path, method):
    with pytest.raises(InputError, match="no answer of the first round is a valid program"):
        discover(
            tmp_path / "run", lambda body, count: "Nothing.", method=method, pairs=8,
        )  # fmt: skip
