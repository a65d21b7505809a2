"""The choice among finalists: who they are, what they are measured on, and who wins."""

from dataclasses import replace

import numpy as np
import pytest
from spo_fakes import Evaluator, Generator, small

from spo_jax.envs import evaluator as real
from spo_jax.envs import get_problem
from spo_jax.program import Pair, Program
from spo_jax.search.rounds import Best, Observer
from spo_jax.search.spo import Parts, discover
from spo_jax.search.store import Store, load_run
from spo_jax.search.validation import chosen, validate
from spo_jax.seeding import derive

TSP = get_problem("tsp")
DESTROY = "def destroy(dist, tour, z, rng):\n    return tour[2:], tour[:2]\n"
BACK = "def repair(dist, tour, removed, z, rng):\n    return removed + tour\n"
SHUFFLED = """
def repair(dist, tour, removed, z, rng):
    for node in removed:
        tour.insert(rng.randint(0, len(tour)), node)
    return tour
"""
BROKEN = "def repair(dist, tour, removed, z, rng):\n    return tour\n"


def best(repair: str, utility: float, number: int = 1) -> Best:
    pair = Pair(Program.from_source("destroy", DESTROY), Program.from_source("repair", repair))
    return Best(pair, utility, number)


def test_finalists_meet_on_instances_no_round_has_seen() -> None:
    config = small(validation_size=14, validation_instances=2, validation_steps=30, rollouts=2)
    finalists = [best(BACK, 0.9), best(SHUFFLED, 0.8), best(BROKEN, 0.7)]
    with real.Evaluator(TSP) as evaluator:
        validated = validate(config, TSP, evaluator, finalists, Observer())
        instances = TSP.sample(14, 2, derive(config.seed, "validation"))
        rollouts = evaluator.run([finalists[1].pair], instances, (0, 1), 30)
    # Putting nodes back where they were never improves; a broken pair has no utility.
    assert validated[0].validation == 0.0
    start, end = rollouts.initial_cost, rollouts.final_cost
    assert validated[1].validation == pytest.approx(np.mean((start - end) / start))
    assert np.isnan(validated[2].validation or 0.0)
    assert [replace(v, validation=None) for v in validated] == finalists
    assert chosen(validated) == validated[1]
    assert chosen(validated[2:]) is None
    assert chosen([]) is None
    tied = [replace(f, validation=0.5) for f in finalists]
    assert chosen(tied) == tied[0]


def test_a_run_ends_with_its_validated_pair(tmp_path) -> None:
    config = small(finalists=3, rounds=2)
    with Store.create(tmp_path / "run", {"config": config.to_dict()}) as store:
        parts = Parts(config, TSP, Evaluator(), Generator())
        discover(parts, store.state(), store.commit)
        highest = store.best()
        assert load_run(store.path).status == "running"  # this process has it
        named = store.candidates(3)
        values = [finalist.utility for finalist in named]
        assert values == sorted(values, reverse=True)
        assert named[0].utility == highest.utility  # type: ignore[union-attr]
        assert len({finalist.pair.destroy.digest for finalist in named}) == 3
        scores = [0.1, 0.3, 0.2]
        measured = [replace(f, validation=v) for f, v in zip(named, scores, strict=True)]
        store.commit_finalists(measured)
        assert store.best() == measured[1]
    run = load_run(tmp_path / "run")
    assert (run.status, run.best) == ("finished", measured[1])
    assert run.best_by_round[-1] == highest.utility  # type: ignore[union-attr]
