"""What the loop makes of credits: baselines from populations, and who is selected by what."""

import math

import numpy as np
import pytest
from spo_fakes import Evaluator, Generator, answer, number_in, payoff_with, small

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.rollouts import Status
from spo_jax.program import Program
from spo_jax.runs.discovery.loop import discover
from spo_jax.search.credit import CREDITS, Credits
from spo_jax.search.parts import Parts
from spo_jax.search.payoffs import cross_play_candidates
from spo_jax.search.population import Member
from spo_jax.search.rounds import Updater

TSP = get_problem("tsp")


class Watch:
    """A scheme by name that keeps what it was asked and what it said."""

    def __init__(self, name):
        self.scheme = CREDITS[name]
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


@pytest.mark.long
def test_baselines_are_the_scores_of_the_best_parents():
    watch, rounds = play("relative-to-parent")
    first = watch.rounds[0][0]
    assert np.isnan(first.leader_baseline).all()
    assert np.isnan(first.follower_baseline).all()
    for before, done, (payoff, _) in zip(rounds, rounds[1:], watch.rounds[1:], strict=False):
        program = {p.digest: p for p in done.programs}
        expected = [best_parent(d, before.destroys) for d in payoff.destroys]
        np.testing.assert_array_equal(payoff.leader_baseline, expected)
        assert np.isfinite(expected).all()  # from the second round on everyone has parents
        # A repair of one source may stand in several rows, written from other parents.
        once = {}
        for i, row in enumerate(payoff.repairs):
            for j, repair in enumerate(row):
                once.setdefault(repair.digest, []).append((i, j))
        single = {digest: places[0] for digest, places in once.items() if len(places) == 1}
        assert len(single) > 10
        for digest, place in single.items():
            bar = best_parent(program[digest], before.repairs)
            assert payoff.follower_baseline[place] == bar


@pytest.mark.long
@pytest.mark.parametrize("name", CREDITS)
def test_survivors_have_the_score_of_the_selection(name):
    watch, rounds = play(name)
    scores = {}
    for payoff, credits in watch.rounds:
        for destroy, score in zip(payoff.destroys, credits.selected_by.leader, strict=True):
            scores.setdefault(destroy.digest, set()).add(score)
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
    payoff = payoff_with(utility, ("d", "e"), responses)
    old = Member(repair(5), 0.1, 1)
    config = small(cross_play_candidates=3)

    def entered(credits):
        found = cross_play_candidates((old,), responses, payoff, credits, config, 2)
        return [m.program.strategy.split()[1] for m in found]

    assert entered(CREDITS["stackelberg"](payoff, top=2)) == ["1", "4", "3", "5"]
    # Both best answers have no regret, so J decides between them, then 3 (-0.2) before 2 (-0.4).
    assert entered(CREDITS["regret"](payoff, top=2)) == ["1", "4", "3", "5"]
    # By rank all first places come first, and of the second places the better one.
    by_rank = payoff_with(np.array([[0.9, 0.85], [0.6, 0.8]]), payoff.destroys, payoff.repairs)
    credits = CREDITS["rank"](by_rank, top=2)
    found = cross_play_candidates((old,), responses, by_rank, credits, config, 2)
    assert [m.program.strategy.split()[1] for m in found] == ["1", "4", "2", "5"]
    # What was chosen by another measure is not chosen by the credit itself.
    turned = Credits(np.zeros(2), utility, Credits(np.zeros(2), -utility))
    assert entered(turned) == ["2", "3", "4", "5"]


# --- a credit that the update alone learns from ---------------------------------------------------

# J of destroys 1 to 3 with four repairs each. The means of the best two are 0.75, 0.5 and 0.625,
# those of all four 0.375, 0.5 and 0.4375: Stackelberg credit orders them 1, 3, 2, and shared credit
# 2, 3, 1.
HAND = [[1.0, 0.5, 0.0, 0.0], [0.5, 0.5, 0.5, 0.5], [0.75, 0.5, 0.25, 0.25]]
BEST_TWO, ALL_FOUR = [0.75, 0.5, 0.625], [0.375, 0.5, 0.4375]


class Scripted(Generator):
    """Destroys 1 to 3 in one group, and for the i-th of them repairs 10 i to 10 i + 3."""

    def generate(self, prompts, n, seed):
        if prompts[0].role == "destroy":
            return [tuple(answer("destroy", i) for i in (1, 2, 3, 3))]
        rows = [number_in(prompt.destroy) for prompt in prompts]
        return [tuple(answer("repair", 10 * i + j) for j in range(4)) for i in rows]


class Taught(Updater):
    def update(self, groups):
        self.groups = groups
        return {}


def by_hand(learning=None, credit="stackelberg"):
    """The round's groups of credits [destroys' samples], [repairs], and what was selected."""

    def verdict(pair):
        i, j = divmod(number_in(pair.repair), 10)
        return Status.OK, HAND[i - 1][j] if number_in(pair.destroy) == i else 0.25

    taught, rounds = Taught(), []
    config = small(
        rounds=1, mutation_groups=1, crossover_groups=0, responses=4, repairs_per_destroy=4,
        population_size=2, panel_evolved=1, cross_play_candidates=4, diversity=0.0, top_responses=2,
    )  # fmt: skip
    parts = Parts(
        config, TSP, Evaluator(verdict, refuse=lambda n: False), Scripted(), CREDITS[credit],
        learning_credit=None if learning is None else CREDITS[learning], updater=taught,
    )  # fmt: skip
    discover(parts, None, rounds.append)
    (done,) = rounds
    survivors = {number_in(m.program): m.score for m in done.destroys}
    role = {(p.role, p.digest): number_in(p) for p in done.programs}
    met = [p for p in done.pairs if p.kind == "cross-play"]
    crossed = {role["repair", p.repair] for p in met}  # but for those of the panel's own destroy
    panel = {role["destroy", p.destroy] for p in met}
    (leaders,) = taught.groups["destroy"]
    followers = [list(group.credits) for group in taught.groups["repair"]]
    return list(leaders.credits), followers, survivors, crossed, panel


def test_the_update_alone_learns_from_another_credit():
    """A round by hand: selection stays Stackelberg's while the samples earn shared credit."""
    plain = by_hand()
    assert plain[0] == [*BEST_TWO, BEST_TWO[2]]
    assert plain[1] == HAND
    assert plain[2] == {1: 0.75, 3: 0.625}
    assert plain[4] == {1}

    leaders, followers, *selected = by_hand("shared")
    assert leaders == [*ALL_FOUR, ALL_FOUR[2]]
    assert followers == HAND  # a follower earns its pair's J under both
    assert tuple(selected) == plain[2:]
    # GRPO's advantages (eq:grpo-advantage): the credits less their group's mean.
    centred = np.array(leaders) - np.mean(leaders)
    np.testing.assert_allclose(centred, [-0.0625, 0.0625, 0.0, 0.0])

    # The paper's ablation as one setting: shared credit selects, too.
    whole = by_hand(credit="shared")
    assert (whole[0], whole[2], whole[4]) == (leaders, {2: 0.5, 3: 0.4375}, {2})
    # And selection alone.
    assert by_hand("stackelberg", credit="shared") == (*plain[:2], *whole[2:])


def test_followers_too_learn_from_it_and_enter_cross_play_by_the_other():
    """By rank the best answers to all destroys come before any second best; by J they do not."""
    plain, ranked = by_hand(), by_hand(credit="rank")
    # By J 10, 30, 11 and 20, of equal J the earlier; by rank 31 is a second, and 20 in the middle.
    assert (plain[3], ranked[3]) == ({20, 30}, {30, 31})
    leaders, followers, *selected = by_hand("rank")
    assert (leaders, followers) == ranked[:2]
    assert followers != plain[1]
    assert tuple(selected) == plain[2:]
