"""The funnel of a run's answers, as counted by hand."""

import itertools

import pytest

import spo_jax
from spo_jax.runs.display import funnel as funnels
from spo_jax.runs.display.funnel import Forms, funnel
from spo_jax.runs.report.failures import page
from spo_jax.runs.report.figures import Figures
from spo_jax.runs.run import load_run
from tests.rl.chat_server import serving
from tests.search.test_first_round import ASKED, role

D = "def destroy(dist, tour, z, rng):\n    return tour[{n}:], tour[:{n}]\n"
RENAMED = "# mine\ndef destroy(d, t, s, r):\n    return t[1:], t[:1]  # one\n"
REFUSED = "def destroy(dist, tour, z, rng):\n    import os\n    return tour[1:], tour[:1]\n"
FAILS = "def destroy(dist, tour, z, rng):\n    return tour, []\n"
R = "def repair(dist, tour, removed, z, rng):\n    return tour + removed\n"
SHORT = "def repair(dist, tour, removed, z, rng):\n    return list(tour)\n"
# Six destroys of a round: two copies of a program, one failing, one refused, one of prose.
DESTROYS = [D.format(n=1), D.format(n=1), RENAMED, FAILS, REFUSED, "I remove nodes."]


def reply():
    places = itertools.cycle(DESTROYS)
    repairs = itertools.cycle([R, SHORT])
    return lambda body, count: next(places if role(body) == "destroy" else repairs)


def discover(path, **more):
    given = {**ASKED, "prompts_style": "paper", "concurrency": 1, "verbose": True, **more}
    with serving(reply()) as server:
        return spo_jax.discover("tsp", **given, base_url=server.url(), path=path)


@pytest.mark.long
def test_the_stages_of_two_rounds(tmp_path, capsys):
    run = discover(tmp_path / "run")
    first, repairs, second, _ = funnel(run)
    assert (first.round, first.role, first.answers) == (1, "destroy", 6)
    assert (first.parsed, first.passed, first.new, first.copies) == (5, 4, 2, 2)
    assert first.valid == 1  # the other new one removes nothing
    # Three different sources passed, four repairs each, of two forms; the rest are copies.
    assert (repairs.role, repairs.answers, repairs.parsed, repairs.passed) == ("repair", 12, 12, 12)
    assert (repairs.new, repairs.copies, repairs.valid) == (2, 10, 1)
    assert (second.round, second.passed, second.new, second.copies) == (2, 4, 0, 4)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("round ")]
    assert "copies 75%" in lines[0]  # 12 of 16
    assert "copies 100%" in lines[1]
    rows = page(run, Figures())["answers"]
    assert rows[0] == (1, "destroy", 6, 5, 4, 2, 2, 1)


@pytest.mark.long
def test_a_run_that_goes_on_knows_its_earlier_programs(tmp_path, capsys):
    discover(tmp_path / "run", finalists=0, select="utility")
    with serving(reply()) as server:
        spo_jax.discover(path=tmp_path / "run", resume=True, rewind=1, verbose=True,
                         base_url=server.url())  # fmt: skip
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("round 2")]
    assert ["copies 100%" in line for line in lines] == [True, True]


def test_of_very_many_programs_the_sources_are_compared(tmp_path, monkeypatch):
    run = discover(tmp_path / "run")
    monkeypatch.setattr(funnels, "MOST", 3)
    assert funnel(load_run(run.path))[0].new == 3


@pytest.mark.parametrize("close", [True, False])
def test_forms_are_known_by_role_and_what_cannot_be_read_by_its_source(close):
    forms = Forms(close)
    broken = [("destroy", "def f("), ("destroy", "def f("), ("repair", "def f(")]
    assert len(forms.add(broken)) == 2
    assert len(forms.add([("destroy", D.format(n=1)), ("destroy", RENAMED)])) == 2 - close
    assert forms.add([("repair", "def f("), ("destroy", RENAMED)]) == set()


def test_a_mended_answer_stands_in_the_place_of_the_first_one(tmp_path):
    """Each destroy of prose comes back as a program, each refused one refused again."""
    plain = reply()

    def mending(body, count):
        if len(body["messages"]) == 1:
            return plain(body, count)
        last = body["messages"][-2]["content"]
        return REFUSED if "import os" in last else D.format(n=2) if "I remove" in last else last

    with serving(mending) as server:
        run = spo_jax.discover(
            "tsp", **{**ASKED, "prompts_style": "paper", "concurrency": 1, "mend": 1, "rounds": 1},
            base_url=server.url(), path=tmp_path / "run",
        )  # fmt: skip
    first = funnel(run)[0]
    assert {"unparsable", "rejected"} <= {
        mend.wrong for mend in run.mends if mend.role == "destroy"
    }
    assert (first.answers, first.parsed, first.new, first.copies) == (6, 5, 2, 2)
    assert first.passed == 4
