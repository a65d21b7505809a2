"""A discovery for another search than the paper's: prompts, runs, pair files, the report."""

import re
from pathlib import Path

import pytest
from own_states import HALF

import spo_jax
from spo_jax.cli import main
from spo_jax.config import Settings
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program, format_pair, load_pair
from spo_jax.program.pairfile import load_terms, save_pair
from spo_jax.runs.pairs import PAPERS, resolve, resolve_all, terms_of
from spo_jax.search.plugins import require_parts
from spo_jax.search.utility import meaning
from spo_jax.search.writing.grammar import GrammarGenerator
from spo_jax.search.writing.prompts import Templates

TERMS = {"acceptance": "annealing", "start": "construction", "state": "progress"}
PARTS = ("steps_since_improvement", "share_of_budget", "last_change")


def templates(style="paper", **settings):
    config = Settings.make(prompts_style=style, **settings)
    return Templates.of(config.generator, get_problem("tsp"))


@pytest.mark.parametrize("style", ["paper", "frame"])
@pytest.mark.parametrize("role", ["destroy", "repair"])
def test_prompts_name_the_parts(style, role):
    leader = Program.from_source("destroy", "def destroy(d, t, s, rng):\n    return t[1:], t[:1]\n")
    answered = leader if role == "repair" else None

    def ask(given, **more):
        return given.render("tsp", role, "initialization", (), answered, **more).text

    plain, text = ask(templates(style)), ask(templates(style, state="progress"))
    assert "search_state: a tuple of numbers, (" + ", ".join(PARTS) + "):\n" in text
    for part in PARTS:
        assert f"    {part}: " in text
    # But for the words on the state it is the same prompt with another name of the parameter.
    block = r"- search_state: .*\n(    \w+: .*\n)*"
    assert len(re.findall(block, text)) == 1
    named = plain.replace("steps_since_improvement", "search_state")
    left = re.sub(r"- search_state: .*\n", "", named)
    assert re.sub(block, "", text) == left
    assert ask(templates(style, state="none"), state=False) == ask(templates(style), state=False)
    own = ask(templates(style, state="own_states:HALF"))
    assert "- search_state: a number: half of the steps.\n" in own


def test_own_words_on_the_state_stay(tmp_path):
    (tmp_path / "state-input.txt").write_text("- steps_since_improvement: mine\n")
    given = templates(prompts=str(tmp_path), state="progress")
    assert given.texts["state-input.txt"] == "- search_state: mine\n"


def test_the_grammar_reads_its_part():
    problem, prompt = get_problem("tsp"), templates().render("tsp", "destroy", "initialization")
    plain = GrammarGenerator(problem).generate([prompt], 30, 0)[0]
    found = GrammarGenerator(problem, "progress").generate([prompt], 30, 0)[0]
    assert [each.derivation for each in plain] == [each.derivation for each in found]
    line = "    steps_since_improvement = search_state[0]\n"
    for one, other in zip(plain, found, strict=True):
        assert other.text.count(line) == 1
        back = other.text.replace(line, "").replace("search_state", "steps_since_improvement")
        assert back == one.text


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"generator": "model"}, "state is progress, and model is embedded, which knows steps_s"),
        ({"generator": "grammar", "state": "own_states:HALF"}, "generator is grammar, which knows"),
        ({"generator": "grammar", "state": "own_states:NONE"}, "cannot import state"),
        ({"generator": "grammar", "acceptance": "own_states:HALF"}, "not a function"),
        ({"generator": "grammar", "start": "own_states:none"}, "cannot import start"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_run(settings, why):
    with pytest.raises(InputError, match=why):
        require_parts(Settings.make(**{"state": "progress"} | settings))


DESTROY = 'def destroy(d, t, s, rng):\n    """Front."""\n    return t[1:], t[:1]\n'
REPAIR = 'def repair(d, t, r, s, rng):\n    """Back."""\n    return t + r\n'
PAIR = Pair(Program.from_source("destroy", DESTROY), Program.from_source("repair", REPAIR))


def test_the_head_of_a_pair_file(tmp_path):
    interface, path = get_problem("tsp").interface, tmp_path / "pair.py"
    assert format_pair(PAIR, "x", interface) == format_pair(PAIR, "x", interface, terms={})
    save_pair(path, PAIR, "x", interface, terms=TERMS, shown={"a": "the first", "b": "the second"})
    text = path.read_text()
    assert "    rest, removed = destroy(dist, current_tour, state, rng)\n" in text
    assert "state is (a, b): a, the first; b, the second." in re.sub(r"\s+", " ", text)
    assert load_pair(path).digest == PAIR.digest
    assert load_terms(path) == TERMS
    for other in ("", '"""\n    state = other\n"""\n'):
        path.write_text(other + format_pair(PAIR))
        assert load_terms(path) == {}


def test_a_head_that_is_wrong(tmp_path):
    save_pair(tmp_path / "pair.py", PAIR, terms={"acceptance": "greedy"})
    with pytest.raises(InputError, match=r"pair\.py: its head is wrong: acceptance is"):
        resolve(tmp_path / "pair.py", "tsp")
    text = format_pair(PAIR, shown={"a": 'of """ and more'})
    compile(text, "pair", "exec")
    assert text.count('of """') == 0


@pytest.mark.parametrize("name", ["acceptance", "start", "state"])
def test_functions_that_a_head_names_run_only_if_the_file_is_trusted(tmp_path, name):
    path = tmp_path / "pair.py"
    save_pair(path, PAIR, terms={name: "own_states:HALF"})
    said = rf"pair\.py: its head names the {name} own_states:HALF, .* outside the sandbox; .*trust"
    for call in (
        lambda: spo_jax.evaluate(path, "tsp", "uniform:9x1"),
        lambda: spo_jax.compare("uniform:9x1", path, "tsp"),
        lambda: resolve(path, "tsp"),
    ):
        with pytest.raises(InputError, match=said):
            call()
    assert resolve(path, "tsp", trust=True)[2].terms == {name: "own_states:HALF"}


def test_objects_that_workers_cannot_import():
    for name, part in (("acceptance", lambda first, luck: None), ("state", HALF)):
        with pytest.raises(InputError, match=f"{name} is .* which workers cannot import"):
            spo_jax.discover("tsp", preset="smoke", **{name: part})


@pytest.mark.long
def test_who_follows_the_head(tmp_path):
    paths = [tmp_path / f"{k}.py" for k in range(3)]
    save_pair(paths[0], PAIR, terms=TERMS)
    save_pair(paths[1], PAIR, terms={"state": "none", "acceptance": "annealing"})
    save_pair(paths[2], PAIR)
    assert resolve(paths[0], "tsp")[2] == Settings.make(**TERMS)
    assert resolve_all(paths[0], "tsp")[2] == {
        "on_invalid": "fail", "state": ["progress"], "acceptance": "annealing",
        "start": "construction",
    }  # fmt: skip
    several = {"on_invalid": "fail", "state": ["progress", "none"], "acceptance": "annealing"}
    assert resolve_all(paths[:2], "tsp")[2] == several
    assert resolve_all(paths[2], "tsp")[2] == {"on_invalid": "fail", "state": ["stagnation"]}
    more = {"problem": "tsp", "on": "uniform:9x1", "steps": 3, "references": "none", "workers": 1}
    second = {"acceptance": "annealing", "start": "random", "state": "none"}
    for path, wanted in zip(paths[:2], (TERMS, second), strict=True):
        found = spo_jax.evaluate(path, **more).settings
        assert {name: found[name] for name in TERMS} == wanted
    asked = spo_jax.evaluate(paths[0], **more, start="random").settings
    assert {name: asked[name] for name in TERMS} == TERMS | {"start": "random"}


def test_what_j_is():
    assert meaning("improvement") == "the share of a random start's cost that the search saves"
    assert "the construction's cost" in meaning("anytime", "construction")
    assert "the start's cost" in meaning("improvement", "my:start")


@pytest.mark.slow
def test_a_run_for_another_search(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = ["discover", "tsp", "--preset", "smoke", "--generator", "grammar", "--out", "run"]
    asked = [f"--{name}={value}" for name, value in TERMS.items()]
    assert main([*command, *asked, "--workers", "1", "--finalists", "0", "--rounds", "1",
                 "--select", "utility"]) == 0  # fmt: skip
    assert "J is the share of the construction's cost" in capsys.readouterr().out
    run = spo_jax.load_run("run")
    assert run.config.terms == TERMS == load_terms("run/best.py")
    assert main(["export", "run", "--out", "mine.py"]) == 0
    assert load_terms("mine.py") == TERMS
    assert main(["export", "run", "--out", "other.py", "--for", "function"]) == 2
    assert "this pair is shown the state progress" in capsys.readouterr().err
    on = {"on": "uniform:12x1", "steps": 20, "references": "none", "workers": 1}
    reports = [spo_jax.evaluate(pair, "tsp", **on) for pair in ("run", "mine.py")]
    costs = [[r.best_cost for r in each.groups[0].instances[0].rollouts] for each in reports]
    assert costs[0] == costs[1]
    assert None not in costs[0]
    assert main(["report", "run"]) == 0
    page = Path("run/report.html").read_text()
    assert "<code>steps_since_improvement, share_of_budget, last_change</code>" in page
    assert "same draw removes in the first state" in page


def test_the_terms_of_a_pair_that_names_none_are_the_defaults_of_settings() -> None:
    assert terms_of(Settings()) == PAPERS
