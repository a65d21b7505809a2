"""A method is one setting: found by name, run by the same command, kept and resumed as SPO is."""

import contextlib
import json
import re
import sqlite3
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import spo_fakes
from method_fakes import Streaming, Writer, everything, run
from spo_fakes import Evaluator, Generator, small

from spo_jax import presets
from spo_jax.cli import main
from spo_jax.config import Settings
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError
from spo_jax.peers.best_of_n import BestOfN
from spo_jax.program import Pair, Program
from spo_jax.rl.endpoint.generator import Endpoint
from spo_jax.runs.database.digests import require_intact
from spo_jax.runs.database.store import Store, dump
from spo_jax.runs.discovery.loop import discover
from spo_jax.runs.display import lines
from spo_jax.runs.folders import default_folder
from spo_jax.runs.run import load_run
from spo_jax.search.method import METHODS, method_of, rounds_of
from spo_jax.search.parts import Parts
from spo_jax.search.plugins import GENERATORS
from spo_jax.search.rounds import State, Updater
from spo_jax.search.spo import Spo
from spo_jax.search.writing.prompts import Templates, built_in

SETTINGS = {
    "funsearch": {"islands": 3, "prompts": 2, "samples": 2, "reset": 0.2},
    "reevo": {"initial": 6},
    "g-lns": {"size": 5, "prune": 2, "generations": 2, "iterations": 12},
    "mcts-ahd": {"round": 12},
    "hsevo": {"initial": 6},
}


def config(method, **changes):
    return small(method=method, method_settings=SETTINGS.get(method, {}), rounds=2, **changes)


PEERS = [name for name in METHODS if name != "spo"]

# --- by name --------------------------------------------------------------------------------------


def test_methods_are_found_by_name():
    assert method_of(Settings()) == Spo()
    for name in METHODS:
        method = method_of(Settings.make(method=name))
        assert method.rounds(Settings.make(method=name)) > 1
        assert method.variant(True)
    with pytest.raises(InputError, match="unknown method 'eho': use spo, funsearch, eoh, reevo"):
        method_of(Settings.make(method="eho"))
    with pytest.raises(InputError, match="has no method variant"):
        method_of(Settings.make(method="math:pi"))


@dataclass(frozen=True)
class Mine(BestOfN):
    """A user's own."""

    share: float = 1.0
    wild: bool = True
    best: int | None = None


class Learns(BestOfN):
    """A user's own that teaches."""

    def one_round(self, parts, instances, k, state):
        done = super().one_round(parts, instances, k, state)
        return replace(done, metrics=parts.updater.update({"destroy": [], "repair": []}))


def test_a_method_of_the_users_own_can_teach():
    class Updates(Updater):
        def update(self, groups):
            return {"roles": float(len(groups))}

    config = small(
        method=f"{__name__}:Learns", generator="model", update="grpo", responses=2, rounds=1
    )
    parts = Parts(config, get_problem("tsp"), Evaluator(), Generator(), updater=Updates())
    rounds = []
    discover(parts, None, rounds.append, method_of(config))
    assert [done.metrics for done in rounds] == [{"roles": 2.0}]
    assert small(method=f"{__name__}:Learns", generator="model").learning.update == "none"


def test_settings_of_a_method_have_the_kinds_of_its_fields():
    def mine(**given):
        return method_of(small(method=f"{__name__}:Mine", method_settings=given))

    assert (mine(wild=False).wild, mine(wild="true").wild) == (False, True)
    with pytest.raises(InputError, match="method_settings: wild is 'odd'; it must be true"):
        mine(wild="odd")
    assert mine(share=2, best=3).share == 2.0
    with pytest.raises(InputError, match="method_settings: share is True; it must be a number"):
        mine(share=True)
    with pytest.raises(InputError, match="best is False; it must be a whole number or none"):
        mine(best=False)
    with pytest.raises(InputError, match="has no setting 'wide': did you mean 'wild'"):
        mine(wide=True)


def test_a_method_of_the_users_own(tmp_path):
    method = method_of(small(method=f"{__name__}:Mine", method_settings={"share": 0.5}))
    assert vars(method) == {"share": 0.5, "wild": True, "best": None}
    rounds, _, _ = run(f"{__name__}:Mine", rounds=2)
    assert len(rounds) == 2
    # A run is read where its method is not to be had, because its manifest has the rounds.
    gone = small(method="no_such_module:Mine").flat()
    Store.create(tmp_path / "run", {"config": gone, "preset": "x", "rounds": 7}).__exit__()
    assert load_run(tmp_path / "run").planned == 7
    assert default_folder(small(method=f"{__name__}:Mine"), "smoke").name == "tsp-mine-smoke-seed0"


def test_the_documented_method(tmp_path, monkeypatch):
    docs = Path(spo_fakes.__file__).parents[2] / "docs"
    page = (docs / "extending.md").read_text("utf-8")
    [example] = re.findall(r"^```python\n(# mymethod.py\n.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "mymethod.py").write_text(example)
    monkeypatch.syspath_prepend(str(tmp_path))
    settings = {"method_settings": {"children": 20}, "rounds": 2}
    rounds, end, parts = run("mymethod:Climb", **settings)
    assert [done.counts.destroy_answers for done in rounds] == [20, 20, 10]
    for k, done in enumerate(rounds[1:], 1):
        best = max(
            (each for each in end.individuals if each.round <= k), key=lambda each: each.utility
        )
        assert {p.parents for p in done.programs} == {
            (best.pair.destroy.digest,), (best.pair.repair.digest,)
        }  # fmt: skip
    text = (docs / "methods.md").read_text("utf-8")
    for name in PEERS:  # each has its section's command
        assert f"--method {name}" in text
    assert parts.config.learning.update == "none"


@pytest.mark.parametrize(
    ("name", "count"),
    [("FunSearch", 8), ("ReEvo", 6), ("G-LNS", 11), ("MCTS-AHD", 8), ("HSEvo", 12)],
)
def test_documented_settings_are_the_defaults(name, count):
    text = (Path(spo_fakes.__file__).parents[2] / "docs" / "methods.md").read_text("utf-8")
    section = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    documented = re.findall(r"`(\w+)=([\w.]+)`", section)
    assert len(documented) == count
    method = method_of(Settings.make(method=name.lower()))
    for setting, value in documented:
        own = getattr(method, setting)
        assert value == (f"{own:g}" if isinstance(own, float) else str(own).lower())


def test_no_method_but_spo_teaches():
    assert Settings.make(method="eoh").learning.update == "none"
    with pytest.raises(InputError, match="method is eoh, which trains no model"):
        Settings.make(method="eoh", update="grpo")
    with pytest.raises(InputError, match="method is spo, whose numbers have options"):
        Settings.make(method_settings={"islands": 3})


def test_the_papers_budget_in_rounds():
    # 13,950 pairs: EoH 10 and 50, FunSearch 20, ReEvo 30 and 15, G-LNS 6, MCTS-AHD 50, HSEvo 30 and
    # 25, all of them cut off where the budget ends.
    rounds = {}
    for name in PEERS:
        settings = presets.settings("tsp", "paper-tsp", method=name)
        assert settings.search.nominal_pairs == 13_950
        rounds[name] = rounds_of(settings)
    assert rounds == {
        "eoh": 280, "funsearch": 698, "reevo": 929, "g-lns": 2325, "mcts-ahd": 279,
        "hsevo": 558, "best-of-n": 30,
    }  # fmt: skip


def test_the_baselines_choose_by_validation():
    # Appendix C, where SPO returns the pair with the highest J.
    assert presets.settings("tsp", "paper-tsp").search.select == "utility"
    assert presets.settings("tsp", "paper-tsp", method="eoh").search.select == "validation"
    chosen = presets.settings("tsp", "paper-tsp", method="eoh", select="utility")
    assert chosen.search.select == "utility"
    assert (
        presets.settings("tsp", "paper-tsp", method="eoh", finalists=0).search.select == "utility"
    )


def test_who_writes_prose():
    assert not Generator().writes_prose
    assert not GENERATORS["grammar"].writes_prose
    assert Writer().writes_prose
    assert Endpoint.writes_prose


# --- the same whatever happens --------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("method", PEERS)
def test_a_run_goes_on_from_any_round_as_if_never_stopped(method, tmp_path):
    """Each half through a store of its own, so that what is read is what was written."""

    def play(folder, last=None):
        with Store.reopen(folder) as store:
            parts = Parts(store.config, get_problem("tsp"), Evaluator(), Writer())
            method = method_of(store.config)
            if last is not None:
                method = Stopped(method, last)
            discover(parts, store.state(), store.commit, method)
            return store.state()

    settings = config(method)
    for name in ("whole", "cut"):
        Store.create(tmp_path / name, {"config": settings.flat(), "preset": "x"}).__exit__()
    end = play(tmp_path / "whole")
    for last in (1, 2, 4):
        play(tmp_path / "cut", last)
    assert play(tmp_path / "cut").individuals == end.individuals
    assert dump(tmp_path / "cut") == dump(tmp_path / "whole")
    assert load_run(tmp_path / "cut").planned == rounds_of(settings) == end.round
    with contextlib.closing(sqlite3.connect(tmp_path / "cut" / "spo.sqlite")) as db:
        require_intact(db)

    # What is in memory is what a database brings back.
    state = State()
    own = SETTINGS.get(method, {})
    for done in run(method, generator=Writer(), rounds=2, method_settings=own)[0]:
        state = state.after(done)
    assert (state.individuals, state.note, state.destroys, state.best) == (
        end.individuals, end.note, end.destroys, end.best,
    )  # fmt: skip


class Stopped:
    """A method whose run ends early."""

    def __init__(self, method, last):
        self.method, self.last = method, last
        self.one_round, self.variant = method.one_round, method.variant

    def rounds(self, config):
        return min(self.last, self.method.rounds(config))


@pytest.mark.long
@pytest.mark.parametrize("method", PEERS)
def test_equal_runs_are_equal_and_parts_do_not_matter(method):
    settings = {"method_settings": SETTINGS.get(method, {}), "rounds": 2}
    first, _, _ = run(method, **settings)
    again, _, _ = run(method, generator=Streaming(), **settings)
    assert everything(again) == everything(first)
    other, _, _ = run(method, seed=1, **settings)
    assert everything(other) != everything(first)
    assert first[-1].best is not None
    spent = sum(done.counts.destroy_answers for done in first)
    assert spent <= small(rounds=2).search.nominal_pairs
    if method not in ("g-lns", "hsevo"):  # whose pairs are fewer programs
        assert spent == small(rounds=2).search.nominal_pairs


# --- on the command line --------------------------------------------------------------------------


@pytest.mark.long
def test_a_method_from_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    argv = [
        "discover", "tsp", "--preset", "smoke", "--generator", "grammar", "--method", "reevo",
        "--method-setting", "initial=4", "--method-setting", "mutation_rate=0.25",
        "--rounds", "1", "--responses", "1",
        "--repairs-per-destroy", "2", "--size", "8", "--steps", "5", "--validation-size", "8",
        "--validation-steps", "5", "--workers", "1", "--population-size", "2",
    ]  # fmt: skip
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert "method reevo, preset smoke" in out
    assert "Method: ReEvo without reflections (Ye et al. 2024): " in out
    assert "rules of selection with one specialist as writer" in out
    assert "Validated best" in out
    folder = "runs/tsp-reevo-smoke-seed0"
    manifest = json.loads((tmp_path / folder / "manifest.json").read_text())
    assert manifest["variant"] in out
    assert manifest["rounds"] == 1
    assert "without reflections" in (tmp_path / folder / "log.txt").read_text()
    assert main(["runs"]) == 0
    assert "reevo" in capsys.readouterr().out
    assert main(["discover", "--resume", folder]) == 0
    assert "1 of 1 rounds" in capsys.readouterr().out
    assert main(["discover", "--resume", folder, "--method", "eoh"]) == 2
    assert "method is reevo there and eoh here" in capsys.readouterr().err
    assert main(["export", folder, "--out", "pair.py"]) == 0
    assert main(["evaluate", "pair.py", "--problem", "tsp", "--on", "uniform:8x1", "--steps", "3",
                 "--references", "none"]) == 0  # fmt: skip


def test_reflections_are_on_the_bill():
    totals = {
        "destroy/prompt_tokens": 5.0,
        "reflection/prompt_tokens": 7.0,
        "reflection/tokens": 2.0,
    }
    assert lines.bill(totals) == "Endpoint: 12 prompt tokens, 2 completion tokens"


# --- what only a reader of prose is asked ---------------------------------------------------------


PARENTS = tuple(
    Program("destroy", f"def destroy(dist, current_tour, z, rng):\n    return {n}", f"Take {n}.")
    for n in range(3)
)


def test_prompts_for_reflections(tmp_path):
    repair = Program("repair", "def repair(dist, partial, removed, z, rng):\n    return 1", "Put.")
    worse, better = (Pair(destroy, repair) for destroy in PARENTS[:2])
    short = built_in().short_reflection("tsp", worse, better, 20)
    assert short.text.index("return 0") < short.text.index("return 1")
    assert "fewer than 20 words" in short.text
    long = built_in().long_reflection("tsp", "", ["a", "b"], 50)
    assert "(nothing yet)" in long.text
    assert "- a\n- b" in long.text
    (tmp_path / "long-reflection.txt").write_text("$problem $before $hints $words")
    own = Templates.read(tmp_path, get_problem("tsp"))
    mine = own.long_reflection("tsp", "old", ["a"], 9)
    assert mine.text == "TSP old - a 9\n"


def test_an_individual_may_share_its_programs(tmp_path):
    """The same source by two ways is two programs to the database, and both are kept."""
    generator = Generator(numbers=3, broken=0)
    settings = config("eoh", population_size=2)
    with Store.create(tmp_path / "run", {"config": settings.flat()}) as store:
        parts = Parts(settings, get_problem("tsp"), Evaluator(), generator)
        end = discover(parts, None, store.commit, method_of(settings))
        assert store.state().individuals == end.individuals
    sources = [each.pair.destroy for each in end.individuals]
    assert len({p.digest for p in sources}) < len(set(sources))
    assert replace(sources[0], form="x") not in sources
