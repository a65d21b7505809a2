"""The page of a run: what stands on it, what must not, and when it is written."""

import base64
import hashlib
import io
import json
import math
import re
import shutil
import subprocess
import time
import zlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile_runs import ANSI, BAD, HIDDEN, heads, lines_of, made, overloaded
from rich.console import Console
from spo_fakes import Evaluator, quick_page, small

import spo_jax
from spo_jax import InputError
from spo_jax.cli import main
from spo_jax.envs.problem import Problem
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.jobs.onestep import take_step
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.observation import OBSERVED
from spo_jax.program import MAX_SOURCE, Program
from spo_jax.runs.database.store import Store
from spo_jax.runs.display import lines, progress
from spo_jax.runs.records import FailureRecord
from spo_jax.runs.report import genealogy, pair, payoffs, played, state, text, write
from spo_jax.runs.report.failures import alike
from spo_jax.runs.report.figures import BINS, Figures, Scale, colours
from spo_jax.runs.report.write import html
from spo_jax.runs.run import Run, load_run
from spo_jax.search.rounds import Observer

PAGES = ("progress", "payoffs", "genealogy", "state", "failures", "learning", "pair")
VOID = {"meta", "br", "input", "link", "img", "hr"}
SHOWN = "⟨U+202E⟩evil⟨U+2066⟩⟨U+200B⟩⟨U+0007⟩"
TINY: dict[str, Any] = {
    "preset": "smoke", "rounds": 2, "size": 10, "instances": 2, "rollouts": 1, "steps": 4,
    "finalists": 2, "validation_size": 10, "validation_instances": 2, "validation_steps": 8,
    "generator": "grammar", "update": "none", "workers": 1, "seed": 3, "responses": 2,
    "repairs_per_destroy": 4, "mutation_groups": 1, "crossover_groups": 1,
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def quick_pages() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        quick_page(patch)
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return made(tmp_path_factory.mktemp("report") / "a <b>run")


@pytest.fixture(scope="module")
def page(run: Run) -> "Page":
    return read(html(run, "not played here"))


class Page(HTMLParser):
    """Elements with their attributes and text; raises where tags do not nest."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[dict[str, Any]] = []
        self.all: list[dict[str, Any]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        found = {"tag": tag, "attrs": dict(attrs), "text": "", "within": [*self.open]}
        self.all.append(found)
        if tag not in VOID:
            self.open.append(found)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop()["tag"] == tag, tag

    def handle_data(self, data: str) -> None:
        for each in self.open:
            each["text"] += data

    def of(self, tag: str, **attrs: str) -> list[dict[str, Any]]:
        return [
            each
            for each in self.all
            if each["tag"] == tag and all(each["attrs"].get(k) == v for k, v in attrs.items())
        ]


def read(source: str) -> Page:
    found = Page()
    found.source = source  # type: ignore[attr-defined]
    found.feed(source)
    found.close()
    assert not found.open
    return found


def section(page: Page, name: str) -> str:
    [found] = page.of("section", id=name)
    return " ".join(found["text"].split())


def unpacked(page: Page) -> dict[tuple[str, int], Any]:
    packs = page.of("script", type="text/plain")
    assert all(re.fullmatch(r"[A-Za-z0-9+/=]+", each["text"]) for each in packs)
    return {
        (each["attrs"]["data-kind"], int(each["attrs"]["data-round"])): json.loads(
            zlib.decompress(base64.b64decode(each["text"]), -15)
        )
        for each in packs
    }


# --- the page -------------------------------------------------------------------------------------


def test_every_page_is_there_with_something_on_it(page: Page) -> None:
    assert [each["attrs"]["id"] for each in page.of("section")] == list(PAGES)
    for name in PAGES:
        assert len(section(page, name)) > 40, name
    ids = [each["attrs"]["id"] for each in page.all if "id" in each["attrs"]]
    assert len(ids) == len(set(ids))
    assert page.of("title")[0]["text"] == "a <b>run · spo report"


def test_it_needs_nothing_from_outside(page: Page) -> None:
    for each in page.all:
        for name, value in each["attrs"].items():
            assert not name.startswith("on"), name
            if name in ("src", "href", "xlink:href", "action", "srcset"):
                assert (value or "").startswith("#"), value
            assert "url(" not in (value or "") or "url(#" in value
    [style] = page.of("style")
    assert "url(" not in style["text"]
    assert "@import" not in style["text"]


def test_only_its_own_script_may_run(page: Page) -> None:
    [policy] = page.of("meta", **{"http-equiv": "Content-Security-Policy"})
    policy_text = policy["attrs"]["content"]
    assert "default-src 'none'" in policy_text
    [script] = [each for each in page.of("script") if "type" not in each["attrs"]]
    digest = base64.b64encode(hashlib.sha256(script["text"].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy_text
    assert "innerHTML" not in script["text"]


def test_what_a_model_wrote_is_text(run: Run, page: Page) -> None:
    assert any(BAD in each.strategy for each in run.programs)
    assert any("\u202e" in each.source for each in run.programs)
    assert not page.of("img")
    scripts = page.of("script")
    assert len(scripts) == 2 * run.rounds + 1  # programs and prompts of each round, and its own
    source = page.source  # type: ignore[attr-defined]
    assert "alert(1)</script>" not in source
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\x00-\x08\ud800]", source)
    assert f"{BAD} line 7 {SHOWN}" in section(page, "failures")
    assert "{{ 7 * 7 }}" in section(page, "pair")
    [best] = [e for e in page.of("article") if run.names(run.best.pair)[0] in e["text"]]  # type: ignore[union-attr]
    assert BAD in best["text"]


def test_packs_hold_every_program_and_prompt(run: Run, page: Page) -> None:
    packs = unpacked(page)
    programs = {name: each for (kind, _), found in packs.items() if kind == "programs"
                for name, each in found.items()}  # fmt: skip
    assert programs.keys() == {each.name for each in run.programs}
    for each in run.programs:
        mine = programs[each.name]
        assert mine["source"] == each.source.replace("\u202e", "⟨U+202E⟩")
        assert mine["strategy"] == each.strategy
        assert tuple(mine["parents"]) == each.parents
        earned = each.credit
        assert mine["credit"] == (None if math.isnan(earned) else pytest.approx(earned, abs=1e-6))
        known = [p.utility for p in run.pairs
                 if each.name in (p.destroy, p.repair) and not math.isnan(p.utility)]  # fmt: skip
        shown = [utility for _, utility, _ in mine["pairs"] if utility is not None]
        assert shown == pytest.approx(sorted(known, reverse=True)[:12], abs=1e-6)
    for each in run.samples:
        if each.program:
            number, place = programs[each.program]["prompt"]
            assert place in packs["prompts", number]
    asked = [len(found) for (kind, _), found in packs.items() if kind == "prompts"]
    assert sum(asked) == len(run.prompts)


def test_payoffs_are_those_of_the_run(run: Run, page: Page) -> None:
    for k in range(1, run.rounds + 1):
        scores, crossed = run.credits(k), run.cross_play(k)
        [table] = page.of("table", **{"aria-label": f"Payoffs of round {k}"})
        rows = [e for e in page.of("tr") if table in e["within"] and "data-d" in e["attrs"]]
        leaders = scores.leader[[list(scores.destroys).index(e["attrs"]["data-d"]) for e in rows]]
        known = leaders[~np.isnan(leaders)]
        assert (np.diff(known) <= 0).all()
        assert np.isnan(leaders[len(known) :]).all()
        for row in rows:
            i = list(scores.destroys).index(row["attrs"]["data-d"])
            cells = [e for e in page.of("td") if row in e["within"] and "data-p" in e["attrs"]]
            expected = {
                name: "–" if math.isnan(value) else f"{value:.4f}".replace("0.", ".", 1)
                for name, value in zip(scores.repairs[i], scores.utility[i], strict=True)
                if name
            }
            assert {e["attrs"]["data-p"]: e["text"] for e in cells} == expected
            values = [float(e["text"]) for e in cells if e["text"] != "–"]
            assert values == sorted(values, reverse=True)
        [cross] = page.of("table", **{"aria-label": f"Cross-play of round {k}"})
        cells = [e for e in page.of("td") if cross in e["within"] and "data-p" in e["attrs"]]
        assert len(cells) == crossed.utility.size + len(crossed.scores)


def test_descent_is_that_of_the_run(run: Run, page: Page) -> None:
    drawn = {e["attrs"]["data-p"] for e in page.of("g") if "data-p" in e["attrs"]}
    ever = {m.name for members in run.populations.values() for m in members}
    assert ever <= drawn
    titles = [e["text"] for e in page.of("title")[1:] if " from " in e["text"]]
    assert titles
    for each in titles:
        child, parent = re.match(r"(\S+) from (\S+):", each).groups()  # type: ignore[union-attr]
        assert parent in run[child].parents
    expected = sum(len(set(run[n].parents) & drawn) for n in drawn)
    assert len(titles) == expected


@pytest.mark.long
def test_the_same_run_gives_the_same_bytes(run: Run) -> None:
    first = html(run, "no")
    assert first == html(load_run(run.path), "no")
    assert len(first.encode()) < 500_000


@pytest.mark.long
def test_what_does_not_fit_is_reported(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "MOST_PACKED", 3000)
    source = html(run, "no")
    assert "are left out to keep this file small" in source
    assert sum(map(len, re.findall(r'data-round="\d+">([^<]*)<', source))) <= 3000


# --- runs that are too much -----------------------------------------------------------------------


@pytest.mark.long
def test_long_programs_with_long_lines_end_in_a_page(tmp_path: Path) -> None:
    """No text is shown, packed or compared beyond its bound, and what is cut says so."""
    long = [lines_of("a", 100_000), "x" * 1_000_000, lines_of("a"), lines_of("b"), heads("destroy")]
    run = overloaded(tmp_path / "run", 15, long)
    source = html(run, "no")
    page = read(source)
    shown = MAX_SOURCE + 40
    assert max(len(e["text"]) for e in page.of("pre") if "diff" not in e["attrs"].values()) < shown
    for pack in unpacked(page).values():
        for each in pack.values():
            assert len(each if isinstance(each, str) else each["source"]) < 4 * shown
    assert len(source) < 10_000_000
    assert "are too many to be compared here" in source
    assert "… 934,464 more characters" in source
    assert "\x1b" not in source
    assert BAD not in source


@pytest.mark.long
def test_many_rounds_and_generations_end_in_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(genealogy, "_MOST_DRAWN", 200)
    code = [f"def destroy(d):\n    return {k}\n" for k in range(7)]
    run = overloaded(tmp_path / "run", 600, code, rounds=300)
    source = html(run, "no")
    page = read(source)
    assert sum("data-p" in e["attrs"] for e in page.of("g")) == 2 * 200
    assert "more programs are left out of the picture" in source
    assert f"{2 * 600 - 40} older programs are left out" in source
    assert len(source) < 3_000_000


def test_names_and_reasons_change_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path / "a [bold] \x1b[31mrun", rounds=1)
    (tmp_path / "b [bold] \x1b[31mrun").mkdir()
    for name in ("manifest.json", "spo.sqlite"):
        (tmp_path / "b [bold] \x1b[31mrun" / name).write_text("{")
    assert main(["runs", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert "a [bold] ⟨U+001B⟩[31mrun" in output
    assert "b [bold] ⟨U+001B⟩[31mrun" in output
    assert "\x1b" not in output

    failed = FailureRecord(1, "pair", "crash", ANSI, "", "", "")
    assert "\x1b" not in lines.commonest([failed])
    logged: list[str] = []
    console = Console(file=(shown := io.StringIO()), width=999)
    with progress.Display(small(), logged.append, console) as display:
        display.say(ANSI)
        display.note(ANSI)
    assert "\x1b" not in shown.getvalue() + "".join(logged)
    assert shown.getvalue().strip() == text.visible(ANSI)


def test_matrices_beyond_the_bound_are_left_out(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payoffs, "MOST_CELLS", run.credits(run.rounds).utility.size + 1)
    found = payoffs.page(run)
    kept = [each.number for each in found["matrices"]]
    assert run.best is not None
    assert kept[-1] == run.best.round  # whatever else there is room for
    assert found["left_out"] == run.rounds - len(kept) > 0


@pytest.mark.long
def test_a_text_is_packed_at_most_once_and_no_more_than_may_be(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    squeezed: list[int] = []
    pack = write.packed
    monkeypatch.setattr(write, "MOST_UNPACKED", 20_000)
    monkeypatch.setattr(
        write, "packed", lambda value: squeezed.append(len(str(value))) or pack(value)
    )
    html(run, "no")
    everything = sum(len(p.source) + len(p.strategy) for p in run.programs)
    assert everything > 20_000
    assert 0 < sum(squeezed) < 4 * 20_000  # names and numbers come on top


# --- runs that lack something ---------------------------------------------------------------------


def test_a_run_without_rounds_says_what_is_missing(tmp_path: Path) -> None:
    config = small()
    Store.create(tmp_path / "run", {"config": config.flat(), "preset": "smoke"}).__exit__()
    empty = load_run(tmp_path / "run")
    page = read(html(empty, played.play(empty)))
    for name in PAGES:
        assert re.search(r"\b(No|no|nothing)\b", section(page, name)), name


def test_a_run_without_a_valid_pair(tmp_path: Path) -> None:
    failing = Evaluator(verdict=lambda pair: (spo_jax.Status.CRASH, None))
    run = made(tmp_path / "run", {"evaluator": failing}, rounds=2)
    assert run.best is None
    page = read(html(run, played.play(run)))
    assert "no pair of this run has been valid" in section(page, "pair")
    assert "no pair has been valid" in section(page, "progress")
    assert "because crash" in section(page, "failures")


@pytest.mark.long
def test_a_pair_that_fails_where_it_is_played(run: Run) -> None:
    """Its programs have numbers that the fake evaluator accepts and the real one does not."""
    found = played.play(run)
    assert isinstance(found, played.Played)
    page = read(html(run, found))
    assert "The search that is drawn ended at step 1" in section(page, "pair")
    assert "The pair failed on 4 of 4 validation instances" in section(page, "pair")
    assert "What programs do by state was not measured" in section(page, "state")


def test_an_evaluator_of_its_own_is_not_played(run: Run) -> None:
    own = run.config.replace(evaluator="mine:Evaluator")
    assert "an evaluator of its own, mine:Evaluator" in played.play(replace(run, config=own))


# --- a real run -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Written after every round; the page after the first is kept."""
    path = tmp_path_factory.mktemp("real") / "run"

    class Watch(Observer):
        def stage(self, number: int, name: str, total: int) -> None:
            if number == 2 and not (path / "first.html").exists():
                shutil.copy(path / "report.html", path / "first.html")

    return spo_jax.discover("tsp", path=path, observer=Watch(), report=True, **TINY)


@pytest.fixture(scope="module")
def at_work(real: Run) -> played.Played:
    found = played.play(real)
    assert isinstance(found, played.Played)
    return found


@pytest.mark.long
def test_a_run_writes_its_page_after_every_round(real: Run) -> None:
    first = read((real.path / "first.html").read_text("utf-8"))
    assert "1 of 2, running" in first.of("header")[0]["text"]
    assert write.UNPLAYED in section(first, "pair")
    last = read((real.path / "report.html").read_text("utf-8"))
    assert "2 of 2, finished" in last.of("header")[0]["text"]
    assert write.UNPLAYED not in section(last, "pair")


@pytest.mark.long
def test_the_pair_is_played_as_the_evaluator_would(at_work: played.Played) -> None:
    found = at_work
    assert found.curves.shape == (2, 9)
    assert (np.diff(found.curves, axis=1) >= 0).all()
    assert found.curves[:, 0] == pytest.approx(0)
    problem, now = get_problem("tsp"), found.start
    for each in found.frames:  # those between two that improved changed nothing for the worse
        cost = problem.cost(found.instance, each.step.candidate)
        assert each.step.cost == cost < each.before <= problem.cost(found.instance, now)
        assert set(each.step.removed) <= set(each.solution)
        now = each.step.candidate
    for row in found.destroys:
        assert all(0 < size <= 3 for size in row.values)  # 35% of 10
    for row in (*found.destroys, *found.repairs):
        assert row.alike[0] == 1
        assert row.reads or set(row.alike) == {1}


def test_a_state_whose_module_is_missing_is_one_sentence(run: Run) -> None:
    gone = replace(run, config=run.config.replace(state="gone:STATE"))
    with pytest.raises(InputError, match=r"^cannot import state 'gone:STATE' .* on PYTHONPATH$"):
        html(gone, played.play(gone))


@pytest.mark.long
def test_the_walk_is_the_search_of_the_run(real: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the construction, accepting what is little worse than the best; its end is the best."""
    own = {"start": "construction", "acceptance": "record-to-record", "work": 2000.0}
    other = real.config.replace(validation_steps=60, **own)
    found = played.play(replace(real, config=other))
    assert isinstance(found, played.Played)
    problem, instance = get_problem("tsp"), found.instance
    assert found.start == problem.construct(instance, math.inf)
    first, best = problem.cost(instance, found.start), problem.cost(instance, found.final)
    assert best <= min([first, *(each.step.cost for each in found.frames if each.accepted)])
    [instance] = problem.sample(30, 1, 0)
    start = list(range(30))
    lowest = current = problem.cost(instance, start)
    threshold = 2 * lowest / 30
    best = real.best.pair
    with LocalEvaluator(problem, 1, seed=real.config.seed) as evaluator:
        walk = partial(played._walk, evaluator, best, instance, start, OBSERVED)
        [polished, *_], *_ = walk("record-to-record")
        first = take_step(evaluator, best, instance, start, 0, seed=0)
        rules = problem.rules(instance)
        assert polished.step.candidate == rules.polished(start, first.candidate) != first.candidate
        assert problem.decode(instance, polished.step.code) == polished.step.candidate
        # Without local search, after which no step is worse here.
        monkeypatch.setattr(type(rules), "polished", lambda self, before, after: after)
        walked, *_ = walk("record-to-record")
    for k, each in enumerate(walked):
        assert each.before == pytest.approx(current)
        near = each.step.cost < lowest + threshold * (1 - k / played.STEPS)
        assert each.accepted == (each.step.cost <= current or near)
        current = each.step.cost if each.accepted else current
        lowest = min(lowest, current)
    assert any(each.accepted and each.step.cost > each.before for each in walked)
    page = section(read(html(real, found)), "pair")
    assert "The construction" in page
    assert "random start" not in page


@pytest.mark.long
def test_a_problem_without_a_picture(real: Run, at_work: played.Played) -> None:
    class Plain(type(get_problem("tsp"))):  # type: ignore[misc]
        draw = Problem.draw

    shown = pair.page(real, replace(at_work, problem=Plain()), Figures())
    assert "the problem tsp defines none" in " ".join(shown["missing_parts"])
    assert "frames" not in shown
    assert "frames" in pair.page(real, at_work, Figures())


@pytest.mark.long
def test_the_command(real: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    assert main(["report", str(real.path), "--out", str(out)]) == 0
    assert "page.html: 2 of 2 rounds" in capsys.readouterr().out
    # The same run gives the same bytes, its pair played again.
    assert out.read_bytes() == (real.path / "report.html").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: no such run folder"),
        (["."], "holds no run"),
        (["RUN", "--out", "page.txt"], "must end in .html"),
        (["RUN", "--out", "nowhere/page.html"], "there is no folder nowhere"),
        (["RUN", "--out", "a.html"], "is a folder"),
        ([], "required: RUN"),
        (["RUN", "nowhere"], "nowhere: no such run folder"),
        (["RUN", "RUN"], "a run is named twice"),
    ],
)
def test_what_the_command_refuses(
    run: Run,
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.html").mkdir()
    given = [str(run.path) if each == "RUN" else each for each in arguments]
    assert main(["report", *given]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


@pytest.mark.long
def test_several_runs_are_one_page(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    other = tmp_path / "again"
    shutil.copytree(run.path, other)
    before = {each.name for each in run.path.iterdir()}
    assert main(["report", str(run.path), str(other)]) == 0
    assert "comparison.html: 2 runs" in capsys.readouterr().out
    text = (tmp_path / "comparison.html").read_text("utf-8")
    assert "valid answers, %" in text
    assert "<td>again</td>" in text
    assert "a <b>run" not in text  # the name of a folder is no markup
    assert {each.name for each in run.path.iterdir()} == before
    monkeypatch.setattr(
        "spo_jax.runs.report.compare.page", lambda runs: {"missing": "they do not compare"}
    )
    assert main(["report", str(run.path), str(other), "--out", "page.txt"]) == 2
    assert "must end in .html" in capsys.readouterr().err
    assert main(["report", str(run.path), str(other), "--out", "new.html"]) == 2
    assert "they do not compare" in capsys.readouterr().err
    assert not (tmp_path / "new.html").exists()


@pytest.mark.long
def test_a_method_without_credits(tmp_path: Path) -> None:
    more = TINY | {"method": "eoh", "pairs": 4, "finalists": 0, "select": "utility"}
    found = spo_jax.discover("tsp", path=tmp_path / "run", **more)
    page = read(html(found, played.play(found)))
    assert "the method eoh does not answer destroys with repairs" in section(page, "payoffs")
    assert "in the order of best J" in section(page, "genealogy")


@pytest.mark.slow
def test_a_browser_opens_the_page_and_a_click_shows_both_programs(run: Run, tmp_path: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no Chromium is installed")
    source = html(run, "no")
    steps = (
        "document.querySelector('table.payoff td[data-p]').click();"
        "window.alert = () => document.body.append('ALERT' + 'ED');"
    )
    clicked = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", source)
    pages = {"as-it-is": source, "clicked": clicked.replace("</body>", f"<script>{steps}</script>")}
    for name, each in pages.items():
        path = tmp_path / f"{name}.html"
        path.write_text(each, "utf-8")
        done = subprocess.run(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-background-networking", "--enable-logging=stderr", "--dump-dom",
             "--virtual-time-budget=3000", f"--user-data-dir={tmp_path}/profile", path.as_uri()],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert "CONSOLE" not in done.stderr, done.stderr
        assert 'id="pair"' in done.stdout
    shown = done.stdout[done.stdout.index("<dialog") :]
    assert shown.count("<article>") == 2
    assert "&lt;script&gt;alert(1)" in shown
    assert "ALERTED" not in done.stdout


# --- its parts ------------------------------------------------------------------------------------


def test_hidden_characters_are_shown() -> None:
    assert text.visible(HIDDEN) == SHOWN
    assert text.visible("déjà\tvu\n≤ 漢字 🙂") == "déjà\tvu\n≤ 漢字 🙂"
    text.visible("\ud800").encode()


@pytest.mark.parametrize(
    ("source", "reads"),
    [
        ("def destroy(dist, tour, z, rng):\n    return tour[z:], tour[:z]\n", True),
        ("def destroy(dist, tour, z, rng):\n    return tour[1:], tour[:1]  # z\n", False),
        ("def destroy(\n    dist,\n    tour: list,\n    z: int,\n    rng,\n):\n    use(z)\n", True),
        ("def destroy(dist, tour, z, rng):\n    zz = 1\n", False),
        ("def helper(z):\n    return z\n", False),
    ],
)
def test_who_reads_the_state(source: str, reads: bool) -> None:
    assert text.reads_state("destroy", source) == reads


def test_a_text_is_searched_once_for_the_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many lines look like the function's: 32 times as long takes no 200 times as long."""

    def seconds(size: int) -> float:
        source = heads("destroy", size)
        begun = time.process_time()
        for _ in range(20):
            assert not text.reads_state("destroy", source)
        return time.process_time() - begun

    assert seconds(1_280_000) < 200 * (seconds(40_000) + 0.001)


def test_a_destroy_that_is_always_shown_state_0() -> None:
    source = (
        "import math\n\n\ndef destroy(dist, tour: list, z, rng):\n    return tour[z:], tour[:z]\n"
    )
    unmoved = played.unmoved(Program("destroy", source, "by state"))
    names: dict[str, Any] = {}
    exec(unmoved.source, names)
    assert names["destroy"](None, [4, 5, 6], 2, None) == ([4, 5, 6], [])
    assert names["shown_nothing"](None, [4, 5, 6], 2, None) == ([6], [4, 5])


def test_the_legend_of_forms_has_those_that_lines_have(run: Run) -> None:
    """A first draft has no parent, so no line has its colour."""
    found = genealogy.page(run)
    drawn = {edge.form: edge.colour for _, tree in found["trees"] for edge in tree["edges"]}
    assert drawn
    assert found["forms"] == drawn
    assert {each.form for each in run.programs} - {*drawn} == {"initialization"}


def test_reasons_that_differ_in_numbers_are_alike() -> None:
    assert alike("line 12: 0.5 is above 3") == alike("line 7: 12.25 is above 4")
    assert alike("line 12") != alike("row 12")


def test_a_scale_of_values() -> None:
    scale = Scale(np.array([0.0, 0.5, 1.0, np.nan]))
    assert [scale.bin(value) for value in (-9.0, 1.0, 9.0, math.nan)] == [0, BINS - 1, BINS - 1, -1]
    assert Scale(np.zeros(0)).bin(0.5) in range(BINS)
    assert Scale(np.ones(3)).bin(1.0) == BINS - 1
    for back, ink in colours():  # WCAG 2, level AA
        light = [_luminance(each) for each in (back, ink)]
        assert (max(light) + 0.05) / (min(light) + 0.05) > 4.5


def _luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_hidden_state_is_reported(run: Run) -> None:
    hidden = replace(run, config=run.config.replace(state=False))
    assert "0 at every step" in state.page(hidden, "no", Figures())["note"]


def test_a_page_that_cannot_be_written_is_an_error_of_input(run: Run, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write"):
        write.write(run, tmp_path / "none" / "page.html", "no")
    remarks: list[str] = []
    write.keep_page(tmp_path / "gone", remarks.append)
    assert remarks == [f"no report.html, because {tmp_path / 'gone'}: no such run folder"]


def test_a_bug_of_the_page_does_not_end_a_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> str:
        raise ZeroDivisionError("seven")

    monkeypatch.setattr(write, "html", broken)
    for of in (run.path, run):
        (run.path / "report.html").write_text("an older page, which must not pass for this one")
        remarks: list[str] = []
        write.keep_page(of, remarks.append)
        assert remarks == [
            "no report.html, because of a ZeroDivisionError: seven; spo report shows where"
        ]
        assert not (run.path / "report.html").exists()


@pytest.mark.long
def test_a_page_that_cannot_be_made_leaves_no_older_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path / "run", rounds=1)
    page, other = tmp_path / "run/report.html", tmp_path / "other.html"
    page.write_text("older")
    other.write_text("older")
    database = (tmp_path / "run/spo.sqlite").read_bytes()
    (tmp_path / "run/spo.sqlite").write_bytes(b"no database" * 100)
    assert main(["report", str(tmp_path / "run"), "--out", str(other)]) == 2
    assert page.exists()
    assert main(["report", str(tmp_path / "run")]) == 2
    assert not page.exists()
    assert other.read_text() == "older"  # a file of the user's own
    (tmp_path / "run/spo.sqlite").write_bytes(database)

    def full(path: Path, data: str) -> None:
        raise InputError(f"cannot write {path}: no space left")

    page.write_text("older")
    monkeypatch.setattr(write, "write_atomically", full)
    assert main(["report", str(tmp_path / "run")]) == 2
    assert "no space left" in capsys.readouterr().err
    assert not page.exists()
    assert [each.name for each in (tmp_path / "run").iterdir() if "report" in each.name] == []
