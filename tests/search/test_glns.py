"""G-LNS's discovery: scores and weights of adaptive runs, pruning, refilling."""

import json
import math
from collections import Counter

import pytest
from method_fakes import by_numbers, program, rng, run
from spo_fakes import Evaluator, Generator, number_in, small

from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.search.methods.glns import Glns, Tally, adaptive_run, best_together, crossed, mutated
from spo_jax.search.population import Member
from spo_jax.search.rounds import State

REPLACE, REDESIGN = "mechanism-replacement", "state-control-redesign"


def members(role, *scores):
    return tuple(Member(program(role, n), score, 1) for n, score in enumerate(scores))


class Script:
    """A generator of choices that follow a script, and keeps the weights that it was given."""

    def __init__(self, *choices):
        self.choices_left, self.weights = list(choices), []

    def choices(self, options, weights):
        self.weights.append(list(weights))
        return [self.choices_left.pop(0)]


def test_what_draws_score_and_what_weights_become():
    value = {("a", "x"): 0.5, ("a", "y"): 0.3, ("b", "x"): 0.4}  # b fails with y
    stream = Script("a", "x", "a", "y", "b", "x", "b", "y", "a", "x")
    tally = Tally({"a": 0.0, "b": 0.0}, {"x": 0.0, "y": 0.0})
    adaptive_run(value, 5, stream, tally)
    # 0.5 is a new best (1.5), 0.3 is worse (0.8), 0.4 better than 0.3 (1.2), b and y fail (0.1),
    # and 0.5 is better than 0.4, which stayed the current one, but no new best (1.2).
    assert tally.pairs == {("a", "x"): 1.5 + 1.2, ("a", "y"): 0.8, ("b", "x"): 1.2, ("b", "y"): 0.1}
    assert tally.destroys == pytest.approx({"a": 3.5, "b": 1.3})
    assert tally.repairs == pytest.approx({"x": 3.9, "y": 0.9})
    # Weights keep half of themselves: a 1, 1.25, 1.025; b 1, 1.1; x 1, 1.25, 1.225; y 1, 0.9.
    assert stream.weights[0::2] == [
        pytest.approx(w) for w in ([1, 1], [1.25, 1], [1.025, 1], [1.025, 1.1], [1.025, 0.6])
    ]
    assert stream.weights[1::2] == [
        pytest.approx(w) for w in ([1, 1], [1.25, 1], [1.25, 0.9], [1.225, 0.9], [1.225, 0.5])
    ]


def test_an_epoch_runs_on_every_instance_in_every_generation():
    destroys, repairs = members("destroy", 0, 0), members("repair", 0, 0)
    d, r = ([m.program.digest for m in each] for each in (destroys, repairs))
    scores = {(d[0], r[0]): (0.5, 0.4), (d[0], r[1]): (0.5, 0.4), (d[1], r[0]): (0.2, 0.3)}
    rules = Glns(generations=3, iterations=7)
    tally = rules.judge(destroys, repairs, scores, rng())
    # Each of the 3 * 2 * 7 draws scores one of the four numbers, for both roles the same.
    total = sum(tally.destroys.values())
    assert total == pytest.approx(sum(tally.repairs.values())) == sum(tally.pairs.values())
    assert 42 * 0.1 < total < 42 * 1.5
    assert tally.destroys[d[0]] > tally.destroys[d[1]]
    assert rules.judge(destroys, repairs, {}, rng()).pairs == {}
    assert rules.judge((), (), scores, rng()).destroys == {}


def test_mutations_go_by_rank():
    population = members("destroy", 3.0, 2.0, 1.0)
    stream = rng()
    seen = {n: Counter() for n in range(3)}
    for _ in range(600):
        form, [parent] = mutated(population, stream)
        seen[number_in(parent)][form] += 1
    assert set(seen[0]) == {REDESIGN}
    assert set(seen[2]) == {REPLACE}
    assert set(seen[1]) == {REDESIGN, REPLACE}
    assert all(sum(count.values()) == pytest.approx(200, abs=45) for count in seen.values())


def test_crossovers_are_drawn_by_score():
    population = members("repair", 6.0, 3.0, 1.0)
    stream = rng()
    drawn = [crossed(population, stream) for _ in range(3000)]
    assert {form for form, _ in drawn} == {"shared-principle-crossover"}
    pairs = Counter(tuple(number_in(p) for p in parents) for _, parents in drawn)
    assert pairs[0, 1] / 3000 == pytest.approx(0.6 * 3 / 4, abs=0.03)
    assert pairs[2, 0] / 3000 == pytest.approx(0.1 * 6 / 9, abs=0.02)
    assert not any(a == b for a, b in pairs)
    assert {form for form, _ in [crossed(population[:1], stream)]} <= {REDESIGN, REPLACE}
    worthless = members("repair", 0.0, 0.0)
    assert len(crossed(worthless, stream)[1]) == 2


def test_what_is_asked_next():
    destroys, repairs = members("destroy", 2.0, 1.0), members("repair", 2.0, 1.0)
    note = json.dumps([destroys[1].program.digest, repairs[0].program.digest])
    state = State(1, destroys, repairs, note=note)
    stream = rng()
    plans = [Glns().plan(state, stream) for _ in range(4000)]
    share = Counter(plan.operator for plan in plans)
    assert share["mutation"] / 4000 == pytest.approx(0.5, abs=0.03)
    assert share["crossover"] / 4000 == pytest.approx(0.4, abs=0.03)
    assert share["joint"] / 4000 == pytest.approx(0.1, abs=0.02)
    joint = next(plan for plan in plans if plan.operator == "joint")
    assert joint.destroy == (REPLACE, (destroys[1].program,))
    assert joint.repair == (REPLACE, (repairs[0].program,))
    assert Glns().plan(State(), stream).operator == "initialization"


def test_the_closest_pair_has_scored_most_among_those_that_live():
    destroys, repairs = members("destroy", 2.0, 1.0), members("repair", 2.0)
    d = [m.program.digest for m in destroys]
    r = repairs[0].program.digest
    assert best_together(destroys, repairs, {(d[0], r): 1.0, (d[1], r): 2.0, ("gone", r): 9.0}) == (
        d[1],
        r,
    )
    assert best_together(destroys, repairs, {}) == (d[0], r)
    assert best_together((), repairs, {}) == ()


def test_an_epoch_prunes_and_refills():
    evaluator = Evaluator(by_numbers, refuse=lambda n: False)
    generator = Generator(numbers=5000, broken=0)
    rounds, end, parts = run("g-lns", rounds=2, evaluator=evaluator, generator=generator)
    # 50 pairs: 5 x 5, then twice 2 new ones of each role, which meet 16 pairs.
    assert parts.config.search.nominal_pairs == 50
    assert len(rounds) == Glns().rounds(parts.config) == 3
    assert [done.counts.destroy_answers for done in rounds] == [5, 2, 2]
    assert [done.counts.pairs for done in rounds] == [25, 16, 16]
    before = ()
    for done in rounds:
        for role, population in (("destroy", done.destroys), ("repair", done.repairs)):
            assert len(population) == 3
            scores = [m.score for m in population]
            assert scores == sorted(scores, reverse=True)
            assert scores[-1] > 0
            old = {m.program.digest for m in before if m.program.role == role}
            new = {p.digest for p in done.programs if p.role == role}
            assert {m.program.digest for m in population} <= old | new
        before = (*done.destroys, *done.repairs)
    assert len(end.individuals) + sum(len(done.failures) for done in rounds) == 57
    assert end.best.utility == max(each.utility for each in end.individuals)
    # The survivors' pairs are not played again.
    assert len({p.digests for done in rounds for p in done.pairs}) == 57


def test_repairs_are_written_to_the_destroy_that_they_should():
    rounds, _, parts = run("g-lns", rounds=4, generator=Generator(numbers=5000, broken=0.2))
    first = parts.generator.calls[1][0]
    [destroys] = [c[0] for c in parts.generator.calls[:1]]
    assert len(destroys) == 5
    assert all(prompt.destroy is not None for prompt in first)
    for k, done in enumerate(rounds[1:], 1):
        prompts = parts.generator.calls[2 * k + 1][0]
        best = rounds[k - 1].destroys[0].program if rounds[k - 1].destroys else None
        new = {p.digest for p in done.programs if p.role == "destroy"}
        for prompt in prompts:
            if prompt.destroy.digest in new:
                continue
            assert prompt.destroy == best


def test_nothing_works():
    crashes = Evaluator(lambda pair: (Status.CRASH, None))
    rounds, end, _ = run("g-lns", rounds=1, evaluator=crashes)
    assert end.best is None
    assert not end.individuals
    silent = Generator(broken=1.0)
    rounds, end, _ = run("g-lns", rounds=2, generator=silent)
    assert [done.counts.pairs for done in rounds] == [0] * len(rounds)
    assert all(math.isfinite(m.score) for done in rounds for m in done.destroys)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [({"prune": 5}, "prune is 5"), ({"crossover": 0.6}, "0.5 and 0.6"), ({"size": 1}, "size is 1")],
)
def test_settings_out_of_range(settings, complaint):
    with pytest.raises(InputError, match=complaint):
        run("g-lns", method_settings=settings)


def test_the_numbers_are_the_published_ones():
    rules = Glns()
    assert (rules.size, rules.prune, rules.generations, rules.iterations) == (5, 2, 10, 100)
    assert (rules.mutation, rules.crossover) == (0.5, 0.4)
    assert small(method="g-lns").learning.update == "none"
