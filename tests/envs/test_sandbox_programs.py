"""The collection of hostile and lawful programs, each judged by its own header."""

import itertools
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from program_collection import (
    CPU_SECONDS,
    PROBLEMS,
    SEEDS,
    SHORT_CPU_SECONDS,
    SIZE,
    STEPS,
    Specimen,
    good_pair,
    specimens,
)

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Refusal, Rollouts, Status
from spo_jax.errors import Rejection

pytestmark = pytest.mark.long  # the whole collection is run before the first of them

HOSTILE, LAWFUL = specimens("hostile"), specimens("lawful")
FAILURES = {"rejected", "invalid", "crash", "timeout", "memory"}  # host_fault is none


@dataclass(frozen=True)
class Outcome:
    status: str
    reason: str
    best_cost: np.ndarray  # [T+1]
    code: np.ndarray  # [L]
    verdict: Refusal | None  # of LocalEvaluator.check


def evaluate(collection: list[Specimen], tmp: str) -> dict[str, Outcome]:
    """Everything in one run a problem, but what never ends in one that stops it earlier."""
    outcomes = {}
    for name, endless in itertools.product(PROBLEMS, (False, True)):
        problem = get_problem(name)
        instances = problem.sample(SIZE, 1, 7)
        mine = [s for s in collection if s.fields["problem"] == name and is_endless(s) == endless]
        if not mine:
            continue
        pairs = {s.name: pair for s in mine if (pair := s.pair(tmp)) is not None}
        limit = SHORT_CPU_SECONDS if endless else CPU_SECONDS
        with LocalEvaluator(problem, workers=2, cpu_seconds=limit) as e:
            rollouts = e.run(list(pairs.values()), instances, seeds=SEEDS, steps=STEPS)
            roles = {s.name: s.fields["role"] for s in mine}
            verdicts = e.check([getattr(pair, roles[key]) for key, pair in pairs.items()])
        for k, key in enumerate(pairs):
            outcomes[key] = outcome(rollouts, k, verdicts[k])
        for s in mine:
            if s.name not in pairs:
                outcomes[s.name] = refused_text(s)
    return outcomes


def is_endless(specimen: Specimen) -> bool:
    return specimen.expect == "timeout" or specimen.name.startswith("endless_")


def outcome(rollouts: Rollouts, k: int, verdict: Refusal | None) -> Outcome:
    status = Status(int(rollouts.status[k, 0, 0]))
    reason = str(rollouts.reason[k, 0, 0])
    return Outcome(
        status.label, reason, rollouts.best_cost[k, 0, 0], rollouts.code[k, 0, 0], verdict
    )


def refused_text(specimen: Specimen) -> Outcome:
    with pytest.raises(Rejection) as caught:
        specimen.program()
    nothing = np.full(STEPS + 1, np.nan)
    return Outcome("rejected", caught.value.reason, nothing, np.full(1, -1), caught.value.reason)


@pytest.fixture(scope="module")
def tmp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("forbidden")


@pytest.fixture(scope="module")
def hostile(tmp: Path) -> dict[str, Outcome]:
    return evaluate(HOSTILE, str(tmp))


@pytest.fixture(scope="module")
def lawful(tmp: Path) -> dict[str, Outcome]:
    return evaluate(LAWFUL, str(tmp))


TWINS = [s.name.removesuffix("_given") for s in LAWFUL if s.name.endswith("_given")]


def plain(specimen: Specimen, lawful: dict[str, Outcome]) -> Outcome:
    return lawful[f"base_{specimen.fields['problem']}_{specimen.fields['role']}"]


def test_the_collection_is_large() -> None:
    assert len(HOSTILE) >= 120
    assert len(LAWFUL) >= 80
    for collection in (HOSTILE, LAWFUL):
        kinds = {(s.fields["problem"], s.fields["role"]) for s in collection}
        assert len(kinds) == 4
    assert {s.expect for s in HOSTILE} == FAILURES | {"any-failure", "contained"}
    assert {s.expect for s in LAWFUL} == {"ok", "unstable"}


@pytest.mark.parametrize("specimen", LAWFUL, ids=lambda s: s.name)
def test_lawful(specimen: Specimen, lawful: dict[str, Outcome]) -> None:
    found = lawful[specimen.name]
    assert found.verdict is None
    assert (found.status, found.reason) == ("ok", "")
    assert np.isfinite(found.best_cost).all()
    assert (np.diff(found.best_cost) <= 0).all()


@pytest.mark.parametrize(
    "specimen", [s for s in LAWFUL if s.name.startswith("same_")], ids=lambda s: s.name
)
def test_lawful_without_influence(specimen: Specimen, lawful: dict[str, Outcome]) -> None:
    base = plain(specimen, lawful)
    assert np.array_equal(lawful[specimen.name].best_cost, base.best_cost)
    assert np.array_equal(lawful[specimen.name].code, base.code)


@pytest.mark.parametrize("twin", TWINS)
def test_arithmetic_on_what_is_given(twin: str, lawful: dict[str, Outcome]) -> None:
    """Whatever stands behind dist and demands, operators mean what they mean for an array."""
    given, array = lawful[f"{twin}_given"], lawful[f"{twin}_array"]
    assert given.status == array.status == "ok"
    assert np.array_equal(given.best_cost, array.best_cost)
    assert np.array_equal(given.code, array.code)


@pytest.mark.parametrize("specimen", HOSTILE, ids=lambda s: s.name)
def test_hostile(
    specimen: Specimen, hostile: dict[str, Outcome], lawful: dict[str, Outcome]
) -> None:
    found = hostile[specimen.name]
    if specimen.expect == "contained" and found.status == "ok":
        assert np.array_equal(found.best_cost, plain(specimen, lawful).best_cost)
        return
    assert found.status in FAILURES, found.reason
    if specimen.expect in FAILURES:
        assert found.status == specimen.expect, found.reason
    assert np.isnan(found.best_cost).all()
    assert (found.code == -1).all()
    if found.status == "rejected":
        assert found.verdict is not None, "check() lets through what run() refuses"
    word = specimen.fields.get("reason")
    assert word is None or re.search(rf"\b{re.escape(word)}\b", found.reason), found.reason


@pytest.mark.parametrize("specimen", HOSTILE, ids=lambda s: s.name)
def test_reasons_are_short_and_plain(specimen: Specimen, hostile: dict[str, Outcome]) -> None:
    reason = hostile[specimen.name].reason
    if hostile[specimen.name].status != "ok":
        assert reason
    assert len(reason) <= 400
    assert reason.isascii()
    assert reason.isprintable()


def test_nothing_was_written(hostile: dict[str, Outcome], tmp: Path) -> None:
    assert hostile
    assert list(tmp.iterdir()) == []


def test_lawful_results_do_not_depend_on_order_or_run(
    lawful: dict[str, Outcome], tmp: Path
) -> None:
    again = evaluate(LAWFUL[::-1], str(tmp))
    for name in (s.name for s in LAWFUL if s.expect == "ok"):
        first = lawful[name]
        assert again[name].status == first.status, name
        assert np.array_equal(again[name].best_cost, first.best_cost, equal_nan=True), name
        assert np.array_equal(again[name].code, first.code), name


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_partners_are_good(name: str) -> None:
    problem = get_problem(name)
    with LocalEvaluator(problem, workers=1, cpu_seconds=CPU_SECONDS) as e:
        rollouts = e.run([good_pair(name)], problem.sample(SIZE, 1, 7), seeds=SEEDS, steps=STEPS)
    assert rollouts.ok.all()
    assert rollouts.final_cost[0, 0, 0] < rollouts.initial_cost[0, 0, 0]
