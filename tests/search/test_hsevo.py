"""HSEvo's generations, reflections and harmony search, against its released code's rules."""

import json
import math
import time
from collections import Counter

import pytest
from method_fakes import Writer, individual, program, rng, run
from spo_fakes import Evaluator, Generator, number, number_in

from spo_jax.envs.run.rollouts import Status
from spo_jax.peers.hsevo import (
    PERSONAS,
    WITHOUT,
    HsEvo,
    harmony,
    improvised,
    remember,
    uniform,
    worth,
)
from spo_jax.program import Completion, Pair
from spo_jax.program.constants import Constant, constants_of
from spo_jax.search.writing.prompts import INITIALIZATION, built_in, templates_of
from spo_jax.search.writing.reflecting import (
    comprehensive_prompt,
    flash_prompt,
    ranges_prompt,
    read_flash,
    read_ranges,
)

SETTINGS = {"initial": 8}
ONE = ("destroy", Constant(0.5, 1, 0, 3))
TWO = ("repair", Constant(4, 2, 0, 1))
BOUNDS = {ONE: (0.0, 1.0), TWO: (10.0, 20.0)}


def fine(pair):
    return Status.OK, round(1024 * number("u", pair.destroy.digest, pair.repair.digest)) / 2048


def play(generator, **settings):
    evaluator = Evaluator(fine, refuse=lambda n: False)
    settings = {"method_settings": SETTINGS, "pairs": 40, "population_size": 4} | settings
    return run("hsevo", generator=generator, evaluator=evaluator, **settings)


def test_published_numbers():
    rules = HsEvo()
    assert (rules.initial, rules.mutation_rate, rules.warmer) == (30, 0.5, 0.3)
    assert (rules.memory, rules.improvisations) == (5, 5)
    assert (rules.considering, rules.adjusting, rules.bandwidth) == (0.7, 0.5, 0.2)
    assert (rules.flash_words, rules.comprehensive_words) == (60, 100)
    assert len(PERSONAS) == 10


# --- harmony search -------------------------------------------------------------------------------


def test_a_first_harmony_is_uniform_in_its_bounds():
    stream = rng()
    drawn = [uniform(BOUNDS, stream) for _ in range(4000)]
    for each, (low, high) in BOUNDS.items():
        values = [new[each] for new in drawn]
        assert low <= min(values)
        assert max(values) <= high
        assert sum(values) / 4000 == pytest.approx((low + high) / 2, abs=0.02 * (high - low))


def test_a_new_harmony_by_its_three_rules():
    """0.3 uniform; 0.35 a value of the memory as it is; 0.35 one that moved by less than a fifth of
    the width, to either side.
    """
    memory = [{ONE: 0.25, TWO: 12.0}, {ONE: 0.25, TWO: 12.0}]
    stream, kinds = rng(), Counter()
    for _ in range(20_000):
        value = improvised(memory, BOUNDS, HsEvo(), stream)[ONE]
        near = "below" if value < 0.25 else "above"
        kinds["kept" if value == 0.25 else near if abs(value - 0.25) < 0.2 else "far"] += 1
    # Of the uniform ones 0.2 of the width lies within 0.2 of 0.25 on either side.
    half = 0.35 / 2 + 0.3 * 0.2
    for kind, share in (("kept", 0.35), ("below", half), ("above", half), ("far", 0.3 * 0.6)):
        assert kinds[kind] / 20_000 == pytest.approx(share, abs=0.012)
    # Parameters are drawn apart from each other, each from any harmony of the memory.
    memory = [{ONE: 0.2, TWO: 11.0}, {ONE: 0.7, TWO: 17.0}]
    still = HsEvo(considering=1.0, adjusting=0.0)
    drawn = Counter(tuple(improvised(memory, BOUNDS, still, stream).values()) for _ in range(8000))
    assert all(count / 8000 == pytest.approx(1 / 4, abs=0.03) for count in drawn.values())
    assert set(drawn) == {(0.2, 11.0), (0.2, 17.0), (0.7, 11.0), (0.7, 17.0)}


def test_a_better_harmony_takes_the_place_of_the_worst():
    low, high, better = individual(1, 0.25), individual(2, 0.75), individual(3, 0.5)
    memory, found = [{ONE: 1}, {ONE: 2}, {ONE: 3}, {ONE: 4}], [high, low, None, None]
    remember(memory, found, {ONE: 5}, None)
    assert found == [high, low, None, None]  # a failure is no better than another
    remember(memory, found, {ONE: 6}, better)
    assert (found, [each[ONE] for each in memory]) == ([high, low, better, None], [1, 2, 6, 4])
    remember(memory, found, {ONE: 7}, low)
    remember(memory, found, {ONE: 8}, low)  # equal to the worst
    assert (found, [each[ONE] for each in memory]) == ([high, low, better, low], [1, 2, 6, 7])


def test_a_harmony_has_other_numbers_in_both_programs():
    pair = Pair(program("destroy", 5), program("repair", 6))
    destroy = pair.destroy.source.replace("[5:]", "[:max(1, int(len(current_tour) * 0.3))]")
    pair = Pair(type(pair.destroy)("destroy", destroy, "x"), pair.repair)
    [share] = constants_of(destroy)
    found = harmony(pair, {("destroy", share): 0.12})
    assert "* 0.12))" in found.destroy.source
    assert found.destroy.parents == (pair.destroy.digest,)
    assert found.repair.source == pair.repair.source
    assert worth(None) == -math.inf


class Numbered(Generator):
    """Programs with one parameter each, which is no index."""

    def sample(self, prompt, rng):
        text = super().sample(prompt, rng).text
        return Completion(
            text.replace("    return", f"    a = {rng.randrange(2, 900)}\n    return")
        )


class NumberedWriter(Numbered, Writer):
    """The same, asked in HSEvo's language."""


def test_the_worst_harmony_gives_way_to_a_better_one():
    """The memory, followed through a run: each generation evaluates 5 and then 5 more."""
    rounds, end, _ = play(Numbered(numbers=100_000, broken=0), pairs=56)
    searched = [done.metrics["harmonies"] for done in rounds]
    assert searched[0] == 0
    assert max(searched) <= 10
    assert 10 in searched
    for generation in range(2, 1 + max(each.place for each in end.individuals)):
        born = [e for e in end.individuals if e.place == generation]
        [joined] = [e for e in born if e.operator == "harmony"]
        k = joined.round
        others = [e for e in end.individuals if e.round == k and e.operator == "harmony"]
        assert joined.utility == max(e.utility for e in others)
        # The best of the population was varied, in its numbers alone.
        written = [e for e in born if e.operator != "harmony"]
        base = max(written, key=lambda e: e.utility)
        for each in others:
            assert each.pair.destroy.parents == (base.pair.destroy.digest,)
            [old], [new] = (constants_of(p.source) for p in (base.pair.destroy, each.pair.destroy))
            assert type(new.value) is int
            # From half to twice; one that moved may lie a fifth of the width beyond.
            width = 1.5 * old.value
            assert 0.5 * old.value - 0.2 * width - 1 <= new.value <= 2 * old.value + 0.2 * width + 1


def test_where_numbers_are_missing_no_harmony_is_counted():
    rounds, end, _ = play(Generator(numbers=100_000, broken=0))
    assert all(done.metrics["harmonies"] == 0 for done in rounds)
    # Its pairs then go to generations of 4 crossovers and 2 mutants.
    assert sum(done.counts.destroy_answers for done in rounds) == 40
    assert json.loads(end.note)["spent"] == 40


def test_harmony_search_goes_on_to_the_next_best_pair_with_numbers():
    class Some(Numbered):
        def sample(self, prompt, rng):
            whole = Generator.sample(self, prompt, rng)
            return whole if rng.random() < 0.85 else super().sample(prompt, rng)

    _, end, _ = play(Some(numbers=100_000, broken=0), pairs=200)
    tried = Counter()
    for generation in range(2, 1 + max(each.place for each in end.individuals)):
        born = [e for e in end.individuals if e.place == generation]
        ranked = sorted((e for e in born if e.operator != "harmony"), key=lambda e: -e.utility)
        able = [
            any(constants_of(half.source) for half in (each.pair.destroy, each.pair.repair))
            for each in ranked[:3]
        ]
        joined = [e.pair.destroy.parents[0] for e in born if e.operator == "harmony"]
        base = able.index(True) if any(able) else None
        tried[base] += 1
        assert joined == ([] if base is None else [ranked[base].pair.destroy.digest])
    assert min(tried[0], tried[1] + tried[2], tried[None]) > 0


def test_first_harmonies_that_all_fail_are_not_counted_and_three_pairs_are_tried():
    known = set()

    def verdict(pair):
        if pair.destroy.form == "harmony":
            known.add(pair.destroy.parents[0])
            return Status.CRASH, None
        return fine(pair)

    evaluator = Evaluator(verdict, refuse=lambda n: False)
    rounds, end, _ = run(
        "hsevo", generator=Numbered(numbers=100_000, broken=0), evaluator=evaluator,
        method_settings=SETTINGS, pairs=20, population_size=4,
    )  # fmt: skip
    [_, second] = rounds
    assert second.metrics["harmonies"] == 15
    born = [e for e in end.individuals if e.place == 2]
    best = sorted(born, key=lambda e: -e.utility)[:3]
    assert known == {each.pair.destroy.digest for each in best}
    assert json.loads(end.note)["spent"] == 20


# --- generations ----------------------------------------------------------------------------------


def test_crossovers_replace_the_population_and_mutants_join_it():
    rounds, end, _ = play(Numbered(numbers=100_000, broken=0), pairs=56)
    # 8 first; then generations of 4 crossovers, 2 mutants and 10 harmonies.
    assert [done.counts.destroy_answers for done in rounds] == [8, 6, 6, 6]
    assert json.loads(end.note)["spent"] == 56
    for k, done in enumerate(rounds[1:], 2):
        before = [e for e in end.individuals if e.round < k]
        elitist = max(before, key=lambda e: e.utility)
        last = [*(e for e in before if e.place == k - 1), elitist]
        known = {e.pair.destroy.digest: e for e in last}
        crossed = [e for e in done.individuals if e.operator == "crossover"]
        for each in crossed:
            better, worse = (known[parent] for parent in each.pair.destroy.parents)
            assert better.utility > worse.utility  # the better first
        best = max((*before, *crossed), key=lambda e: e.utility)
        for each in done.individuals:
            if each.operator == "mutation":
                assert each.pair.destroy.parents == (best.pair.destroy.digest,)
        counts = Counter(e.operator for e in end.individuals if e.place == k)
        assert counts == {"crossover": 4, "mutation": 2, "harmony": 1}
        assert len(done.destroys) == 7


def test_without_prose_the_forms_are_those_of_spo():
    rounds, end, parts = play(Numbered(numbers=100_000, broken=0))
    assert {p.warmer for prompts, _, _ in parts.generator.calls for p in prompts} == {0}
    assert "seed" not in {each.operator for each in end.individuals}
    assert {p.form for prompts, _, _ in parts.generator.calls for p in prompts} == {
        INITIALIZATION, "shared-principle-crossover", "mechanism-replacement",
    }  # fmt: skip
    assert all("reflections" not in done.metrics for done in rounds)
    assert HsEvo().variant(False).startswith(f"{WITHOUT} (Dat et al. 2025): 30 first")
    assert HsEvo().variant(True).startswith("HSEvo (Dat et al. 2025): with flash reflections")


def test_a_writer_of_prose_reflects_once_on_all_parents():
    writer = NumberedWriter(numbers=100_000, broken=0)
    rounds, end, _ = play(writer)
    order = [prompts[0].form for prompts, _, _ in writer.calls]
    assert order[:10] == [
        "hsevo-seeded", "hsevo-seeded", "flash-reflection", "comprehensive-reflection",
        "hsevo-crossover", "hsevo-crossover", "hsevo-mutation", "hsevo-mutation", "hsevo-ranges",
        "flash-reflection",
    ]  # fmt: skip
    first, _, flash, whole, crossovers, _, mutants, _, ranges = (p for p, _, _ in writer.calls[:9])
    assert {prompt.warmer for prompt in first} == {0.3}
    for n, prompt in enumerate(first):
        assert f"Think as {PERSONAS[n % 10]} would." in prompt.text
    [flash], [whole] = flash, whole
    assert "in fewer than 60 words" in flash.text
    assert "fewer than 100 words" in whole.text
    assert "(none)" in whole.text
    worth_of = {e.pair.destroy.digest: e.utility for e in end.individuals}
    shown = [e for e in end.individuals if e.pair.destroy.source.strip() in flash.text]
    shown.sort(key=lambda e: flash.text.index(e.pair.destroy.source.strip()))
    parents = {parent for prompt in crossovers for parent in (p.digest for p in prompt.parents)}
    assert {e.pair.destroy.digest for e in shown} == parents  # each once
    values = [worth_of[e.pair.destroy.digest] for e in shown]
    assert values == sorted(values, reverse=True)
    note = json.loads(rounds[1].note)
    [experience] = note["good"] + note["bad"]
    assert experience in whole.text
    assert note["advice"] in crossovers[0].text
    assert note["advice"] in mutants[0].text
    # It was good where the generation found a new elitist, before harmony search.
    before = max(e.utility for e in end.individuals if e.round == 1)
    written = [e.utility for e in rounds[1].individuals if e.operator != "harmony"]
    assert bool(note["good"]) == (max(written) > before)
    assert len(ranges) == 2  # of the destroy and of the repair
    harmonies = [e for e in rounds[1].individuals if e.operator == "harmony"]
    for each in harmonies:  # bounds 2 to 30, as the writer says
        [found] = constants_of(each.pair.destroy.source)
        assert 2 - 0.2 * 28 - 1 <= found.value <= 30 + 0.2 * 28 + 1
    assert rounds[1].metrics["reflections"] == 4


def test_experiences_are_kept_to_a_number():
    writer = NumberedWriter(numbers=100_000, broken=0)
    rounds, _, _ = play(writer, pairs=150, method_settings={"initial": 8, "kept": 2})
    kept = [json.loads(done.note) for done in rounds]
    assert max(len(each[kind]) for each in kept for kind in ("good", "bad")) == 2
    later = [p.text for prompts, _, _ in writer.calls for p in prompts
             if p.form == "comprehensive-reflection"]  # fmt: skip
    assert "(none)" not in later[-1]


def test_without_unequal_parents_a_generation_is_parent_free():
    equal = Evaluator(lambda pair: (Status.OK, 0.25))
    _, _, parts = run("hsevo", method_settings=SETTINGS, rounds=1, evaluator=equal)
    assert {p.form for p in parts.generator.calls[2][0]} == {INITIALIZATION}


# --- what is asked and read -----------------------------------------------------------------------


def test_answers_of_reflections():
    text = "Well.\n**Analysis:** The first\nkeeps strings.\n\n**Experience:** Keep strings."
    analysis, experience = read_flash(text)
    assert analysis.split() == ["The", "first", "keeps", "strings."]
    assert experience.strip() == "Keep strings."
    assert read_flash("analysis: a\nExperience : b") == ("a\n", "b")
    assert read_flash("## Experience: only this") == ("", "only this")
    assert read_flash("no form at all") == ("", "no form at all")


@pytest.mark.parametrize(
    "text",
    ["\n" * 60_000, " \n\t" * 20_000, "*" * 60_000, "1:" + " " * 60_000, "1:" + "1" * 60_000,
     "1: 1\n" * 12_000, "experience\n" * 5_000, "1" * 60_000, "\n" * 30_000 + "1"],
)  # fmt: skip
def test_an_answer_of_blanks_is_read_once(text: str) -> None:
    """In milliseconds: where each place is a new beginning it takes ten seconds and more."""
    begun = time.process_time()
    assert read_flash(text) == ("", text)
    read_ranges(text, ())
    assert time.process_time() - begun < 2


def test_ranges_in_an_answer():
    numbers = [Constant(n, 1, n, n + 1) for n in range(2, 6)]
    text = """Here they are:
1: 0.1 to 0.6
- **2**: [1e-1, 3]
3: 5 to 1
4 = (-2, .5)
9: 1 to 2
1: 7 to 9
99999999999999999999: 1 to 2
"""
    assert read_ranges(text, numbers) == {
        numbers[0]: (0.1, 0.6), numbers[1]: (0.1, 3.0), numbers[3]: (-2.0, 0.5),
    }  # fmt: skip
    assert read_ranges("none", numbers) == {}
    assert read_ranges("1: 0 to 1e999\n2: -1e999 to 2", numbers) == {}


def test_prompts_for_reflections():
    pairs = [individual(n, n / 10).pair for n in (1, 2)]
    texts = templates_of("tsp")
    flash = flash_prompt(texts, "tsp", pairs, 60)
    assert flash.text.index("Design 1\n") < flash.text.index("Design 2\n")
    assert pairs[1].repair.source.strip() in flash.text
    plain = flash_prompt(texts, "tsp", pairs, 60, sources=False)
    assert "destroy: radial" in plain.text
    assert "def destroy" not in plain.text
    both = comprehensive_prompt(texts, "tsp", "new", ["old"], ["useless"], 100)
    assert both.text.index("new\nold") < both.text.index("useless")
    source = "def destroy(dist, tour, z, rng):\n    return tour, 0.25, 3\n"
    asked = ranges_prompt(
        texts, "tsp", type(pairs[0].destroy)("destroy", source), constants_of(source)
    )
    assert "1: 0.25 in line 2\n2: 3 in line 2" in asked.text
    assert "review code" in asked.system
    assert "analyse designs" in flash.system == both.system
    assert number_in(pairs[0].destroy) == 1
    for form in ("hsevo-first", "hsevo-seeded", "hsevo-crossover", "hsevo-mutation"):
        assert built_in().form(form).language == "hsevo"
