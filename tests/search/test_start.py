"""Start pairs: what round 1 makes of them, what is refused, and that a run stays what it is."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from spo_fakes import Evaluator, Generator, Stop, answer, play, quick_page, small

from spo_jax import load_run
from spo_jax.cli import main
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.solve import shipped_pair
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program, load_pair, save_pair
from spo_jax.runs.database.store import dump
from spo_jax.runs.discover import discover
from spo_jax.runs.discovery.loop import discover as algorithm
from spo_jax.runs.folders import MANIFEST
from spo_jax.runs.report.write import report
from spo_jax.search.parts import Parts
from spo_jax.search.rounds import Observer, Round
from spo_jax.search.sampling.start import START, StartPair, reads_state
from spo_jax.search.spo import Spo

TSP = get_problem("tsp")


def pair_of(destroy: int, repair: int) -> Pair:
    programs = []
    for role, n in (("destroy", destroy), ("repair", repair)):
        source = answer(role, n).text.split("```python\n")[1].split("```")[0]
        programs.append(Program(role, source, f"{role} number {n}"))  # type: ignore[arg-type]
    return Pair(*programs)


class Worth(Evaluator):
    """Start pairs are worth what `known` says by (destroy, repair) number, others at most 1/4."""

    def __init__(self, known: dict[tuple[int, int], float | None]):
        self.known = known
        super().__init__(self.judge, refuse=lambda n: False)

    def judge(self, pair: Pair) -> tuple[Status, float | None]:
        numbers = [int(p.strategy.split()[-1].strip(".")) for p in (pair.destroy, pair.repair)]
        if tuple(numbers) in self.known:
            value = self.known[tuple(numbers)]  # type: ignore[index]
            return (Status.CRASH, None) if value is None else (Status.OK, value)
        return Status.OK, (sum(numbers) % 128) / 512


def started(
    known: dict[tuple[int, int], float | None], generator: Any = None, **changes: Any
) -> tuple[list[Round], Generator, list[StartPair]]:
    """Rounds of a discovery that starts from the pairs of `known`, in that order."""
    start = [StartPair.of(f"{d}-{r}", pair_of(d, r)) for d, r in known]
    generator = generator or Generator(broken=0.0)
    parts = Parts(small(**changes), TSP, evaluator=Worth(known), generator=generator)
    rounds: list[Round] = []
    algorithm(parts, None, rounds.append, Spo(tuple(start)))
    return rounds, generator, start


def test_start_pairs_are_leaders_with_a_response():
    known = {(2001, 2002): 0.75, (2003, 2004): 0.5}
    rounds, generator, start = started(known)
    first = rounds[0]
    scored = first.scored
    assert scored is not None
    assert [d.digest for d in scored.destroys[:2]] == [each.pair.destroy.digest for each in start]
    assert [np.count_nonzero(row) for row in scored.repairs[:2]] == [1, 1]
    assert scored.utility[:2, 0].tolist() == [0.75, 0.5]
    assert np.isnan(scored.utility[:2, 1:]).all()
    assert scored.leader_selection[:2].tolist() == [0.75, 0.5]  # eq:leader-credit of one response
    assert [p.kind for p in first.pairs[:2]] == [START, START]
    assert {p.kind for p in first.pairs[2:]} == {"response", "cross-play"}
    # They survive by what they earn: 0.5 and 0.75 are above all others.
    assert [m.score for m in first.destroys[:2]] == [0.75, 0.5]
    assert {m.program.form for m in first.destroys[:2]} == {START}
    assert first.best is not None
    assert first.best.utility == 0.75
    # What the round counts and learns from is what was sampled.
    assert first.counts.destroys == len(scored.destroys) - 2
    assert first.counts.top is not None
    assert first.counts.top <= 0.25
    [destroys, repairs] = generator.calls[:2]
    assert len(first.groups["destroy"]) == len(destroys[0])
    assert len(first.groups["repair"]) == len(repairs[0])
    asked = {prompt.destroy.digest for prompt in repairs[0]}
    assert not asked & {each.pair.destroy.digest for each in start}


def test_start_programs_are_parents_in_round_1():
    known = {(2001, 2002): 0.75, (2003, 2004): 0.5, (2005, 2006): None}
    _, generator, start = started(known)
    for prompts, place in ((generator.calls[0][0], 0), (generator.calls[1][0], 1)):
        parents = {parent.digest for prompt in prompts for parent in prompt.parents}
        assert parents == {each.programs[place].digest for each in start[:2]}
        assert all(prompt.form != "initialization" for prompt in prompts)
    without = Generator(broken=0.0)
    play(small(), generator=without)
    assert {prompt.form for prompt in without.calls[0][0]} == {"initialization"}


def test_a_start_pair_that_is_weak_does_not_survive_and_one_that_fails_is_left_out():
    lines: list[str] = []

    class Reader(Observer):
        def remark(self, line: str) -> None:
            lines.append(line)

    known = {(2001, 2002): 0.0, (2003, 2004): None}
    start = [StartPair.of(f"{d}-{r}", pair_of(d, r)) for d, r in known]
    config = small(rounds=2, population_size=1, diversity=0.0)
    parts = Parts(config, TSP, evaluator=Worth(known), generator=Generator(), observer=Reader())
    rounds: list[Round] = []
    algorithm(parts, None, rounds.append, Spo(tuple(start)))
    assert all(m.program.form != START for r in rounds for m in (*r.destroys, *r.repairs))
    assert lines[:2] == ["Start pair 2001-2002: J 0.0000",
                         "Start pair 2003-2004: crash, because crash; left out"]  # fmt: skip
    assert rounds[0].scored is not None
    numbers = [d.strategy.split()[-1] for d in rounds[0].scored.destroys]
    assert numbers[0] == "2001"
    assert "2003" not in numbers


def test_start_pairs_of_one_destroy_are_one_row():
    known = {(2001, repair): repair / 4096 for repair in range(2010, 2020)}
    [first, *_], _, _ = started(known, repairs_per_destroy=4)
    assert first.scored is not None
    assert first.scored.utility.shape[1] == 10  # more than the slots of a sampled destroy
    assert first.scored.utility[0].tolist() == [known[2001, r] for r in range(2010, 2020)]
    best = sorted(known.values())[-2:]  # type: ignore[type-var]
    assert first.scored.leader_selection[0] == pytest.approx(sum(best) / 2)  # type: ignore[arg-type]


def test_a_sampled_copy_of_a_start_destroy_is_no_second_leader():
    generator = Generator(numbers=3, broken=0.0)
    known = {(1, 2002): 0.75}
    [first, *_], _, [start] = started(known, generator)
    digests = [d.digest for d in first.scored.destroys]  # type: ignore[union-attr]
    assert digests[0] == start.pair.destroy.digest
    assert len(digests) == len(set(digests))
    copies = [
        float(credit)
        for answers, group in zip(first.answers, first.groups["destroy"], strict=False)
        for program, credit in zip(answers.programs, group.credits, strict=True)
        if program is not None and program.digest == start.pair.destroy.digest
    ]
    assert copies
    assert set(copies) == {0.75}


def test_reading_the_state_is_seen_by_what_a_body_names():
    plain = pair_of(1, 2).destroy
    assert not reads_state(plain)
    used = plain.source.replace("return ", "steps_since_improvement and 1\n    return ")
    assert reads_state(replace(plain, source=used))
    renamed = plain.source.replace("steps_since_improvement", "s").replace(
        "return ", "s\n    return "
    )
    assert reads_state(replace(plain, source=renamed))
    assert not reads_state(
        replace(plain, source=used.replace("steps_since_improvement and", "1 and"))
    )


# --- whole runs -----------------------------------------------------------------------------------

TINY: dict[str, Any] = {
    "preset": "smoke", "generator": "grammar", "rounds": 2, "size": 8, "instances": 2,
    "mutation_groups": 1, "crossover_groups": 1, "responses": 2, "repairs_per_destroy": 2,
    "rollouts": 1, "steps": 4, "finalists": 0, "select": "utility", "on": (), "validate_on": (),
    "workers": 1,
}  # fmt: skip
SHORT: dict[str, Any] = TINY | {"rounds": 1, "instances": 1}
FINALS: dict[str, Any] = TINY | {
    "instances": 1, "finalists": 2, "select": "validation", "validation_size": 8,
    "validation_instances": 1, "validation_steps": 4,
}  # fmt: skip


@pytest.mark.slow
def test_a_run_from_start_pairs_is_the_same_with_any_workers_and_resumed(tmp_path, monkeypatch):
    quick_page(monkeypatch)
    begun = tmp_path / "one"
    discover("tsp", path=begun, **SHORT)
    pairs = ("shipped", str(begun))
    whole = discover("tsp", path=tmp_path / "a", start_pairs=pairs, **FINALS)
    discover("tsp", path=tmp_path / "b", start_pairs=pairs, **FINALS | {"workers": 2})
    for number, name in ((1, "destroy"), (2, "repair"), (0, "")):
        with pytest.raises(KeyboardInterrupt) if number else pytest.MonkeyPatch.context():
            discover("tsp", path=tmp_path / "c", start_pairs=pairs, resume=True,
                     observer=Stop(number, name), **FINALS)  # fmt: skip
    assert dump(tmp_path / "a") == dump(tmp_path / "b") == dump(tmp_path / "c")
    shipped = shipped_pair(TSP)
    assert whole.manifest["start_pairs"][0] == {
        "from": "shipped", "destroy": shipped.destroy.digest, "repair": shipped.repair.digest
    }  # fmt: skip
    names = [each.name for each in whole.programs if each.form == START]
    assert sorted(names) == ["D1.01", "D1.02", "R1.01", "R1.02"]
    assert whole.started == [
        "shipped (D1.01 with R1.01)", f"{begun} (D1.02 with R1.02)"
    ]  # fmt: skip
    assert [p.kind for p in whole.pairs].count(START) == 2
    page = report(whole, tmp_path / "page.html").read_text()
    assert "started from" in page
    assert "shipped (D1.01 with R1.01)" in page
    exported = tmp_path / "a" / "best.py"
    assert load_pair(exported).digest == whole.best.pair.digest


@pytest.mark.long
def test_start_pairs_are_kept_from_round_1_on_and_read_again_before(tmp_path):
    file = tmp_path / "own.py"
    save_pair(file, shipped_pair(TSP), "mine", TSP.interface, TSP.kit)
    for number, name, folder in ((1, "repair", "early"), (2, "repair", "late")):
        with pytest.raises(KeyboardInterrupt):
            discover("tsp", path=tmp_path / folder, start_pairs=(str(file),),
                     observer=Stop(number, name), **TINY | {"instances": 1})  # fmt: skip
    other = file.read_text().replace("0.35 * n", "0.36 * n")
    assert other != file.read_text()
    file.write_text(other)
    with pytest.raises(InputError, match="began with other start pairs"):
        discover(path=tmp_path / "early", resume=True)
    file.unlink()
    assert discover(path=tmp_path / "late", resume=True).status == "finished"
    with pytest.raises(InputError, match="began with other start pairs"):
        discover(path=tmp_path / "late", resume=True, rewind=1, start_pairs=())
    assert load_run(tmp_path / "late").rounds == 2


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--start-pairs", "nowhere.py"], "nowhere.py: no such file"),
        (["--start-pairs", "shipped", "shipped"], "the same pair as shipped; name it once"),
        (["--start-pairs", "shipped", "--kit", "none"], "module 'lns' is not available"),
        (["--start-pairs", "shipped", "--no-state"], "reads the steps since the last improvement"),
        (["--start-pairs", "cvrp.py"], "takes 6 arguments, the interface passes 4"),
        (["--start-pairs", "shipped", "--method", "eoh"], "start_pairs is given, and method is"),
        (["--start-pairs", "."], "holds no run"),
    ],
)  # fmt: skip
def test_what_cannot_be_started_from_is_refused_and_nothing_is_written(
    more, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    Path("cvrp.py").write_text(Path(get_problem("cvrp").pair).read_text())
    argv = ["discover", "tsp", "--preset", "smoke", "--generator", "grammar", "--out", "run"]
    assert main([*argv, *more]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not Path("run").exists()


@pytest.mark.long
def test_a_file_goes_before_the_pair_that_ships_as_it_does_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("shipped").write_bytes(Path(TSP.simple).read_bytes())
    found = discover("tsp", path="run", start_pairs=("shipped",), **SHORT)
    [start] = found.manifest["start_pairs"]
    assert start["from"] == str(tmp_path / "shipped")
    assert start["destroy"] == load_pair("shipped").destroy.digest
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert load_run(tmp_path / "run").config.search.start_pairs == (str(tmp_path / "shipped"),)


@pytest.mark.long
def test_a_run_for_another_problem_is_refused(tmp_path):
    discover("tsp", path=tmp_path / "tsp", **SHORT)
    with pytest.raises(InputError, match="is a run for tsp, not for cvrp"):
        discover("cvrp", path=tmp_path / "cvrp", start_pairs=(str(tmp_path / "tsp"),), **TINY)
    assert not (tmp_path / "cvrp").exists()


@pytest.mark.long
def test_a_manifest_with_other_start_pairs_than_can_be_is_refused(tmp_path):
    discover("tsp", path=tmp_path / "run", **SHORT)
    file = tmp_path / "run" / MANIFEST
    whole = json.loads(file.read_text())
    for wrong in (["x"], [{"from": "x"}], {"from": "x"}):
        file.write_text(json.dumps(whole | {"start_pairs": wrong}))
        with pytest.raises(InputError, match="start_pairs"):
            load_run(tmp_path / "run")


def test_no_start_pairs_change_nothing():
    before, _, _ = play(small())
    after, _, _ = play(small(start_pairs=("shipped",)))  # names alone read no files
    assert [r.best.utility for r in before if r.best] == [r.best.utility for r in after if r.best]
    assert not math.isnan(before[-1].best.utility)
