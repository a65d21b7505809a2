"""Answers are shown as they come, by a generator that takes its time over each."""

import io
import sys
import threading

import pytest
from rich.console import Console
from spo_fakes import small

import spo_jax
from spo_jax.errors import InputError
from spo_jax.program import Completion, Usage
from spo_jax.runs.display import progress
from spo_jax.runs.display.progress import Written
from tests.rl.chat_server import serving


def answer(tokens, cut=False):
    return Completion("x", usage=Usage(prompt_tokens=9, completion_tokens=tokens, cut=cut))


def test_the_line_of_a_stage():
    now = [100.0]
    written = Written(lambda: now[0])
    assert str(written) == ""
    now[0] = 109.0
    written.add(answer(90))
    assert str(written) == "1 answer, 10 tokens/s, the first after 0:09"
    now[0] = 120.0
    written.add(answer(310, cut=True))
    assert str(written) == (
        "2 answers, 20 tokens/s, the first after 0:09, 1 cut at --max-new-tokens"
    )
    written.add(Completion("", usage=Usage()))  # a server that counts no tokens
    assert str(written).startswith("3 answers, 20 tokens/s")
    written.begin()
    assert str(written) == ""
    written.add(Completion("x", usage=Usage()))
    assert str(written) == "1 answer, the first after 0:00"


def test_lines_are_written_now_and_then_and_belong_to_their_stage(monkeypatch):
    messages = []
    monkeypatch.setattr(progress, "EVERY", 0.0)
    console = Console(file=io.StringIO())
    with progress.Display(small(), messages.append, console) as display:
        display.stage(1, "destroy", 4)
        display.answered(answer(5))
        display.answered(answer(5))
        display.stage(1, "repair", 4)
        display.answered(answer(5))
        monkeypatch.setattr(progress, "EVERY", 30.0)
        display.answered(answer(5))
    lines = [line.split(" ", 2)[2] for line in messages if " answer" in line]
    assert [line[: line.index(" answer") + 7] for line in lines] == [
        "writing destroys: 1 answer", "writing destroys: 2 answer",
        "writing and evaluating repairs: 1 answer",
    ]  # fmt: skip
    assert "writing destroys: 2 answers" in console.file.getvalue()


def test_a_bar_shows_them_and_no_lines():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=200)
    messages = []
    with progress.Display(small(), messages.append, console) as display:
        display.stage(1, "destroy", 4)
        display.answered(answer(5, cut=True))
        display._bar.refresh()
    assert "1 answer" in screen.getvalue()
    assert "1 cut at --max-new-tokens" in screen.getvalue()
    assert not [line for line in messages if "answer" in line]


def test_an_endpoints_answers_are_seen_before_a_part_is_whole(tmp_path, monkeypatch):
    """The last answer of the first part waits until the display has told of another."""
    seen, shown = threading.Event(), []

    class Screen(io.StringIO):
        def write(self, text):
            shown.append(text)
            if "writing destroys: 1 answer" in text:
                seen.set()
            return len(text)

    def reply(body, count):
        if count > 1:
            assert seen.wait(30.0)
        return "Nothing."

    monkeypatch.setattr(progress, "EVERY", 0.0)
    settings = {
        "preset": "smoke", "path": tmp_path / "run", "model": "fake", "responses": 2,
        "repairs_per_destroy": 2, "mend": 0, "retries": 0, "workers": 1, "verbose": True,
        "mutation_groups": 1, "crossover_groups": 0,
    }  # fmt: skip
    with serving(reply) as server:
        monkeypatch.setattr(sys, "stdout", Screen())
        with pytest.raises(InputError, match="first round"):
            spo_jax.discover("tsp", **settings, base_url=server.url())
    assert seen.is_set()
    assert "writing destroys: 2 answers" in (tmp_path / "run/log.txt").read_text()
