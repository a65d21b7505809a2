"""Rules of survivors replayed from a payoff table: against loops and selections worked out here."""

import math
import sys
import types
from dataclasses import replace

import numpy as np
import pytest

from spo_jax.errors import InputError
from spo_jax.program import Program
from spo_jax.search.lab.measured.replay import Replayed
from spo_jax.search.lab.measured.survival import (
    NOBODY,
    Rule,
    common,
    compare_rules,
    distances,
    drawn,
    measured,
    sequences,
    survivors,
)
from spo_jax.search.lab.measured.tables import Table
from spo_jax.search.lab.schemes import Scheme

WORDS = [
    "remove near nodes", "remove far nodes", "a random segment", "remove near routes",
    "nodes of a random route", "segment of far nodes", "near routes", "random random",
]  # fmt: skip


def table_of(scale=1.0, seed=0, evaluations=3):
    """Eight destroys, five repairs; J of standard deviation `scale`."""
    rng = np.random.default_rng(seed)
    scores = 0.8 + scale * rng.normal(size=(8, 5, evaluations))
    programs = tuple(
        Program("destroy", f"def destroy(a): return {i}", words) for i, words in enumerate(WORDS)
    )
    return Table(scores, np.full(8, -1), destroys=programs)


def jaccard_by_hand(a, b):
    a, b = set(a.split()), set(b.split())
    return 1 - len(a & b) / len(a | b)


def test_a_run_has_new_destroys_in_every_round_and_the_same_evaluations():
    table = table_of()
    runs = sequences(table, 3, 30, rounds=2, evaluations=2)
    assert runs.leaders.shape == (30, 2, 4)
    assert (np.sort(runs.leaders.reshape(30, -1), axis=1) == np.arange(8)).all()
    for n, t, d, j in np.ndindex(runs.utility.shape):
        seen = table.scores[runs.leaders[n, t, d], runs.source[n, t, d, j], runs.seen[n]]
        assert runs.utility[n, t, d, j] == pytest.approx(seen.mean())
    best, general = table.utility.max(axis=1).argmax(), table.utility.mean(axis=0).argmax()
    for t in range(2):
        pair = table.scores[best, general, runs.seen[4]].mean()
        assert runs.reference.pair[4, t] == pytest.approx(pair)
        mine = table.scores[runs.leaders[4, t], general][:, runs.seen[4]].mean(axis=1)
        np.testing.assert_allclose(runs.reference.leader[4, t], mine)
    assert sequences(table, 3, 2, rounds=3).leaders.shape == (2, 3, 2)  # two are left out
    with pytest.raises(InputError, match="9 rounds: the table has 8 destroys"):
        sequences(table, 3, 2, rounds=9)
    with pytest.raises(InputError, match="0 rounds"):
        sequences(table, 3, 2, rounds=0)


@pytest.mark.parametrize("weight", [0, 0.1, 2])
def test_the_papers_rule_by_brute_force(weight):
    table = table_of(0.1)
    runs = sequences(table, 2, 40, rounds=4)
    scores = runs.utility.max(axis=-1)
    kept = survivors(Rule("diverse", weight), scores, runs, table, 3)
    for n in range(40):
        held = {}
        for t in range(4):
            held |= dict(zip(runs.leaders[n, t].tolist(), scores[n, t].tolist(), strict=True))
            chosen = [max(held, key=held.get)]
            while len(chosen) < min(3, len(held)):
                chosen.append(max(
                    held.keys() - set(chosen),
                    key=lambda row: held[row] + weight * min(
                        jaccard_by_hand(WORDS[row], WORDS[each]) for each in chosen
                    ),
                ))  # fmt: skip
            assert kept[n, t].tolist() == chosen + [NOBODY] * (3 - len(chosen))
            held = {row: held[row] for row in chosen}


def unseen_value(table, seen):
    """[K]: J of each destroy with its best response, by the evaluations that a run does not see."""
    unseen = [each for each in range(table.scores.shape[2]) if each not in seen]
    return table.scores[..., unseen].mean(axis=2).max(axis=1)


def test_what_populations_are_worth_by_loops():
    table = table_of()
    runs = sequences(table, 2, 25, rounds=4)
    kept = survivors(Rule.of("ranked@0.3"), runs.utility.mean(axis=-1), runs, table, 3)
    found = measured(kept, runs, table)
    for n, t in np.ndindex(kept.shape[:2]):
        value = unseen_value(table, runs.seen[n])
        own = [row for row in kept[n, t] if row != NOBODY]
        assert len(own) == min(3, 2 * (t + 1))
        so_far = sorted(value[runs.leaders[n, : t + 1].ravel()])[::-1]
        assert found["best"][n, t] == pytest.approx(so_far[0] - value[own].max())
        assert found["mean"][n, t] == pytest.approx(np.mean(so_far[:3]) - value[own].mean())
        away = [jaccard_by_hand(WORDS[a], WORDS[b]) for a in own for b in own if a != b]
        assert found["diversity"][n, t] == pytest.approx(np.mean(away))


def test_scores_alone_lose_nothing_where_credits_are_the_truth():
    table = table_of()
    rows = compare_rules(
        [Rule.of("diverse@0"), Rule.of("ranked@0"), Rule.of(drawn)],
        Scheme("max"),
        replace(table, scores=np.repeat(table.utility[..., None], 2, axis=2)),
        5, 50, rounds=4, size=3,
    )  # fmt: skip
    found = {(row.scheme, row.measure, row.where["round"]): row for row in rows}
    for k in range(1, 5):
        for rule in ("diverse@0", "ranked@0"):
            assert found[rule, "mean", k].mean == pytest.approx(0, abs=1e-12)
            assert found[rule, "best", k].mean == pytest.approx(0, abs=1e-12)
        assert found["ranked@0", "shared", k].mean == 1
    assert found["drawn", "mean", 4].start > 0.1
    assert found["drawn", "shared", 4].end < 0


@pytest.mark.long
def test_what_is_drawn_is_worth_what_destroys_are_on_average():
    table = table_of()
    runs = sequences(table, 2, 4000, rounds=1)
    kept = survivors(Rule.of(drawn), runs.utility.mean(axis=-1), runs, table, 3)
    own = measured(kept, runs, table)["mean"][:, 0]
    values = [np.sort(unseen_value(table, seen)) for seen in runs.seen]
    due = np.array([value[-3:].mean() - value.mean() for value in values])
    assert abs((own - due).mean()) < 4.5 * (own - due).std() / math.sqrt(4000)
    again = survivors(Rule.of(drawn), runs.utility.mean(axis=-1), runs, table, 3)
    np.testing.assert_array_equal(again, kept)


def test_the_papers_weight_follows_distances_where_scores_are_close_and_ranks_do_not():
    rules = [Rule.of("diverse"), Rule.of("ranked")]
    lost = {}
    for scale in (1e-3, 10.0):
        rows = compare_rules(rules, Scheme("max"), table_of(scale), 5, 200, rounds=4, size=3)
        lost[scale] = {row.scheme: row for row in rows
                       if row.measure == "mean" and row.where["round"] == 4}  # fmt: skip
    assert lost[1e-3]["ranked"].end < 0
    assert abs(lost[10.0]["ranked"].difference) < 0.01 * 10
    ranked = [lost[scale]["ranked"].mean / scale for scale in lost]
    assert ranked[0] == pytest.approx(ranked[1])  # ranks have no scale


def test_a_rule_of_ones_own_by_its_name_and_as_a_function(monkeypatch):
    module = types.ModuleType("mine")
    seen = []

    def newest(candidates, context):
        seen.append((context.size, context.diversity, context.round, context.role,
                     context.settings.search.population_size))  # fmt: skip
        return sorted(candidates, key=lambda m: (-m.round, m.program.digest))[: context.size - 1]

    module.newest = newest
    monkeypatch.setitem(sys.modules, "mine", module)
    table = table_of()
    runs = sequences(table, 2, 3, rounds=2)
    scores = runs.utility.mean(axis=-1)
    by_name = survivors(Rule.of("mine:newest@0.7"), scores, runs, table, 3)
    assert seen[:2] == [(3, 0.7, 1, "destroy", 3), (3, 0.7, 2, "destroy", 3)]
    np.testing.assert_array_equal(survivors(Rule.of(newest), scores, runs, table, 3), by_name)
    assert (by_name[..., 2] == NOBODY).all()
    for n, t in np.ndindex(by_name.shape[:2]):
        assert set(by_name[n, t, :2]) <= set(runs.leaders[n, t])
    own = measured(by_name, runs, table)
    assert np.isfinite(own["mean"]).all()

    module.newest = lambda candidates, context: candidates
    with pytest.raises(InputError, match="returned 4 members"):
        survivors(Rule.of("mine:newest"), scores, runs, table, 3)
    module.newest = lambda candidates, context: []
    nobody = survivors(Rule.of("mine:newest"), scores, runs, table, 3)
    empty = measured(nobody, runs, table)
    assert all(np.isnan(each).all() for each in empty.values())
    assert np.isnan(common(nobody, by_name)).all()


def test_what_two_populations_have_in_common():
    a, b = np.array([[[0, 1, 2]]]), np.array([[[2, 5, NOBODY]]])
    assert common(a, b)[0, 0] == pytest.approx(1 / 3)
    assert common(b, a)[0, 0] == pytest.approx(1 / 2)
    np.testing.assert_allclose(np.diag(distances(table_of())), 0)


def test_a_destroy_without_a_credit_does_not_survive():
    table = table_of()
    runs = sequences(table, 2, 2, rounds=2)
    scores = np.where(runs.leaders == 3, np.nan, runs.utility.mean(axis=-1))
    assert isinstance(runs, Replayed)
    for rule in (Rule.of("ranked"), Rule.of(drawn)):
        assert not (survivors(rule, scores, runs, table, 8) == 3).any()


def test_labels_and_what_is_refused():
    assert [Rule.of(each).label for each in ("diverse", "diverse@0.1", "ranked@0.30", "ranked@0")] \
        == ["diverse", "diverse", "ranked@0.3", "ranked@0"]  # fmt: skip
    for text, message in (
        ("nosuch", "unknown survivors 'nosuch'"), ("diverse@x", "'x' is no number"),
        ("diverse@-1", "0 or more"), ("diverse@nan", "0 or more"), ("diverse@", "is no number"),
        ("nosuch.module:f", "cannot import survivors"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            Rule.of(text)

    def ranked(candidates, context):
        return ()

    with pytest.raises(InputError, match="a rule that ships"):
        Rule.of(ranked)
    table = replace(table_of(), destroys=())
    with pytest.raises(InputError, match="no programs beside it"):
        compare_rules([Rule.of("ranked")], Scheme("max"), table, 2, 2, rounds=2, size=2)
