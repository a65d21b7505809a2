"""FunSearch's database: islands, clusters, temperature, length preference, resets."""

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from method_fakes import Writer, by_numbers, individual, rng, run
from spo_fakes import Evaluator, number_in, small

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.peers import funsearch
from spo_jax.peers.funsearch import FunSearch, Island, draw_short, request, reset, softmax
from spo_jax.program import Pair, load_pair
from spo_jax.runs.discovery.loop import discover
from spo_jax.search.method import method_of
from spo_jax.search.parts import Parts
from spo_jax.search.rounds import Observer
from spo_jax.search.writing.prompts import INITIALIZATION

RULES = FunSearch()


def island(*individuals, rules=RULES):
    found = Island()
    for each in individuals:
        found.register(each, rules)
    return found


def number(individual):
    return number_in(individual.pair.destroy)


def test_the_numbers_are_the_published_ones():
    assert (RULES.islands, RULES.samples, RULES.temperature, RULES.period) == (
        10, 4, 0.1, 30_000,
    )  # fmt: skip
    assert (funsearch.SHOWN, funsearch.TIE_NOISE) == (2, 1e-6)


def test_programs_with_the_same_scores_are_one_cluster():
    twins = [individual(n, 0.5, scores=(0.25, 0.75)) for n in (1, 2)]
    other = individual(3, 0.5, scores=(0.75, 0.25))  # the same J by other scores
    found = island(*twins, other)
    assert [[number(each) for each in cluster] for cluster in found.clusters.values()] == [
        [1, 2], [3],
    ]  # fmt: skip
    assert (found.programs, number(found.best)) == (3, 1)


def test_softmax():
    assert softmax([1.0, 1.0], 0.5) == [0.5, 0.5]
    # exp(0), exp(-2): 1 / (1 + e^-2) and the rest.
    high, low = softmax([3.0, 1.0], 1.0)
    assert (high, low) == (pytest.approx(0.880797), pytest.approx(0.119203))
    assert softmax([1000.0, -1000.0], 0.1) == [1.0, 0.0]


def shares(island, rules, draws=6000):
    stream = rng()
    count = Counter()
    for _ in range(draws):
        count.update(number(each) for each in island.draw(rules, stream))
    return {n: c / sum(count.values()) for n, c in count.items()}


def test_clusters_are_drawn_by_score_and_temperature():
    # J of 0.500 and 0.501 are 50 and 50.1 per cent: one temperature apart at T = 0.1.
    two = island(individual(1, 0.5), individual(2, 0.501))
    cool = math.exp(1) / (1 + math.exp(1))
    assert shares(two, RULES)[2] == pytest.approx(cool, abs=0.015)
    # With period 4 an island of two programs has T = 0.05, and the distance is two.
    assert shares(two, replace(RULES, period=4))[2] == pytest.approx(
        1 / (1 + math.exp(-2)), abs=0.015
    )
    # A full period later it is warm again.
    assert shares(two, replace(RULES, period=2))[2] == pytest.approx(cool, abs=0.015)


def test_what_a_cluster_is_worth():
    one = individual(1, 0.3, scores=(0.4, 0.2))
    assert RULES.worth(one) == pytest.approx(30)
    assert replace(RULES, score="last").worth(one) == pytest.approx(20)


def test_short_programs_are_preferred():
    short, long = individual(1, 0.5), individual(2, 0.5)
    padded = replace(long.pair.repair, source=long.pair.repair.source + "#" * 400)
    long = replace(long, pair=Pair(long.pair.destroy, padded))
    shorter = len(short.pair.destroy.source) + len(short.pair.repair.source)
    expected = 1 / (1 + math.exp(-400 / (shorter + 400)))
    stream = rng()
    drawn = Counter(number(draw_short([short, long], stream)) for _ in range(8000))
    assert drawn[1] / 8000 == pytest.approx(expected, abs=0.02)


def test_a_prompt_shows_the_weaker_first():
    three = island(*(individual(n, 0.5 + n / 10_000) for n in (3, 1, 2)))
    stream = rng()
    shown = [[number(each) for each in three.draw(RULES, stream)] for _ in range(60)]
    assert all(len(each) == 2 and each == sorted(each) for each in shown)
    assert len({tuple(each) for each in shown}) > 4  # the same cluster twice included
    assert [number(e) for e in island(individual(7, 0.5)).draw(RULES, stream)] == [7]
    assert island().draw(RULES, stream) == []


def test_the_worse_half_begins_again_from_a_survivors_best():
    islands = [island(individual(2 * n, n / 10, place=n), individual(2 * n + 1, 0.01, place=n))
               for n in range(5)]  # fmt: skip
    islands[2] = island()  # without a program, so the worst
    before = [found.best for found in islands]
    reset(islands, RULES, rng())
    # Of five the worse two: the empty one and that of 0.01, where 0/10 is not the best.
    assert [found.programs for found in islands] == [1, 2, 1, 2, 2]
    for place in (0, 2):
        founder = islands[place].best
        assert founder.place == place
        assert founder.pair in [before[n].pair for n in (1, 3, 4)]
    assert [islands[n].best for n in (1, 3, 4)] == [before[n] for n in (1, 3, 4)]


def test_ties_between_islands_are_broken_at_random():
    worse = set()
    for seed in range(30):
        islands = [island(individual(n, 0.5, place=n), individual(9, 0.4)) for n in range(4)]
        reset(islands, RULES, rng(seed))
        worse.add(tuple(n for n in range(4) if islands[n].programs == 1))
    assert len(worse) > 3


@pytest.mark.parametrize(
    ("shown", "prose", "form"),
    [
        (0, True, "funsearch-first"),
        (1, True, "funsearch-version"),
        (2, True, "funsearch-version"),
        (0, False, INITIALIZATION),
        (1, False, "mechanism-replacement"),
        (2, False, "shared-principle-crossover"),
    ],
)
def test_what_is_asked(shown, prose, form):
    asked = request([individual(n, 0.5) for n in range(shown)], 4, prose)
    assert (asked.form, len(asked.parents), asked.place) == (form, shown, 4)


SETTINGS = {"islands": 3, "prompts": 2, "samples": 2, "reset": 0.2}


def test_children_stay_on_the_island_of_their_prompt():
    evaluator = Evaluator(by_numbers)
    # No reset, so parents come from the child's own island.
    rounds, end, _ = run(
        "funsearch", method_settings=SETTINGS | {"reset": 1, "seed": "none"}, rounds=2,
        generator=Writer(broken=0), evaluator=evaluator,
    )  # fmt: skip
    assert {each.place for each in end.individuals} == {0, 1, 2}
    seen = [set(), set(), set()]
    checked = 0
    for done in rounds:
        for each in done.individuals:
            for parent in each.pair.destroy.parents:
                assert parent in seen[each.place]
                checked += 1
        for each in done.individuals:
            seen[each.place].add(each.pair.destroy.digest)
    assert checked > 20


@pytest.mark.long
def test_a_rounds_prompts_are_drawn_together_and_their_islands_uniformly():
    settings = {"islands": 3, "prompts": 600, "samples": 1, "seed": "none"}
    writer = Writer(numbers=100_000, broken=0)
    evaluator = Evaluator(by_numbers, refuse=lambda n: False)
    _, end, _ = run(
        "funsearch", method_settings=settings, pairs=600, generator=writer, evaluator=evaluator
    )
    prompts, samples, _ = writer.calls[0]
    assert (len(prompts), samples) == (600, 1)
    drawn = Counter(each.place for each in end.individuals)
    for place in range(3):
        assert drawn[place] / len(end.individuals) == pytest.approx(1 / 3, abs=0.06)


def test_resets_go_by_shares_of_the_budget(monkeypatch):
    rules = FunSearch(islands=3, prompts=2, samples=2, reset=0.2)
    config = small(method="funsearch", rounds=2)
    resets = []
    monkeypatch.setattr(funsearch, "reset", lambda islands, rules, stream: resets.append(stream))
    counts = []
    for k in range(1, 15):
        resets.clear()
        rules.database([], config, k)
        counts.append(len(resets))
    # 50 pairs, 4 a round: 10, 20, 30 and 40 are reached in rounds 3, 5, 8 and 10. The 50th is the
    # last pair, and a reset after it would change nothing.
    assert rules.rounds(config) == 13
    assert counts == [0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 4]


@pytest.mark.parametrize("rounds", [3, 7, 30])
def test_a_run_of_any_budget_has_four_resets_by_default(rounds):
    config = small(method="funsearch", rounds=rounds, responses=6, repairs_per_destroy=6)
    due = [RULES.resets(config, k) for k in range(1, RULES.rounds(config) + 1)]
    assert sum(due) == 4
    assert not due[-1]


def test_resets_are_counted_and_told():
    class Remarks(Observer):
        def __init__(self):
            self.lines = []

        def remark(self, line):
            self.lines.append(line)

    seen = Remarks()
    config = small(method="funsearch", method_settings=SETTINGS, rounds=2)
    parts = Parts(config, get_problem("tsp"), Evaluator(), Writer(broken=0), observer=seen)
    rounds = []
    discover(parts, None, rounds.append, method_of(config))
    assert [k for k, done in enumerate(rounds, 1) if done.metrics["resets"]] == [3, 5, 8, 10]
    assert [line for line in seen.lines if "reset" in line] == [
        f"round {k}: the worse half of the islands is reset ({n})"
        for n, k in enumerate((3, 5, 8, 10), 1)
    ]


# --- the seed -------------------------------------------------------------------------------------


def test_all_islands_begin_with_the_seed():
    settings = SETTINGS | {"seed": "simple"}
    plain = Evaluator(lambda pair: (Status.OK, 0.25), refuse=lambda n: False)
    plain.check = lambda programs: [None for _ in programs]
    rounds, end, parts = run(
        "funsearch", method_settings=settings, rounds=1, generator=Writer(broken=0),
        evaluator=plain,
    )  # fmt: skip
    [seed] = [each for each in end.individuals if each.operator == "seed"]
    assert seed == rounds[0].individuals[0]
    assert "Remove a tenth" in seed.pair.destroy.strategy
    assert {prompt.form for prompt in parts.generator.calls[0][0]} == {"funsearch-version"}
    assert parts.generator.calls[0][0][0].parents == (seed.pair.destroy,)
    rules = method_of(parts.config)
    islands = rules.database([seed], parts.config, 1)
    assert [(island.programs, island.best.place) for island in islands] == [(1, 0), (1, 1), (1, 2)]
    # No budget counts it: 4 pairs a round are still 4 answers, and none of them is the seed.
    assert rounds[0].counts.destroy_answers == 4
    assert rounds[0].counts.valid_repairs == len(rounds[0].individuals) - 1
    assert seed.pair.destroy in rounds[0].programs
    assert "begins with the problem's trivial program" in rules.variant(True)
    # By default a writer of prose has one, and any other has none.
    assert "begins with the problem's trivial program" in RULES.variant(True)
    assert "no seed program" in RULES.variant(False)


def test_a_seed_that_cannot_be_had_is_refused(tmp_path):
    for seed, complaint in (
        (str(tmp_path / "none.py"), "none.py"),
        ("simple", "seed simple fails on the training instances .crash"),
    ):
        crashing = Evaluator(lambda pair: (Status.CRASH, None))
        crashing.check = lambda programs: [None for _ in programs]
        with pytest.raises(InputError, match=complaint):
            run("funsearch", method_settings={"seed": seed}, rounds=1, evaluator=crashing)


@pytest.mark.parametrize("name", ["tsp", "cvrp", "vrptw"])
def test_the_trivial_programs_run(name):
    problem = get_problem(name)
    pair = load_pair(Path(problem.simple))
    with LocalEvaluator(problem, 1) as evaluator:
        assert evaluator.check([pair.destroy, pair.repair]) == [None, None]
        found = evaluator.run([pair], problem.sample(20, 2, 1), (0, 1), 50)
    assert (found.status == Status.OK).all()
    assert (found.best_cost[..., -1] < found.best_cost[..., 0]).all()


def test_the_record_has_the_best_of_each_island():
    rounds, end, parts = run("funsearch", method_settings=SETTINGS, rounds=2)
    rules = FunSearch(islands=3, prompts=2, samples=2)
    islands = rules.database(end.individuals, parts.config, len(rounds) + 1)
    assert [m.program for m in rounds[-1].destroys] == [i.best.pair.destroy for i in islands]
    assert (
        sum(done.counts.destroy_answers for done in rounds) == small(rounds=2).search.nominal_pairs
    )


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            {"islands": 0},
            "method_settings: islands is 0; it must be a whole number from 1",
        ),
        ({"reset": 1000}, "reset is 1000; it must be a number from 0.001 to 1"),
        ({"score": "first"}, "score is 'first'; it must be one of mean, last"),
        ({"temperature": 0}, "temperature is 0; it must be a number from 1e-09"),
        ({"samples": "two"}, "samples is 'two'; it must be a whole number"),
        ({"island": 2}, "method funsearch has no setting 'island': did you mean 'islands'"),
    ],
)
def test_settings_that_are_refused(given, complaint):
    with pytest.raises(InputError, match=complaint):
        run("funsearch", method_settings=given)
