"""What the loop makes of credits: baselines from populations, and who is selected by what."""

import math

import numpy as np
import pytest
from spo_fakes import Evaluator, Generator, answer, small

from spo_jax.envs import get_problem
from spo_jax.program import Program
from spo_jax.search.credit import SCHEMES, Credits, Payoff, get_credit
from spo_jax.search.payoffs import cross_play_candidates
from spo_jax.search.population import Member
from spo_jax.search.spo import Parts, discover

TSP = get_problem("tsp")


class Watch:
    """A scheme by name that keeps what it was asked and what it said."""

    def __init__(self, name):
        self.scheme = get_credit(name)
        self.rounds = []

    def __call__(self, payoff, *, top):
        credits = self.scheme(payoff, top=top)
        self.rounds.append((payoff, credits))
        return credits


def play(name, **changes):
    """(the watch, rounds) of a discovery with fakes."""
    watch, rounds = Watch(name), []
    config = small(rounds=3, responses=4, repairs_per_destroy=8, **changes)
    discover(Parts(config, TSP, Evaluator(), Generator(), watch), None, rounds.append)
    return watch, rounds


def best_parent(program, population):
    scores = [m.score for m in population if m.program.digest in program.parents]
    return max(scores, default=math.nan)


def test_baselines_are_the_scores_of_the_best_parents():
    watch, rounds = play("relative-to-parent")
    first = watch.rounds[0][0]
    assert np.isnan(first.leader_baseline).all()
    assert np.isnan(first.follower_baseline).all()
    for before, done, (payoff, _) in zip(rounds, rounds[1:], watch.rounds[1:], strict=False):
        program = {p.digest: p for p in done.programs}
        expected = [best_parent(program[d], before.destroys) for d in payoff.destroys]
        np.testing.assert_array_equal(payoff.leader_baseline, expected)
        assert np.isfinite(expected).all()  # from the second round on everyone has parents
        # A repair of one source may stand in several rows, written from other parents.
        once = {}
        for i, row in enumerate(payoff.repairs):
            for j, digest in enumerate(row):
                once.setdefault(digest, []).append((i, j))
        single = {digest: places[0] for digest, places in once.items() if len(places) == 1}
        assert len(single) > 10
        for digest, place in single.items():
            bar = best_parent(program[digest], before.repairs)
            assert payoff.follower_baseline[place] == bar


@pytest.mark.parametrize("name", SCHEMES)
def test_survivors_have_the_score_of_the_selection(name):
    watch, rounds = play(name)
    scores = {}
    for payoff, credits in watch.rounds:
        for digest, score in zip(payoff.destroys, credits.selected_by.leader, strict=True):
            scores.setdefault(digest, set()).add(score)
    for done in rounds:
        assert done.destroys
        for member in done.destroys:
            assert member.score in scores[member.program.digest]


def repair(n):
    source = answer("repair", n).text.split("```python\n")[1].split("```")[0]
    return Program("repair", source, f"number {n}")


def test_who_enters_cross_play():
    responses = [[repair(1), repair(2)], [repair(3), repair(4)]]
    utility = np.array([[0.9, 0.5], [0.6, 0.8]])
    payoff = Payoff(utility, ("d", "e"), tuple(tuple(r.digest for r in row) for row in responses))
    old = Member(repair(5), 0.1, 1)
    config = small(cross_play_candidates=3)

    def entered(credits):
        found = cross_play_candidates((old,), responses, payoff, credits, config, 2)
        return [m.program.strategy.split()[1] for m in found]

    assert entered(get_credit("stackelberg")(payoff, top=2)) == ["1", "4", "3", "5"]
    # Both best answers have no regret, so J decides between them, then 3 (-0.2) before 2 (-0.4).
    assert entered(get_credit("regret")(payoff, top=2)) == ["1", "4", "3", "5"]
    # By rank all first places come first, and of the second places the better one.
    by_rank = Payoff(np.array([[0.9, 0.85], [0.6, 0.8]]), payoff.destroys, payoff.repairs)
    credits = get_credit("rank")(by_rank, top=2)
    found = cross_play_candidates((old,), responses, by_rank, credits, config, 2)
    assert [m.program.strategy.split()[1] for m in found] == ["1", "4", "2", "5"]
    # What was chosen by another measure is not chosen by the credit itself.
    turned = Credits(np.zeros(2), utility, Credits(np.zeros(2), -utility))
    assert entered(turned) == ["2", "3", "4", "5"]
