"""EoH's population rules, against hand-computed numbers and its definition."""

from collections import Counter

import pytest
from method_fakes import individual, rng, run
from spo_fakes import Generator, number_in

from spo_jax.errors import InputError
from spo_jax.program.grammar.base import CROSSOVERS, MUTATIONS
from spo_jax.search.methods.eoh import Eoh, draw, request, survivors
from spo_jax.search.writing.prompts import INITIALIZATION

POPULATION = [individual(n, 0.9 - n / 10) for n in range(4)]


def test_parents_are_drawn_by_rank():
    # p ~ 1 / (rank + N) with N = 4: 1/5, 1/6, 1/7, 1/8, together 533/840.
    stream = rng()
    drawn = Counter(number_in(draw(POPULATION, 1, stream)[0].pair.destroy) for _ in range(20_000))
    expected = [168 / 533, 140 / 533, 120 / 533, 105 / 533]
    for n, share in enumerate(expected):
        assert drawn[n] / 20_000 == pytest.approx(share, abs=0.012)


def test_several_parents_are_different():
    stream = rng()
    for _ in range(50):
        assert len({number_in(each.pair.destroy) for each in draw(POPULATION, 3, stream)}) == 3


def test_the_best_of_different_objectives_survive():
    # To five decimals 0.300001 is 0.3, which was there first; 0.30002 is another.
    born = [individual(n, u) for n, u in enumerate((0.3, 0.1, 0.300001, 0.30002, 0.2, 0.5))]
    assert [number_in(each.pair.destroy) for each in survivors(born, 4)] == [5, 3, 0, 4]
    assert survivors([], 4) == []


@pytest.mark.parametrize(
    ("operator", "form", "count"),
    [
        ("i1", INITIALIZATION, 0),
        ("e1", "divergent-crossover", 2),
        ("e2", "shared-principle-crossover", 2),
        ("m1", "mechanism-replacement", 1),
        ("m2", "state-control-redesign", 1),
        ("m3", "simplification", 1),
    ],
)
def test_operators_are_forms(operator, form, count):
    asked = request(operator, POPULATION, 2, rng())
    assert (asked.form, len(asked.parents), asked.operator) == (form, count, operator)
    if form in CROSSOVERS:
        many = request(operator, POPULATION, 3, rng())
        assert (many.form, len(many.parents)) == (f"{form}-many", 3)
        assert request(operator, POPULATION[:2], 5, rng()).form == form  # there are but two
        alone = request(operator, POPULATION[:1], 5, rng())
        assert (alone.form, alone.parents, alone.operator) == (INITIALIZATION, (), operator)
    assert request(operator, [], 5, rng()).form == INITIALIZATION


def test_generations_use_up_the_budget_of_spo():
    # 2 rounds of 5 groups of 4 destroys, each with 4 repairs, are 200 programs: 100 pairs.
    rounds, end, parts = run("eoh", rounds=2, responses=4, generator=Generator(broken=0.1))
    assert parts.config.search.nominal_pairs == 100
    # N = 4 first pairs, then 20 a generation, and the rest.
    assert [done.counts.destroy_answers for done in rounds] == [4, 20, 20, 20, 20, 16]
    assert len(rounds) == Eoh().rounds(parts.config)
    first, second = parts.generator.calls[0], parts.generator.calls[2]
    assert {prompt.form for prompt in first[0]} == {INITIALIZATION}
    assert [p.form for p in second[0]] == [*CROSSOVERS, *MUTATIONS] * 4
    last = Counter(each.operator for each in end.individuals if each.round == 6)
    assert max(last.values()) <= 4  # one offspring in five each, of 16


def test_the_population_is_what_survives_of_all_that_was_born():
    rounds, end, parts = run("eoh", rounds=2)
    born = []
    for done in rounds:
        born += done.individuals
        alive = survivors(born, parts.config.search.population_size)
        assert [m.score for m in done.destroys] == [each.utility for each in alive]
        assert [m.program for m in done.destroys] == [each.pair.destroy for each in alive]
        assert [m.program for m in done.repairs] == [each.pair.repair for each in alive]
    assert end.best.utility == max(each.utility for each in born)


def test_settings_out_of_range_are_refused():
    with pytest.raises(InputError, match="parents is 1; it must be a whole number from 2 to 10"):
        run("eoh", method_settings={"parents": 1})
