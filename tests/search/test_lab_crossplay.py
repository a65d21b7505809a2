"""Candidates of cross-play in rounds of a payoff table: against loops over each round."""

import math
from dataclasses import replace

import numpy as np
import pytest

from spo_jax.errors import InputError
from spo_jax.search.credit import Credits
from spo_jax.search.lab.measured.crossplay import cross_play, ordered
from spo_jax.search.lab.measured.replay import replay
from spo_jax.search.lab.measured.tables import Table
from spo_jax.search.lab.power import interval
from spo_jax.search.lab.schemes import Scheme

CREDIT = Scheme("stackelberg")


@pytest.fixture
def table():
    """Twelve destroys, nine repairs, four evaluations."""
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(12, 1, 1)) + rng.normal(size=(1, 9, 1)) + rng.normal(size=(12, 9, 4))
    return Table(scores, np.array([*range(9), -1, -1, -1]))


def worth_by_hand(table, seen):
    best = sorted(range(12), key=lambda d: -max(table.utility[d]))[:10]
    unseen = [each for each in range(4) if each not in seen]
    return table.scores[best][..., unseen].mean(axis=(0, 2))


def test_by_brute_force(table):
    rounds = replay(table, 3, 40, group=5, evaluations=2)
    found = cross_play(CREDIT, table, rounds, (3, 4, 6), (1, 3), 2)
    assert list(found) == [(0, 0), (3, 1), (3, 3), (4, 1), (4, 3), (6, 1), (6, 3)]
    for n in range(40):
        seen = rounds.seen[n]
        worth = worth_by_hand(table, seen)
        played = {}
        for d in range(5):
            for j in range(3):
                played[rounds.leaders[n, d], rounds.source[n, d, j]] = rounds.utility[n, d, j]
        repairs = {column for _, column in played}
        credit = {r: max(v for (_, c), v in played.items() if c == r) for r in repairs}
        ranked = sorted(repairs, key=lambda r: -credit[r])
        leaders = sorted(
            rounds.leaders[n],
            key=lambda d: -np.mean(sorted(v for (row, _), v in played.items() if row == d)[-2:]),
        )
        top = np.mean(sorted(worth[list(repairs)])[-2:])
        assert found[0, 0].regret[n] == pytest.approx(top - np.mean(worth[ranked[:2]]))
        assert found[0, 0].pairs[n] == 0
        for many in (3, 4, 6):
            for size in (1, 3):
                panel, candidates = leaders[:size], ranked[:many]
                score = {r: np.mean([table.scores[d, r, seen].mean() for d in panel])
                         for r in candidates}  # fmt: skip
                kept = sorted(candidates, key=lambda r: -score[r])[:2]
                own = found[many, size]
                assert own.regret[n] == pytest.approx(top - np.mean(worth[kept]))
                new = sum((d, r) not in played for d in panel for r in candidates)
                assert own.pairs[n] == new


def test_all_candidates_with_all_proven_leaders_and_all_evaluations_lose_nothing(table):
    table = replace(table, scores=table.scores[:10], answer=table.answer[:10])
    rounds = replay(table, 4, 20, evaluations=4)
    found = cross_play(CREDIT, table, rounds, (4, 99), (1, 10, 16), 2)
    assert list(found) == [(0, 0), (4, 1), (4, 10), (9, 1), (9, 10)]  # 99 is all of them
    np.testing.assert_allclose(found[9, 10].regret, 0, atol=1e-12)
    assert interval(found[9, 1].regret)[1] > 0.01
    seen = [len({(d, c) for d, row in zip(rounds.leaders[n], rounds.source[n], strict=True)
                 for c in row}) for n in range(20)]  # fmt: skip
    assert (found[9, 10].pairs == [len(np.unique(rounds.source[n])) * 10 - seen[n]
                                   for n in range(20)]).all()  # fmt: skip


def test_a_repair_counts_once_with_its_best_credit_and_ties_go_by_j():
    table = Table(np.arange(24.0).reshape(3, 4, 2), np.full(3, -1))
    rounds = replay(table, 2, 1, evaluations=2)
    rounds = replace(rounds, source=np.array([[[0, 1], [1, 2], [0, 2]]]),
                     utility=np.array([[[5.0, 1.0], [7.0, 3.0], [2.0, 4.0]]]))  # fmt: skip
    best_first = ordered(np.array([[[2.0, 9.0], [1.0, 2.0], [0.0, 2.0]]]), rounds, 4)
    assert best_first.tolist() == [[1, 0, 2, -1]]  # 1 by credit; then 0, whose J of 5 is above 4
    nothing = ordered(np.array([[[np.nan, 1.0], [1.0, np.nan], [np.nan, np.nan]]]), rounds, 4)
    assert nothing.tolist() == [[1, -1, -1, -1]]


def test_candidates_are_ranked_by_what_programs_are_selected_by(table):
    def upside_down(payoff, *, top):
        own = Credits(-payoff.utility.max(axis=1), -payoff.utility)
        return Credits(payoff.utility.max(axis=1), payoff.utility, own)

    rounds = replay(table, 3, 30, group=5)
    found = cross_play(Scheme.of(upside_down), table, rounds, (6,), (1, 5), 2)
    due = cross_play(CREDIT, table, rounds, (6,), (1, 5), 2)
    assert found[0, 0].regret.mean() > due[0, 0].regret.mean() + 0.3
    assert found[6, 5].regret.mean() > due[6, 5].regret.mean()


def test_what_it_refuses(table):
    rounds = replay(table, 1, 3, group=2)
    for own in (((0,), (1,), 1), ((2,), (0,), 1), ((2,), (1,), 0)):
        with pytest.raises(InputError, match="are 1 or more"):
            cross_play(CREDIT, table, rounds, *own)
    with pytest.raises(InputError, match="3 repairs are kept: a round has"):
        cross_play(CREDIT, table, rounds, (4,), (1,), 3)
    assert list(cross_play(CREDIT, table, rounds, (2,), (16,), 1)) == [(0, 0)]
    assert math.isfinite(cross_play(CREDIT, table, rounds, (2,), (16,), 1)[0, 0].regret.mean())
