"""ReEvo's population rules and reflections."""

import json
from collections import Counter

import pytest
from method_fakes import Writer, individual, rng, run
from spo_fakes import Evaluator, Generator, number_in

from spo_jax import presets
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.peers.reevo import ReEvo, draw_matches, parents, request
from spo_jax.search.rounds import State
from spo_jax.search.writing.prompts import INITIALIZATION

SETTINGS = {"initial": 8}


def number(individual):
    return number_in(individual.pair.destroy)


def test_matches_are_unequal_uniform_and_worse_first():
    population = [individual(n, u) for n, u in ((1, 0.5), (2, 0.5), (3, 0.25), (4, 0.75))]
    matches = draw_matches(population, 5000, rng())
    assert len(matches) == 5000
    assert all(worse.utility < better.utility for worse, better in matches)
    drawn = Counter((number(worse), number(better)) for worse, better in matches)
    # All pairs but 1 and 2, which are equal.
    assert set(drawn) == {(3, 1), (3, 2), (1, 4), (2, 4), (3, 4)}
    assert all(count / 5000 == pytest.approx(1 / 5, abs=0.03) for count in drawn.values())
    assert draw_matches(population[:2], 3, rng()) == []
    assert draw_matches([], 3, rng()) == []


def test_the_elitist_is_drawn_as_a_parent_wherever_it_lives():
    born = (individual(1, 0.9, k=1), individual(2, 0.3, k=2), individual(3, 0.4, k=2))
    assert [number(each) for each in parents(State(2, individuals=born), 3)] == [1, 2, 3]
    assert [number(each) for each in parents(State(2, individuals=born[1:]), 3)] == [2, 3]
    assert parents(State(), 1) == []


def test_crossovers_replace_the_population_and_mutants_join_it():
    rounds, end, parts = run("reevo", method_settings=SETTINGS, rounds=2, population_size=4)
    # 50 pairs: 8, then 4 crossovers and 2 mutants seven times.
    assert len(rounds) == ReEvo(initial=8).rounds(parts.config) == 8
    assert [done.counts.destroy_answers for done in rounds] == [8, *[6] * 7]
    for k, done in enumerate(rounds, 1):
        alive = [each for each in end.individuals if each.round == k]
        assert [m.program for m in done.destroys] == [each.pair.destroy for each in alive]
        kinds = {each.operator for each in alive}
        assert kinds <= ({"initialization"} if k == 1 else {"crossover", "mutation"})


def test_parents_and_the_elitist_are_who_they_should_be():
    """Every parent, looked up by its digest among those who could be it."""
    rounds, end, _ = run("reevo", method_settings=SETTINGS, rounds=2, generator=Generator(broken=0))
    for k, done in enumerate(rounds[1:], 2):
        before = [each for each in end.individuals if each.round < k]
        last = {e.pair.destroy.digest: e for e in before if e.round == k - 1}
        elitist = max(before, key=lambda each: each.utility)
        known = {**last, elitist.pair.destroy.digest: elitist}
        crossed = [each for each in done.individuals if each.operator == "crossover"]
        for each in crossed:
            worse, better = (known[parent] for parent in each.pair.destroy.parents)
            assert worse.utility < better.utility
        best = max((*before, *crossed), key=lambda each: each.utility)
        for each in done.individuals:
            if each.operator == "mutation":
                assert each.pair.destroy.parents == (best.pair.destroy.digest,)
                assert each.pair.repair.parents == (best.pair.repair.digest,)


def test_without_unequal_parents_a_generation_is_parent_free():
    equal = Evaluator(lambda pair: (Status.OK, 0.25))
    rounds, _, parts = run("reevo", method_settings=SETTINGS, rounds=1, evaluator=equal)
    prompts = parts.generator.calls[2][0]
    assert {p.form for p in prompts} == {INITIALIZATION}
    assert {p.form for p in parts.generator.calls[4][0]} == {"mechanism-replacement"}
    assert {each.operator for each in rounds[1].individuals} == {"initialization", "mutation"}


# --- reflections ----------------------------------------------------------------------------------


def test_a_writer_of_prose_reflects():
    writer = Writer(broken=0)
    rounds, end, parts = run("reevo", method_settings=SETTINGS, rounds=1, generator=writer)
    order = [prompts[0].form for prompts, _, _ in writer.calls]
    # Round 1, then: hints, crossovers' two halves, advice, the mutants' two halves.
    assert order[:8] == [
        "reevo-seeded", "reevo-seeded", "short-reflection", "reevo-crossover",
        "reevo-crossover", "long-reflection", "reevo-mutation", "reevo-mutation",
    ]  # fmt: skip
    hints, crossovers, _, advice, mutants = (writer.calls[place][0] for place in range(2, 7))
    assert len(hints) == len(crossovers) == 4
    note = json.loads(rounds[1].note)
    assert len(note["short"]) == 4
    for hint, asked, crossover in zip(note["short"], hints, crossovers, strict=True):
        assert "think" not in hint
        assert hint in crossover.text  # on one line, without what was thought before
        worse, better = crossover.parents
        assert asked.text.index(worse.source) < asked.text.index(better.source)
        assert "fewer than 20 words" in asked.text
        assert hint in advice[0].text
    assert note["long"] in mutants[0].text
    assert "fewer than 50 words" in advice[0].text
    assert "(nothing yet)" in advice[0].text
    # The next round folds the advice of this one.
    again = next(p for p, _, _ in writer.calls[7:] if p[0].form == "long-reflection")
    assert note["long"] in again[0].text
    assert "reflections" not in parts.config.flat()
    assert end.note == rounds[-1].note


def test_a_writer_of_programs_alone_does_not():
    rounds, end, parts = run("reevo", method_settings=SETTINGS, rounds=1)
    assert {p.form for prompts, _, _ in parts.generator.calls for p in prompts} == {
        INITIALIZATION, "shared-principle-crossover", "mechanism-replacement",
    }  # fmt: skip
    assert {p.warmer for prompts, _, _ in parts.generator.calls for p in prompts} == {0}
    assert "seed" not in {each.operator for each in end.individuals}
    assert all(done.note == "" for done in rounds)
    assert ReEvo().variant(False).startswith("ReEvo without reflections (Ye et al. 2024): 30 first")
    assert ReEvo().variant(True).startswith("ReEvo (Ye et al. 2024): with short- and long-term")
    assert end.best is not None


def test_what_is_asked():
    population = [individual(n, n / 10) for n in (1, 2)]
    for operator, shown, form in (
        ("crossover", population, "shared-principle-crossover"),
        ("mutation", population[:1], "mechanism-replacement"),
    ):
        plain = request(operator, shown, "", prose=False)
        assert (plain.form, plain.reflection) == (form, "")
        own = request(operator, shown, "hint", prose=True)
        assert (own.form, own.reflection, own.warmer) == (f"reevo-{operator}", "hint", 0)
        assert request(operator, shown, "", prose=True).reflection == "(nothing)"
    assert request("mutation", (), "hint", prose=True).parents == ()


def test_long_pairs_are_reflected_upon_by_their_strategies():
    class Short(Writer):
        def fits(self, text):
            return "Two designs" not in text or "def destroy" not in text

    writer = Short(broken=0)
    run("reevo", method_settings=SETTINGS, rounds=1, generator=writer)
    asked = [p for prompts, _, _ in writer.calls for p in prompts if p.form == "short-reflection"]
    assert asked
    assert not any("def " in prompt.text for prompt in asked)


def test_settings_out_of_range():
    with pytest.raises(InputError, match=r"method_settings: initial is 1; it must be .* from 2 to"):
        run("reevo", method_settings={"initial": 1})


def test_the_numbers_are_the_published_ones():
    """Of cfg/config.yaml, the common prompts and reevo.py of the release."""
    rules = ReEvo()
    assert (rules.initial, rules.mutation_rate, rules.warmer) == (30, 0.5, 0.3)
    assert (rules.short_words, rules.long_words) == (20, 50)
    # With the paper's population of 10 a generation is 10 crossovers and 5 mutants.
    config = presets.settings("tsp", "paper-tsp", method="reevo")
    assert rules._budget(config).each == 15
