"""A run that holds programs which the gate of an older version let pass goes on to its end."""

import pytest
from spo_fakes import Evaluator, Generator, small

from spo_jax.cli import main
from spo_jax.config import Config
from spo_jax.envs.problems import get_problem
from spo_jax.program import Completion, syntax
from spo_jax.program.pairfile import parse_pair
from spo_jax.search.parts import Parts
from spo_jax.search.runs.store import BEST, Store, dump
from spo_jax.search.spo import discover

DEEP = "    deep = " + "+".join(["1"] * 490) + "\n"


class Deep(Generator):
    """The fakes' programs, all of them with a deep expression."""

    def sample(self, prompt, rng):
        head, colon, body = super().sample(prompt, rng).text.partition("rng):\n")
        return Completion(head + colon + DEEP * bool(colon) + body)


class Cut(Exception):
    pass


def begun(path, monkeypatch, config: Config) -> None:
    """One round of a run as an older version committed it, which did not bound the depth."""

    def commit(done):
        store.commit(done)
        raise Cut

    with (
        monkeypatch.context() as patched,
        Store.create(path, {"config": config.to_dict(), "preset": "smoke"}) as store,
    ):
        patched.setattr(syntax, "MAX_DEPTH", 10_000)
        evaluator = Evaluator(refuse=lambda n: False)
        parts = Parts(config, get_problem("tsp"), evaluator, Deep(broken=0))
        with pytest.raises(Cut):
            discover(parts, store.state(), commit)


@pytest.fixture
def run(tmp_path, monkeypatch):
    path = tmp_path / "run"
    begun(path, monkeypatch, small(rounds=2, finalists=2, validation_size=8, validation_steps=5))
    return path


def spo(capsys, *words) -> tuple[int, str]:
    """The exit code and what was said; Rich wraps lines where it likes."""
    code = main([str(word) for word in words])
    said = capsys.readouterr()
    return code, " ".join((said.out + said.err).split())


def test_it_holds_what_the_gate_of_now_refuses(run):
    with Store.reopen(run) as store:
        best = store.state().best
    assert DEEP in best.pair.destroy.source
    with pytest.raises(syntax.Rejection, match="nested too deeply"):
        syntax.parse_tree(best.pair.destroy.source)


def test_it_is_resumed_and_ends(run, capsys):
    (run / BEST).write_text("an earlier pair")
    code, said = spo(capsys, "discover", "--resume", run)
    assert code == 0, said
    assert f"no {BEST}, because the destroy program cannot be written: nested too deeply" in said
    tables = dump(run)
    assert [row[0] for row in tables["rounds"]] == [1, 2]
    refused = [reason for _, _, _, status, reason, *_ in tables["failures"] if status == "rejected"]
    assert any("nested too deeply" in reason for reason in refused)
    with Store.reopen(run) as store:
        finals = store.finals()
    assert [each.validation for each in finals.finalists] == [None, None]
    assert not (run / BEST).exists()
    code, said = spo(capsys, "discover", "--resume", run)
    assert code == 0, said
    assert "is finished: 2 of 2 rounds" in said


@pytest.mark.parametrize(
    "words",
    [
        ("export", "RUN", "--out", "OUT"),
        ("evaluate", "RUN", "--on", "uniform:6x1", "--seeds", "1", "--steps", "2"),
    ],
)
def test_its_pair_is_refused_in_one_sentence(run, tmp_path, capsys, words):
    places = {"RUN": run, "OUT": tmp_path / "out.py"}
    code, said = spo(capsys, *(places.get(word, word) for word in words))
    assert code == 2
    assert "nested too deeply" in said
    assert "Traceback" not in said


def test_it_is_listed(run, capsys):
    code, said = spo(capsys, "runs", run.parent)
    assert code == 0
    assert "1/2" in said


@pytest.mark.parametrize("how", ["evaluate", "solve"])
def test_a_file_of_such_a_pair_is_refused_in_one_sentence(tmp_path, capsys, how):
    text = (
        f"def destroy(dist, tour, z, rng):\n{DEEP}    return tour[1:], tour[:1]\n"
        "def repair(dist, tour, removed, z, rng):\n    return tour + removed\n"
    )
    path = tmp_path / "pair.py"
    path.write_text(text)
    if how == "evaluate":
        words = ("evaluate", path, "--problem", "tsp", "--on", "uniform:6x1")
    else:
        instance = tmp_path / "a.tsp"
        instance.write_text("the pair is read first")
        words = ("solve", instance, "--pair", path)
    code, said = spo(capsys, *words)
    assert code == 2
    assert f"{path}: nested too deeply (at most 100 levels of syntax)" in said.replace(" /", "/")
    assert parse_pair(text.replace(DEEP, ""), "f.py")
