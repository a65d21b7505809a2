"""`run.payoff(k)` is what the credit scheme of round k was called with: a spy keeps it."""

import sqlite3
from collections import Counter
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from spo_fakes import Evaluator, Generator, Stop, number, small

import spo_jax
from spo_jax import InputError, Pair, Payoff
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.rollouts import Status
from spo_jax.program import Program
from spo_jax.runs.database.store import Store
from spo_jax.runs.discovery.loop import discover
from spo_jax.runs.folders import DATABASE
from spo_jax.runs.run import Run, load_run
from spo_jax.search.credit import CREDITS, CrossPlay, asking
from spo_jax.search.parts import Parts
from spo_jax.search.population import leader_panel

TSP = get_problem("tsp")
SEEING = ["stackelberg", "lower-bound", "relative-to-parent"]
HOST = Status.HOST_FAULT.label
ASKING = ["counterfactual", "shapley", "fair-parent"]


class Spy:
    """A scheme by name that keeps the payoffs that it is called with, and what it paid."""

    def __init__(self, name: str):
        self.scheme: Any = CREDITS[name]
        self.payoffs: list[Payoff] = []
        self.paid: list[spo_jax.Credits] = []
        for mark in ("asks", "pays_failures"):
            if hasattr(self.scheme, mark):
                setattr(self, mark, getattr(self.scheme, mark))

    def __call__(self, payoff: Payoff, *, top: int) -> spo_jax.Credits:
        self.payoffs.append(payoff)
        self.paid.append(self.scheme(payoff, top=top))
        return self.paid[-1]


def same(found: Any, seen: Any) -> None:
    """Every field is the same: arrays to the bit, programs with all that they have."""
    for field in fields(seen):
        one, other = getattr(found, field.name), getattr(seen, field.name)
        if isinstance(other, CrossPlay):
            same(one, other)
        elif isinstance(other, np.ndarray):
            assert (one.dtype, one.shape) == (other.dtype, other.shape), field.name
            np.testing.assert_array_equal(one, other, field.name)
        elif field.name == "asked":
            assert list(one) == list(other)
            np.testing.assert_array_equal(list(one.values()), list(other.values()))
        else:
            assert one == other, field.name


def equal_credits(one: spo_jax.Credits, other: spo_jax.Credits) -> None:
    np.testing.assert_array_equal(one.leader, other.leader)
    np.testing.assert_array_equal(one.follower, other.follower)


def judged(pair: Pair) -> tuple[Status, float | None]:
    """A few pairs fail, of which more would leave no repair with a score."""
    draw = number("judged", pair.digest)
    if draw < 0.06:
        return Status.CRASH, None
    return Status.OK, round(512 * draw) / 1024


def verdict(pair: Pair) -> tuple[Status, float | None]:
    """As `judged`, but the host loses some of the pairs for two evaluations, which is one round."""
    if number("host", pair.digest) < 0.08:
        tries[pair.digest] += 1
        if tries[pair.digest] <= 2:
            return Status.HOST_FAULT, None
    return judged(pair)


tries: Counter[str] = Counter()


class Classical(type(TSP)):  # type: ignore[misc]
    """The TSP with two classical destroys, which do not call themselves so."""

    def classical_destroys(self) -> tuple[Program, ...]:
        source = "def destroy(dist, current_tour, steps_since_improvement, rng):\n"
        source += "    return current_tour[{0}:], current_tour[:{0}]\n"
        numbered = (source.format(n) for n in (777, 666))
        return tuple(Program.from_source("destroy", text, "of old") for text in numbered)


def played(tmp_path: Any, spy: Spy, more: Any = None, problem: Any = TSP, **given: Any) -> Run:
    """A run with fakes whose programs come again and again; it fails now and then."""
    tries.clear()
    settings = small(responses=4, repairs_per_destroy=8, cross_play_candidates=6, **given)
    Store.create(tmp_path / "run", {"config": settings.flat()}).__exit__()
    with Store.reopen(tmp_path / "run") as store:
        generator = Generator(numbers=9)
        options = {"learning_credit": None} | (more or {})
        parts = Parts(settings, problem, Evaluator(verdict), generator, spy, **options)
        discover(parts, None, store.commit)
    return load_run(tmp_path / "run")


# --- the payoff -----------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("name", [*SEEING, *ASKING])
def test_it_is_what_the_scheme_saw_and_pays_what_it_paid(tmp_path, name):
    spy = Spy(name)
    run = played(tmp_path, spy)
    assert len(spy.payoffs) == run.rounds == 4
    for k, (seen, paid) in enumerate(zip(spy.payoffs, spy.paid, strict=True), 1):
        payoff = run.payoff(k)
        assert type(payoff) is Payoff
        same(payoff, seen)
        again = CREDITS[name](payoff, top=run.config.search.top_responses)
        kept = run.credits(k)
        for one in (paid, kept):
            equal_credits(again, one)  # type: ignore[arg-type]
        chosen = again.selected_by
        np.testing.assert_array_equal(chosen.leader, kept.leader_selection)
        np.testing.assert_array_equal(chosen.follower, kept.follower_selection)
    # The cases are there: unknown cells of the cross-play, failures of both kinds, asked pairs, and
    # pairs that the host lost and that a later round has evaluated.
    crossed = np.concatenate([each.cross_play.utility.ravel() for each in spy.payoffs])
    assert 0 < np.isnan(crossed).sum() < crossed.size
    assert np.isfinite(spy.payoffs[-1].follower_baseline).any()
    assert any(each.failed.any() for each in spy.payoffs)
    lost = [
        (payoff.destroys[i].digest, payoff.repairs[i][j].digest)
        for k, payoff in enumerate(spy.payoffs, 1)
        for i, j in np.argwhere(run.reasons(k) == f"{HOST}: because {HOST}")
    ]
    now = {(run[p.destroy].digest, run[p.repair].digest): p.status for p in run.pairs}
    assert {now[pair] for pair in lost} >= {"ok", HOST}
    assert any(each.asked for each in spy.payoffs) == (name in ASKING)


@pytest.mark.long
def test_other_schemes_can_be_called_on_it(tmp_path):
    spy = Spy("shapley")
    run = played(tmp_path, spy, rounds=2)
    for k in range(1, run.rounds + 1):
        payoff = run.payoff(k)
        for name in CREDITS:
            equal_credits(CREDITS[name](payoff, top=2), CREDITS[name](spy.payoffs[k - 1], top=2))


@pytest.mark.long
def test_pairs_that_the_updates_credit_asked_for_are_in_it(tmp_path):
    spy, learning = Spy("shapley"), Spy("fair-parent")
    run = played(tmp_path, spy, {"learning_credit": learning})
    for k in range(1, run.rounds + 1):
        same(run.payoff(k), spy.payoffs[k - 1])
        same(run.payoff(k), learning.payoffs[k - 1])
        assert run.payoff(k).asked or k == 1


def without_the_classical(destroys: Any, context: Any) -> Any:
    """A panel that leaves out the first of the classical destroys, and has the other one first."""
    return (context.classical[1], *leader_panel(destroys, context)[:1])


@pytest.mark.parametrize("panel", [leader_panel, without_the_classical])
@pytest.mark.parametrize("name", ["stackelberg", "counterfactual"])
def test_classical_destroys_are_in_it(tmp_path, name, panel):
    spy = Spy(name)
    run = played(tmp_path, spy, {"panel": panel}, Classical(), panel_classical=True)
    for k in range(1, run.rounds + 1):
        same(run.payoff(k), spy.payoffs[k - 1])
        assert run.payoff(k).cross_play.destroys[-2:] == Classical().classical_destroys()
    assert np.isfinite(run.payoff(2).cross_play.utility[-1]).any()


def test_a_scheme_may_ask_for_what_is_known(tmp_path):
    """No pair of a round that asks for its own responses has the kind `credit`."""

    def asks(payoff: Payoff, *, top: int) -> list[Pair]:
        rows = zip(payoff.destroys, payoff.repairs, strict=True)
        return [Pair(destroy, repair) for destroy, row in rows for repair in row if repair]

    spy = Spy("stackelberg")
    asking(asks)(spy)  # type: ignore[type-var]
    run = played(tmp_path, spy)
    assert "credit" not in set(run.pairs.column("kind"))
    for k in range(1, run.rounds + 1):
        assert spy.payoffs[k - 1].asked
        same(run.payoff(k), spy.payoffs[k - 1])


# --- of a run of discovery ------------------------------------------------------------------------


@pytest.mark.long
def test_of_a_run_that_is_stopped_and_goes_on(tmp_path):
    """From start pairs, on CVRP instances with the classical panel, rewound and with a scheme that
    asks; a spy sees the rounds that are played again once more.
    """
    given: dict[str, Any] = {
        "preset": "smoke", "rounds": 3, "size": 8, "instances": 2, "rollouts": 2, "steps": 4,
        "generator": "grammar", "update": "none", "workers": 1, "finalists": 0, "select": "utility",
        "start_pairs": ("shipped",), "panel_classical": True, "path": tmp_path / "run",
        "mutation_groups": 1, "crossover_groups": 1, "responses": 2, "repairs_per_destroy": 4,
        "cross_play_candidates": 2,
    }  # fmt: skip
    for k, name, rewind in ((1, "repair", None), (3, "cross-play", None), (0, "", 1)):
        spy = Spy("counterfactual")
        with pytest.raises(KeyboardInterrupt) if k else pytest.MonkeyPatch.context():
            spo_jax.discover(
                "cvrp", credit=spy, observer=Stop(k, name), resume=True, rewind=rewind, **given
            )
        if k == 3:
            first = spy.payoffs[0]
    run = load_run(tmp_path / "run")
    assert (run.status, len(spy.payoffs)) == ("finished", 2)
    for k, seen in enumerate((first, *spy.payoffs), 1):
        same(run.payoff(k), seen)
    assert run.payoff(1).destroys[0].form == "start"
    assert run.payoff(1).leader_baseline.shape == run.credits(1).leader.shape
    assert run.payoff(1).cross_play.destroys[0].form == "start"
    assert run.payoff(1).scores.shape[2:] == (2, 2)
    assert run.payoff(3).asked


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_of_start_pairs_that_share_programs(tmp_path, order):
    """Two of one destroy, one of which fails, and a repair that comes twice."""
    from test_start import Worth, pair_of

    from spo_jax.search.sampling.start import StartPair, record
    from spo_jax.search.spo import Spo

    worth = [((1, 2), 0.5), ((3, 2), 0.25), ((1, 4), 0.75), ((3, 5), None)]
    known = dict([worth[k] for k in order] + worth[3:])
    start = [StartPair.of(f"{d}-{r}", pair_of(d, r)) for d, r in known]
    spy, settings = Spy("shapley"), small(rounds=2, responses=4, repairs_per_destroy=8)
    what = {"config": settings.flat(), "start_pairs": record(start)}
    Store.create(tmp_path / "run", what).__exit__()
    with Store.reopen(tmp_path / "run") as store:
        parts = Parts(settings, TSP, Worth(known), Generator(numbers=9), spy)
        discover(parts, None, store.commit, Spo(tuple(start)))
    run = load_run(tmp_path / "run")
    for k in (1, 2):
        same(run.payoff(k), spy.payoffs[k - 1])
    assert len(run.payoff(1).cross_play.destroys) == 2


# --- reasons and scores ---------------------------------------------------------------------------


@pytest.mark.long
def test_reasons_are_those_of_the_pairs(tmp_path):
    run = played(tmp_path, Spy("stackelberg"))
    seen = set()
    for k in range(1, run.rounds + 1):
        payoff, why = run.payoff(k), run.reasons(k)
        assert why.shape == payoff.utility.shape
        there = np.array([[j < len(row) for j in range(8)] for row in payoff.repairs])
        np.testing.assert_array_equal(why != "", there & np.isnan(payoff.utility))
        for i, j in np.argwhere(why != ""):
            repair = payoff.repairs[i][j]
            assert repair is not None
            status, _ = judged(Pair(payoff.destroys[i], repair))
            expected = status if payoff.failed[i, j] else Status.HOST_FAULT
            assert why[i, j] == f"{expected.label}: because {expected.label}"
            seen.add(expected)
    assert seen == {Status.CRASH, Status.HOST_FAULT}


@pytest.mark.long
def test_pairs_have_their_scores(tmp_path):
    run = spo_jax.discover(
        "tsp", path=tmp_path / "run", preset="smoke", rounds=1, instances=3, rollouts=2, size=8,
        steps=4, responses=2, repairs_per_destroy=4, finalists=0, select="utility",
        generator="grammar", workers=1,
    )  # fmt: skip
    scores = run.pairs.column("scores")
    assert scores.shape == (len(run.pairs), 3, 2)
    np.testing.assert_allclose(scores.mean(axis=(1, 2)), run.pairs.column("utility"), rtol=1e-12)
    payoff, names = run.payoff(1), run.credits(1)
    for pair, own in zip(run.pairs, scores, strict=True):
        for i, j in np.argwhere(names.repairs == pair.repair):
            if names.destroys[i] == pair.destroy:
                np.testing.assert_array_equal(payoff.scores[i, j], own)


def test_pairs_that_failed_have_scores_of_nan(tmp_path):
    run = played(tmp_path, Spy("stackelberg"))
    scores = run.pairs.column("scores")
    assert scores.shape == (len(run.pairs), 2, 2)
    for each, own in zip(run.pairs, scores, strict=True):
        assert np.isnan(own).all() == (each.status != "ok")


# --- older runs -----------------------------------------------------------------------------------


def older(run: Run) -> Run:
    """As a version left it that did not keep what schemes ask for."""
    with sqlite3.connect(run.path / DATABASE) as db:
        for table in ("asked", "classical", "digests"):
            db.execute(f"DROP TABLE {table}")
    db.close()
    return load_run(run.path)


@pytest.mark.long
def test_an_older_run_has_the_payoffs_of_a_scheme_that_asks_for_nothing(tmp_path):
    spy = Spy("relative-to-parent")
    run = older(played(tmp_path, spy))
    for k in range(1, run.rounds + 1):
        same(run.payoff(k), spy.payoffs[k - 1])


@pytest.mark.parametrize(
    ("name", "problem", "lacks"),
    [
        ("shapley", TSP, "which pairs its credit scheme asked for"),
        ("stackelberg", Classical(), "the problem's classical destroys"),
    ],
)
def test_an_older_run_says_what_it_lacks(tmp_path, name, problem, lacks):
    spy, classical = Spy(name), problem is not TSP
    run = older(played(tmp_path, spy, problem=problem, panel_classical=classical))
    with pytest.raises(InputError, match=lacks) as error:
        run.payoff(2)
    assert str(error.value).startswith(f"{run.path}: ")
    np.testing.assert_array_equal(run.credits(2).leader, spy.paid[1].leader)
    assert run.pairs.column("scores").shape[1:] == (2, 2)


def test_a_method_without_credits_has_no_payoffs(tmp_path):
    run = spo_jax.discover(
        "tsp", path=tmp_path / "run", preset="smoke", method="eoh", rounds=1, size=8, instances=1,
        rollouts=1, steps=3, finalists=0, select="utility", generator="grammar", workers=1,
    )  # fmt: skip
    for ask in (run.payoff, run.reasons, run.credits):
        with pytest.raises(InputError, match="the method eoh has no credits"):
            ask(1)
        with pytest.raises(InputError, match="no round 7"):
            ask(7)
