"""EoH's population rules, against hand-computed numbers and its definition."""

from collections import Counter

import pytest
from method_fakes import Writer, by_numbers, individual, rng, run
from spo_fakes import Evaluator, Generator, number, number_in

from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.peers.eoh import VERSIONS, Eoh, draw, request, survivors
from spo_jax.program import Completion
from spo_jax.program.grammar.base import CROSSOVERS, MUTATIONS
from spo_jax.search.writing.prompts import INITIALIZATION

POPULATION = [individual(n, 0.9 - n / 10) for n in range(4)]


def test_parents_are_drawn_by_rank():
    # p ~ 1 / (rank + N) with N = 4: 1/5, 1/6, 1/7, 1/8, together 533/840.
    # Ranks from 0 on would give the best 0.329 in place of 0.315: 0.006 is three deviations.
    stream = rng()
    drawn = Counter(number_in(draw(POPULATION, 1, stream)[0].pair.destroy) for _ in range(60_000))
    expected = [168 / 533, 140 / 533, 120 / 533, 105 / 533]
    for n, share in enumerate(expected):
        assert drawn[n] / 60_000 == pytest.approx(share, abs=0.006)


def test_several_parents_are_different():
    stream = rng()
    for _ in range(50):
        assert len({number_in(each.pair.destroy) for each in draw(POPULATION, 3, stream)}) == 3


def test_with_replacement_a_parent_may_be_drawn_twice():
    # Both draws are by 168, 140, 120 and 105 of 533, so one member fills both places in
    # (168^2 + 140^2 + 120^2 + 105^2) / 533^2 of the cases.
    stream = rng()
    pairs = [draw(POPULATION, 2, stream, replacement=True) for _ in range(20_000)]
    alike = sum(a is b for a, b in pairs) / 20_000
    assert alike == pytest.approx((168**2 + 140**2 + 120**2 + 105**2) / 533**2, abs=0.012)
    alone = request("e1", POPULATION[:1], 2, rng(), replacement=True)
    assert alone.parents == (POPULATION[0].pair,) * 2
    assert request("e1", [], 2, rng(), replacement=True).form == INITIALIZATION


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
    own = request(operator, POPULATION, 3, rng(), prose=True)
    assert own.form == f"eoh-{operator}"
    if form in CROSSOVERS:
        assert len(own.parents) == 3
        bare = request(operator, POPULATION[:1], 5, rng(), prose=True)
        assert (bare.form, bare.parents) == ("eoh-i1", ())
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


# --- versions -------------------------------------------------------------------------------------


def asked_by_round(rounds, generator):
    """[round][call of the destroys] the forms asked."""
    found, calls = [], iter(generator.calls[::2])  # destroys and repairs take turns
    for done in rounds:
        count, forms = 0, []
        while count < done.counts.destroy_answers:
            prompts, n, _ = next(calls)
            forms.append([p.form for p in prompts for _ in range(n)])
            count += len(forms[-1])
        found.append(forms)
    return found


def version(name, numbers=100_000, **own):
    """A run of 100 pairs with N = 4 in which no program is refused."""
    generator = Generator(numbers=numbers, broken=0)
    evaluator = Evaluator(by_numbers, refuse=lambda n: False)
    settings = {"version": name} | own
    rounds, end, parts = run(
        "eoh", rounds=2, responses=4, generator=generator, evaluator=evaluator,
        method_settings=settings,
    )  # fmt: skip
    return rounds, end, parts, asked_by_round(rounds, generator)


def test_the_versions_are_the_published_ones():
    """Numbers of the paper (Sections 3.3, 3.4 and 4), and of config.py, eoh.py and getParas.py."""
    versions = {
        name: (" ".join(v.operators), v.first, v.select, v.drawn, v.parents, v.replacement,
               v.retries)
        for name, v in VERSIONS.items()
    }  # fmt: skip
    assert versions == {
        "paper": ("e1 e2 m1 m2 m3", 1, "generation", False, 5, False, 0),
        "v0.1": ("e1 e2 m1 m2", 2, "operator", False, 2, True, 1),
        "v0.2": ("e1 e2 m1 m2", 2, "generation", True, 2, True, 2),
    }
    assert Eoh().rules == VERSIONS["paper"]
    assert "as released, v0.1: N pairs by E1, E2, M1, M2" in Eoh("v0.1").variant(True)
    assert "survive every operator; a copy is tried again up to 1 times" in Eoh("v0.1").variant(
        True
    )
    assert "each by one drawn from E1, E2, M1, M2" in Eoh("v0.2").variant(False)
    assert "without replacement, p = 5" in Eoh().variant(True)
    assert "without replacement, p = 2" in Eoh().variant(False)


def test_v0_1_selects_after_every_operator():
    rounds, end, _parts, asked = version("v0.1", retries=0)
    # 8 first pairs, then 16 a generation, and the 12 that are left.
    assert [done.counts.destroy_answers for done in rounds] == [8, *[16] * 5, 12]
    forms = ["divergent-crossover", "shared-principle-crossover", "mechanism-replacement",
             "state-control-redesign"]  # fmt: skip
    assert asked[1] == [[form] * 4 for form in forms]
    assert asked[-1] == [[form] * 4 for form in forms[:3]]
    # Parents of an operator are survivors of all that was born before it in the generation.
    born = [each for each in end.individuals if each.round == 1]
    for operator in ("e1", "e2", "m1", "m2"):
        alive = {each.pair.destroy.digest for each in survivors(born, 4)}
        new = [e for e in end.individuals if (e.round, e.operator) == (2, operator)]
        assert {parent for each in new for parent in each.pair.destroy.parents} <= alive
        born += new


def test_v0_2_draws_an_operator_for_each_of_n_pairs():
    rounds, _end, _parts, asked = version("v0.2", retries=0)
    assert [done.counts.destroy_answers for done in rounds] == [8, *[4] * 23]
    assert all(len(calls) == 1 for calls in asked)
    drawn = Counter(form for calls in asked[1:] for form in calls[0])
    assert len(drawn) == 4  # of 92, each with p = 1/4: 23, standard deviation 4.2
    assert all(10 <= count <= 36 for count in drawn.values())
    assert len({tuple(calls[0]) for calls in asked[1:]}) > 10


def test_any_version_takes_other_operators():
    _rounds, _, _, asked = version("v0.1", operators="m3 e1", retries=0)
    assert asked[1] == [["simplification"] * 4, ["divergent-crossover"] * 4]
    for wrong in ("e3", "e1,e2", ""):
        with pytest.raises(InputError, match=r"operators is .*it must be names of e1, e2, m1"):
            run("eoh", method_settings={"operators": wrong})


class Copier(Generator):
    """Answers a mutation with its parent, so often as it is told."""

    def __init__(self, copies):
        super().__init__(numbers=100_000, broken=0)
        self.copies = copies

    def sample(self, prompt, rng):
        if prompt.form == "mechanism-replacement" and (prompt.role == "repair" or self.copies):
            self.copies -= prompt.role == "destroy"
            parent = prompt.parents[0]
            return Completion(f"STRATEGY: {parent.strategy}\nCODE:\n```python\n{parent.source}```")
        return super().sample(prompt, rng)


@pytest.mark.parametrize(
    ("name", "retries", "expected"), [("v0.1", None, 1), ("v0.2", None, 2), ("v0.1", 3, 3)]
)
def test_a_copy_of_a_member_is_tried_again(name, retries, expected):
    own = {"version": name, "operators": "m1"} | ({} if retries is None else {"retries": retries})
    evaluator = Evaluator(by_numbers, refuse=lambda n: False)
    always = Copier(10_000)
    rounds, _, _parts = run(
        "eoh", rounds=1, generator=always, evaluator=evaluator, method_settings=own
    )
    # 25 pairs: 8 first ones and 4 a generation; each is a copy, and so are all that replace it.
    assert [done.metrics["retries"] for done in rounds] == [0, *[4 * expected] * 4, expected]
    assert rounds[1].counts.destroy_answers == 4 * (1 + expected)
    assert {each.operator for each in rounds[1].individuals} == {"m1"}
    assert rounds[1].counts.pairs == 0  # a copy is not evaluated again

    once = Copier(2)
    rounds, end, _ = run("eoh", rounds=1, generator=once, evaluator=evaluator, method_settings=own)
    assert rounds[1].metrics["retries"] == 2
    known = {e.pair.digest for e in end.individuals if e.round == 1}
    assert not known & {e.pair.digest for e in rounds[1].individuals}


def test_the_papers_version_does_not_try_again():
    always = Copier(10_000)
    evaluator = Evaluator(by_numbers, refuse=lambda n: False)
    rounds, _, _ = run("eoh", rounds=2, generator=always, evaluator=evaluator)
    assert all("retries" not in done.metrics for done in rounds)


@pytest.mark.parametrize("name", ["v0.1", "v0.2"])
def test_the_population_is_what_survives_in_every_version(name):
    rounds, _end, _parts, _ = version(name)
    born = []
    for done in rounds:
        born += done.individuals
        assert [m.score for m in done.destroys] == [e.utility for e in survivors(born, 4)]
    assert sum(done.counts.destroy_answers for done in rounds) == 100 + sum(
        done.metrics["retries"] for done in rounds
    )


@pytest.mark.parametrize(
    ("name", "count", "twice"), [("paper", 5, False), ("v0.1", 2, True), ("v0.2", 2, True)]
)
def test_how_many_parents_a_version_shows_and_whether_one_may_come_twice(name, count, twice):
    def different(pair):
        return Status.OK, number(pair.destroy.digest, pair.repair.digest) / 2

    writer = Writer(numbers=100_000, broken=0)
    evaluator = Evaluator(different, refuse=lambda n: False)
    run(
        "eoh", pairs=80, population_size=6, generator=writer, evaluator=evaluator,
        method_settings={"version": name},
    )  # fmt: skip
    shown = [
        [parent.digest for parent in prompt.parents]
        for prompts, _, _ in writer.calls
        for prompt in prompts
        if prompt.form in ("eoh-e1", "eoh-e2")
    ]
    assert {len(parents) for parents in shown} == {count}
    assert any(len(set(parents)) < count for parents in shown) == twice


@pytest.mark.parametrize("name", ["v0.1", "v0.2"])
def test_an_answer_that_cannot_be_read_counts(name):
    rounds, _, _ = run(
        "eoh", pairs=20, generator=Generator(broken=1.0), method_settings={"version": name}
    )
    assert sum(done.counts.destroy_answers for done in rounds) == 20
    assert {done.metrics["retries"] for done in rounds} == {0}
