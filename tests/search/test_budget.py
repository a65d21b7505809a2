"""Budgets of time: when rounds are over, what is held back, and runs that end by the clock."""

import random
from typing import Any

import numpy as np
import pytest
from spo_fakes import Evaluator, small
from test_start import FINALS, Stop, pair_of

from spo_jax import load_run
from spo_jax.cli import main
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError
from spo_jax.runs.budget import USED, Budget, Spent
from spo_jax.runs.database.store import dump
from spo_jax.runs.database.tables import connect
from spo_jax.runs.discover import discover
from spo_jax.runs.folders import DATABASE
from spo_jax.search.instances import training_instances, validation_instances
from spo_jax.search.rounds import Best, Observer
from spo_jax.search.validation import controls_wanted, validate, work_of

TSP = get_problem("tsp")


class Clock:
    """A run whose rounds take what `rounds` says, and its clock."""

    def __init__(self, rounds: list[float]):
        self.rounds, self.time = rounds, 100.0
        self.done: list[float] = []

    def now(self) -> float:
        return self.time

    def spent(self) -> Spent:
        used = sum(self.done)
        return Spent(tuple(self.done), playing=used / 2, pairs=10 * len(self.done), used=used)

    def finish(self) -> None:
        self.done.append(self.rounds[len(self.done)])
        self.time += self.done[-1]


def made(seconds: float, work: float, rounds: list[float], cut: tuple[int, ...] = ()) -> int:
    """How many rounds fit. cut: rounds after which the run is killed and resumed later."""
    clock = Clock(rounds)
    budget = Budget(seconds, work, clock.spent, clock.now(), clock.now)
    while not budget.over():
        clock.finish()
        if len(clock.done) in cut:
            clock.time += 1e6  # nobody ran it
            budget = Budget(seconds, work, clock.spent, clock.now(), clock.now)
    return len(clock.done)


@pytest.mark.parametrize(
    ("seconds", "work", "due"),
    [
        (100, 0, 10),  # rounds of 10 s
        (109, 0, 10),
        (99, 0, 9),
        (1, 0, 1),  # the first one always begins
        (100, 40, 8),  # a pair takes 0.5 s: 20 s for the validation
        (100, 1000, 1),
    ],
)
def test_rounds_that_fit(seconds, work, due):
    assert made(seconds, work, [10.0] * 20) == due
    assert made(seconds, work, [10.0] * 20, cut=(1, 3, 5)) == due


def test_the_next_round_is_judged_by_the_last_and_the_mean():
    assert made(99, 0, [10, 10, 40, 40]) == 3  # 60 s gone: another 40 s do not fit
    assert made(100, 0, [10, 10, 40, 40, 40]) == 4
    assert made(67, 0, [20, 20] + [2] * 20) == 14  # 3 s are left, and the mean is 4.6 s


def test_no_round_begins_that_is_judged_to_end_too_late():
    rng = random.Random(5)
    for _ in range(300):
        rounds = [rng.uniform(1, 30) for _ in range(200)]
        seconds, work = rng.uniform(1, 400), rng.choice([0.0, rng.uniform(0, 100)])
        cut = tuple(rng.sample(range(1, 20), 3))
        count = made(seconds, work, rounds, cut)
        assert 1 <= count == made(seconds, work, rounds)
        for k in range(1, count + 1):
            done = rounds[:k]
            held = work * (sum(done) / 2) / (10 * k)
            fits = seconds - sum(done) >= held + max(done[-1], sum(done) / k)
            assert fits == (k < count)


class Counting(Evaluator):
    """Adds up the steps of rollouts, each as dear as its instance is large."""

    def __init__(self) -> None:
        super().__init__(refuse=lambda n: False)
        self.steps = 0

    def run(self, pairs: Any, instances: Any, seeds: Any = (0, 1), steps: int = 100, **more: Any):
        self.steps += len(pairs) * len(seeds) * steps * sum(each.size for each in instances)
        return super().run(pairs, instances, seeds, steps, **more)


@pytest.mark.parametrize("halving", [False, True])
@pytest.mark.parametrize("on", [(), ("uniform:7x2@1", "uniform:12x1@1")])
def test_the_work_of_a_validation_is_what_it_does(halving, on):
    config = small(finalists=6, halving=halving, on=on, validation_steps=11, rollouts=2,
                   validate_on=("uniform:5x5@3", "uniform:9x3@3"))  # fmt: skip
    training, validation = training_instances(config, TSP), validation_instances(config, TSP)
    best = [Best(pair_of(2 * k, 2 * k + 1), 0.5, 1) for k in range(6)]
    controls = [Best(pair_of(99, 100 + k), 0.5, 1) for k in range(controls_wanted(config))]
    evaluator = Counting()
    evaluator.verdict = lambda pair: (0, 0.25)
    validate(config, TSP, evaluator, best, controls, Observer(), instances=validation)
    done = evaluator.steps
    evaluator.steps = 0
    evaluator.run([best[0].pair], training, range(2), config.evaluation.steps)
    expected = work_of(config, TSP, training, validation)
    if halving:  # the highest J is measured on fresh instances besides the last few
        assert expected == pytest.approx(done / evaluator.steps, rel=0.1)
    else:
        assert expected == pytest.approx(done / evaluator.steps)
    assert work_of(small(finalists=0), TSP, training, []) == 0.0


# --- whole runs -----------------------------------------------------------------------------------

TIMED = {name: value for name, value in FINALS.items() if name != "rounds"}


def seconds_of(path: Any, stage: str) -> list[float]:
    return [each.seconds for each in load_run(path).timings if each.stage == stage]


@pytest.mark.long
def test_a_run_by_the_clock_is_the_run_of_as_many_rounds(tmp_path):
    timed = discover("tsp", path=tmp_path / "timed", minutes=0.05, **TIMED)
    assert timed.status == "finished"
    assert timed.planned == timed.rounds == timed.manifest["rounds"] >= 1
    counted = discover("tsp", path=tmp_path / "counted", rounds=timed.rounds, **TIMED)
    tables = dump(tmp_path / "timed"), dump(tmp_path / "counted")
    for table in tables:
        table["config"] = [row for row in table["config"] if row[0] != "rounds"]
    assert tables[0] == tables[1]
    assert timed.best.pair.digest == counted.best.pair.digest
    used = seconds_of(tmp_path / "timed", USED)
    assert len(used) == timed.rounds
    assert np.all(np.diff(used) > 0)


@pytest.mark.long
def test_a_resumed_run_has_what_is_left_of_its_budget(tmp_path, capsys):
    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        discover("tsp", path=path, minutes=60, observer=Stop(2, "repair"), **TIMED)
    run = load_run(path)
    assert (run.status, run.rounds, run.planned, run.progress) == ("interrupted", 1, None, "1")
    with connect(path / DATABASE) as db:
        db.execute("UPDATE timings SET seconds = 3600 WHERE stage = 'used'")
    db.close()
    run = discover(path=path, resume=True, verbose=True)
    assert (run.status, run.rounds, run.planned) == ("finished", 1, 1)
    out = capsys.readouterr().out
    assert "depends on the speed of this machine" in out
    assert "1 round in 1:00:" in out
    assert "--rounds 1 in place of --minutes" in out
    again = discover(path=path, resume=True)
    assert again.rounds == 1  # a finished run stays as it is


@pytest.mark.long
def test_a_run_that_is_killed_in_its_validation_ends_there(tmp_path):
    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        discover("tsp", path=path, minutes=0.01, observer=Stop(0, "validation"), **TIMED)
    assert load_run(path).status == "interrupted"
    run = discover(path=path, resume=True)
    assert (run.status, run.rounds) == ("finished", 1)
    with pytest.raises(InputError, match="began with minutes, so it goes on with it"):
        discover(path=path, resume=True, rewind=1, minutes=None)


@pytest.mark.long
def test_what_cannot_go_together_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    argv = ["discover", "tsp", "--preset", "smoke", "--generator", "grammar", "--minutes", "1"]
    for more, message in (
        (["--rounds", "3"], "--minutes takes the place of --rounds"),
        (["--method", "eoh"], "minutes is given, and method is eoh"),
        (["--minutes", "0"], "minutes is '0'; it must be a number from 0.01"),
    ):
        assert main([*argv, *more]) == 2
        err = capsys.readouterr().err
        assert message in err
        assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())
    discover("tsp", path=tmp_path / "counted", **(FINALS | {"rounds": 1}))
    with pytest.raises(InputError, match="began without minutes, so it goes on without it"):
        discover(path=tmp_path / "counted", resume=True, minutes=1.0)
