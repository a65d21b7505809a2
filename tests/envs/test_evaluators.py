"""Evaluators that are not ours: what the protocol asks, and where one is taken."""

import re
from dataclasses import replace

import pytest

from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.evaluation import evaluate
from spo_jax.envs.run.adaptive import Adaptation
from spo_jax.envs.run.evaluator import require_rollouts, require_searches
from spo_jax.envs.run.factory import get_evaluator
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program

TSP = get_problem("tsp")
PAIR = Pair(
    Program("destroy", "def destroy(dist, tour, z, rng):\n    return tour[1:], tour[:1]\n"),
    Program("repair", "def repair(dist, tour, removed, z, rng):\n    return tour + removed\n"),
)


class Wrapped:
    """An evaluator that is no subclass of ours."""

    def __init__(self, problem, workers, **settings):
        self.inner = LocalEvaluator(problem, workers, **settings)
        self.layers = {"elsewhere": True}

    def __enter__(self):
        self.inner.__enter__()
        return self

    def __exit__(self, *exc):
        self.inner.__exit__(*exc)

    def check(self, programs):
        return self.inner.check(programs)

    def run(self, pairs, instances, seeds=(0, 1), steps=100, **options):
        return self.inner.run(pairs, instances, seeds, steps, **options)

    def adaptive(self, destroys, repairs, instances, seeds, steps, rules, **options):
        return self.inner.adaptive(destroys, repairs, instances, seeds, steps, rules, **options)


class Unmanaged(Wrapped):
    __enter__ = None  # type: ignore[assignment]


class Bare(Wrapped):
    def __init__(self, problem, workers, **settings):
        pass


class Narrow(Wrapped):
    def run(self, pairs, instances):
        return None


class Static(Wrapped):
    adaptive = None  # type: ignore[assignment]


class Sizeless(Wrapped):
    def __init__(self, problem):
        pass


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Unmanaged, "made a Unmanaged: an evaluator is a context manager and has layers"),
        (Bare, "made a Bare: an evaluator is a context manager and has layers"),
        (Narrow, r"its method run must take \(pairs, instances, seeds, steps, \*, seconds"),
        (Static, "has no method adaptive, which spo_jax.envs.run.evaluator.Evaluator requires"),
        (Sizeless, r"must take \(problem, workers, \*, seed"),
        (lambda problem, workers, **settings: 3, "made a int"),
        (3, "is of type int, not a function"),
    ],
)
def test_an_evaluator_is_what_the_protocol_says(monkeypatch, kind, message):
    monkeypatch.setattr("spo_jax.registry.imported", lambda *args, **options: kind)
    with pytest.raises(InputError, match=rf"^evaluator 'm:x'.*{message}"):
        get_evaluator("m:x")(TSP, 1, seed=0)


def test_an_evaluator_of_ones_own(monkeypatch):
    assert isinstance(get_evaluator("local")(TSP, 1, seed=0), LocalEvaluator)
    monkeypatch.setattr("spo_jax.registry.imported", lambda *args, **options: Wrapped)
    report = evaluate(PAIR, TSP, ["uniform:8x1"], steps=3, seeds=1, references="none",
                      evaluator=get_evaluator("m:x"))  # fmt: skip
    assert report.sandbox == {"elsewhere": True}


def test_searches_of_another_shape_are_refused():
    programs, rules = [PAIR.destroy], Adaptation()
    with LocalEvaluator(TSP) as evaluator:
        found = evaluator.adaptive(
            programs, [PAIR.repair], TSP.sample(8, 2, 0), (0, 1, 2), 4, rules
        )
    require_searches(found, 2, 3, 4)
    for other, message in (
        (None, "returned a NoneType: it must return AdaptiveRuns of shape (2, 3, 4)"),
        (replace(found, outcomes=found.outcomes[..., 1:]), "outcomes of shape (2, 3, 3)"),
        (replace(found, drawn=found.drawn[..., 1:]), "drawn of shape (2, 3, 4, 1)"),
        (replace(found, rollouts=None), "returned a NoneType: it must return Rollouts"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            require_searches(other, 2, 3, 4)


def test_rollouts_of_another_shape_are_refused():
    with LocalEvaluator(TSP) as evaluator:
        rollouts = evaluator.run([PAIR], TSP.sample(8, 1, 0), (0,), 3)
    require_rollouts(rollouts, 1, 1, 1, 3)
    with pytest.raises(InputError, match=r"best_cost of shape \(1, 1, 1, 4\).*\(2, 1, 1, 4\)"):
        require_rollouts(rollouts, 2, 1, 1, 3)
    with pytest.raises(InputError, match="returned a NoneType: it must return Rollouts"):
        require_rollouts(None, 2, 1, 1, 3)
