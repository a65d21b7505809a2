"""A vLLM server that crashes, hangs, refuses or does not start."""

import re
import time
from pathlib import Path

import pytest

from spo_jax.errors import InputError
from spo_jax.rl.vllm.sampler import RESTARTS
from spo_jax.rl.vllm.server import LOG, ending
from tests.rl.vllm_home import PROMPTS, Home, N, learn, left


@pytest.mark.long
def test_a_crash_in_mid_call_is_made_good(home: Home) -> None:
    policy = home.open()
    learn(policy)
    expected = policy.generate(PROMPTS, N, 5)
    home.tell(crash=True, once=True)
    found = policy.generate(PROMPTS, N, 5)
    for one, other in zip(expected, found, strict=True):
        assert [c.text for c in one] == [c.text for c in other]
    assert len(home.pids()) == 2
    assert not left(home.pids()[:1])
    assert home.adapters("load")[-2:] == ["destroy-1.1", "repair-1.1"]
    assert "it is started again" in home.messages[0]


@pytest.mark.long
def test_a_server_that_always_crashes_ends_the_run(home: Home) -> None:
    policy = home.open()
    home.tell(crash=True)
    why = rf"was started {RESTARTS} times without giving an answer; .*{LOG} ends: .*on fire"
    with pytest.raises(InputError, match=why):
        policy.generate(PROMPTS[:1], N, 0)
    assert len(home.pids()) == RESTARTS + 1


@pytest.mark.slow
def test_a_request_that_hangs_is_repeated(home: Home) -> None:
    policy = home.open(request_timeout=0.5)
    home.tell(hang=True, once=True)
    assert len(policy.generate(PROMPTS[:1], N, 0)[0]) == N
    assert len(home.pids()) == 1
    home.tell(hang=True)
    why = rf"gave no answer within 0\.5 s and was started {RESTARTS} times without giving an answer"
    with pytest.raises(InputError, match=why):
        policy.generate(PROMPTS[:1], N, 0)
    assert len(home.pids()) == RESTARTS + 1


@pytest.mark.long
def test_a_server_that_hangs_is_started_again(home: Home) -> None:
    policy = home.open(request_timeout=0.5)
    expected = policy.generate(PROMPTS, N, 0)
    home.tell(hang=True, pid=home.pids()[0])
    found = policy.generate(PROMPTS, N, 0)
    assert [[c.text for c in g] for g in found] == [[c.text for c in g] for g in expected]
    assert home.messages == ["The vLLM server gave no answer within 0.5 s; it is started again"]
    assert len(home.pids()) == 2


@pytest.mark.long
def test_an_answer_that_was_broken_off_is_asked_for_again(home: Home) -> None:
    policy = home.open()
    expected = policy.generate(PROMPTS[:1], N, 0)
    home.tell(abort=True, once=True)
    assert [c.text for c in policy.generate(PROMPTS[:1], N, 0)[0]] == [c.text for c in expected[0]]
    home.tell(abort=True)
    with pytest.raises(InputError, match=r"broke off an answer \(abort\), 2 times in a row"):
        policy.generate(PROMPTS[:1], N, 0)


@pytest.mark.long
def test_errors_are_repeated_and_refusals_are_not(home: Home) -> None:
    policy = home.open()
    home.tell(status=500, once=True)
    assert len(policy.generate(PROMPTS[:1], N, 0)[0]) == N
    home.tell(status=500)
    with pytest.raises(InputError, match="answered 500: I would rather not, 2 times in a row"):
        policy.generate(PROMPTS[:1], N, 0)
    home.tell(status=400)
    before = len(home.did())
    with pytest.raises(InputError, match=r"refuses /v1/completions \(400: I would rather not\)"):
        policy.generate(PROMPTS[:1], N, 0)
    assert len(home.did()) == before + 1


@pytest.mark.long
def test_a_server_that_does_not_start(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = home.open(vllm_args=home.arguments + " --fail 'no card is there'")
    for count in (1, 2):  # once for all that wait, and again when it is asked for again
        with pytest.raises(InputError, match=r"ended while it started; .*ends: no card is there"):
            policy.generate(PROMPTS, N, 0)
        assert len(home.asked("start")) == count
    home.tell(ill=True)
    policy = home.open(vllm_startup=1.0)
    with pytest.raises(InputError, match=r"not ready within 1 s \(vllm_startup\)"):
        policy.generate(PROMPTS[:1], N, 0)
    assert not policy._sampler._server.alive()
    with pytest.raises(InputError, match="vllm_python is nowhere/python, which is not a program"):
        home.open(vllm_python="nowhere/python")


def test_a_probe_that_fails_is_not_repeated(home: Home) -> None:
    policy = home.open()
    home.tell(wrong=0.2)
    with pytest.raises(InputError, match="does not have the model of the trainer"):
        policy.generate(PROMPTS, N, 0)
    assert len(home.asked("/v1/completions")) == 1


OUTPUT = """\
(APIServer pid=1) INFO 11-21 23:15:41 [api_utils.py:286] non-default args: {}
/lib/api_server.py:51: DeprecationWarning: say it in another way
(VllmWorker-0 pid=3) ERROR 11-21 23:16:04 [multiproc_executor.py:953]     raise ValueError(
(VllmWorker-0 pid=3) ERROR 11-21 23:16:04 [multiproc_executor.py:953] ValueError: no memory
(EngineCore pid=2) ERROR 11-21 23:16:07 [core.py:1510] Traceback (most recent call last):
(EngineCore pid=2) ERROR 11-21 23:16:07 [core.py:1510] Exception: see stack trace for root cause.
  File "multiprocessing/process.py", line 314, in _bootstrap
    self.run()
(APIServer pid=1) INFO 11-21 23:15:41 [api_utils.py:286]
(APIServer pid=1) INFO 11-21 23:15:41 [core.py:2] one
two
three
four
RuntimeError: See root cause above.
INFO:     Application shutdown complete.
nanobind: leaked 4 instances!
/lib/resource_tracker.py:254: UserWarning: there appear to be 2 leaked semaphores
"""
INVALID = """\
pydantic.ValidationError: 1 validation error for ModelConfig
  Value error, Sleep mode is not supported on current platform.
    For further information visit the manual
"""


def test_an_error_shows_what_it_came_from() -> None:
    log, cause = Path("log"), "ValueError: no memory / Exception: see stack trace for root cause."
    end = "four / RuntimeError: See root cause above."
    assert ending(log, OUTPUT) == f"; log ends: {cause} / ... / {end}"
    quiet = re.sub("(Error|Exception):", r"\1", OUTPUT)
    end = "one / two / three / four / RuntimeError See root cause above."
    assert ending(log, quiet) == f"; log ends: Exception see stack trace for root cause. / {end}"
    first, second, _ = map(str.strip, INVALID.splitlines())
    assert ending(log, INVALID) == f"; log ends: {first} / {second}"
    assert ending(log, " \n") == "; log is empty"


def test_closing_does_not_wait_for_a_probe_without_an_answer(home: Home) -> None:
    home.tell(hang=True, from_n=1)
    policy = home.open(request_timeout=50.0)
    answers = policy.stream(PROMPTS, N, 0)  # what Ctrl-C interrupts is not closed before the policy
    assert next(answers) == {}
    while not home.asked("/v1/completions"):
        time.sleep(0.01)
    began = time.monotonic()
    policy.close()
    assert time.monotonic() - began < 5
    assert len(home.pids()) == 1


@pytest.mark.long
def test_who_leaves_early_does_not_wait(home: Home) -> None:
    policy = home.open(request_timeout=50.0)
    policy.generate(PROMPTS, N, 0)
    home.tell(hang=True)
    answers = policy.stream(PROMPTS, N, 0)
    assert next(answers) == {}
    began = time.monotonic()
    answers.close()
    assert time.monotonic() - began < 2
    home.misbehave.unlink()
    assert len(policy.generate(PROMPTS, N, 0)) == len(PROMPTS)  # it can go on
