"""G-LNS's discovery: scores of adaptive searches, pruning, refilling, requests, further tries."""

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from method_fakes import Writer, by_numbers, program, rng, run
from spo_fakes import Evaluator, Generator, number_in, small

from spo_jax.config import Settings
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.jobs.operators import AdaptiveRuns
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Rollouts, Status
from spo_jax.errors import InputError
from spo_jax.peers.glns import Glns, Tally, best_together, crossed, mutated
from spo_jax.peers.operator_writing import Request
from spo_jax.peers.seeds import first_operators
from spo_jax.program import ROLES, Pair, parse_answer
from spo_jax.search.population import Member
from spo_jax.search.writing.joint import joint_prompt
from spo_jax.search.writing.prompts import templates_of


def members(role, *scores):
    return tuple(Member(program(role, n), score, 1) for n, score in enumerate(scores))


def digests(population):
    return [member.program.digest for member in population]


def test_the_scores_of_an_epoch():
    """One instance, two generations of three steps, and a search that could not be had."""
    destroys, repairs = members("destroy", 0, 0), members("repair", 0, 0)
    drawn = np.array([[[[0, 0], [0, 1], [1, 0]], [[1, 1], [0, 0], [0, 0]]]], np.int16)
    outcomes = np.array([[[5, 1, 4], [0, 3, 2]]], np.int8)
    status = np.zeros((1, 2, 2), np.int8)
    status[0, 1] = Status.HOST_FAULT
    none = np.zeros((1, 2, 2, 0))
    rollouts = Rollouts(none, none, status, none, none, none, none)
    runs = AdaptiveRuns(rollouts, np.tile(drawn, (2, 1, 1, 1)), np.tile(outcomes, (2, 1, 1)))
    tally = Tally.of(destroys, repairs, runs)
    (a, b), (x, y) = digests(destroys), digests(repairs)
    # A new best 1.5, better 1.2, worse but accepted 0.8; rejected, equal and failed 0.1.
    expected = {(a, x): 1.5 + 0.8 + 0.1, (a, y): 0.1, (b, x): 1.2, (b, y): 0.1}
    assert tally.pairs == pytest.approx(expected)
    assert tally.last == pytest.approx({(b, y): 0.1, (a, x): 0.9})
    assert tally.destroys == pytest.approx({a: 2.5, b: 1.3})
    assert tally.repairs == pytest.approx({x: 3.6, y: 0.2})
    assert tally.failed == {(b, y)}
    assert tally.useful == {a, b, x, y}
    assert tally.metrics == {"adaptive_steps": 6.0, "failed_steps": 1.0}
    assert Tally.of(destroys, (), None).destroys == {a: 0.0, b: 0.0}


def test_mutations_go_by_rank():
    population = members("destroy", 3.0, 2.0, 1.0)
    stream = rng()
    seen = {n: Counter() for n in range(3)}
    for _ in range(600):
        request = mutated(population, stream)
        seen[number_in(request.shown[0])][request.asked] += 1
    assert set(seen[0]) == {"tune"}
    assert set(seen[2]) == {"replace"}
    assert set(seen[1]) == {"tune", "replace"}
    assert all(sum(count.values()) == pytest.approx(200, abs=45) for count in seen.values())


def test_crossovers_are_drawn_by_score():
    population = members("repair", 6.0, 3.0, 1.0)
    stream = rng()
    drawn = [crossed(population, stream) for _ in range(3000)]
    assert {each.asked for each in drawn} == {"crossover"}
    pairs = Counter(tuple(number_in(p) for p in each.shown) for each in drawn)
    assert pairs[0, 1] / 3000 == pytest.approx(0.6 * 3 / 4, abs=0.03)
    assert pairs[2, 0] / 3000 == pytest.approx(0.1 * 6 / 9, abs=0.02)
    assert not any(a == b for a, b in pairs)
    assert crossed(population[:1], stream).asked in ("tune", "replace")
    worthless = members("repair", 0.0, 0.0)
    assert len(crossed(worthless, stream).shown) == 2


def test_what_is_asked_next():
    destroys, repairs = members("destroy", 2.0, 1.0), members("repair", 2.0, 1.0)
    note = json.dumps([destroys[1].program.digest, repairs[0].program.digest])
    stream = rng()
    plans = [Glns().plan(destroys, repairs, note, stream) for _ in range(4000)]
    share = Counter(plan.operator for plan in plans)
    assert share["mutation"] / 4000 == pytest.approx(0.5, abs=0.03)
    assert share["crossover"] / 4000 == pytest.approx(0.4, abs=0.03)
    assert share["joint"] / 4000 == pytest.approx(0.1, abs=0.02)
    joint = next(plan for plan in plans if plan.operator == "joint")
    assert joint.destroy == Request("joint", (destroys[1].program,))
    assert joint.repair == Request("joint", (repairs[0].program,))
    # The first round fills both populations up; requests show what they begin with.
    first = Glns().plans(1, (destroys[:1], repairs), "", stream)
    assert [plan.operator for plan in first] == ["initialization"] * 4
    assert [plan.repair is not None for plan in first] == [True] * 3 + [False]
    assert first[0].destroy == Request("first", (destroys[0].program,))
    assert len(Glns().plans(2, (destroys, repairs), note, stream)) == 2


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


EASY = {"generations": 4, "iterations": 6}


def test_a_repair_that_is_written_twice_is_two_valid_answers():
    evaluator = Evaluator(by_numbers, refuse=lambda n: False)
    generator = Generator(numbers=3, broken=0)
    rounds, _, _ = run(
        "g-lns", rounds=2, evaluator=evaluator, generator=generator, method_settings=EASY
    )
    counts = [done.counts for done in rounds]
    assert any(each.repairs < each.repair_answers for each in counts)
    assert [each.valid_repairs for each in counts] == [each.repair_answers for each in counts]


def test_an_epoch_prunes_and_refills():
    evaluator = Evaluator(by_numbers, refuse=lambda n: False)
    generator = Generator(numbers=5000, broken=0)
    rounds, end, parts = run(
        "g-lns", rounds=2, evaluator=evaluator, generator=generator, method_settings=EASY
    )
    # 4 generations of 6 steps are as many as 2 rollouts of 3 steps of 4 pairs; and the own pair.
    assert (parts.config.search.nominal_pairs, Glns(**EASY).cost(parts.config)) == (50, 5)
    assert len(rounds) == Glns(**EASY).rounds(parts.config) == 10
    assert [done.counts.destroy_answers for done in rounds] == [2] * 10
    assert [done.counts.repair_answers for done in rounds] == [3] + [2] * 9
    assert all(done.counts.pairs in (4, 5) for done in rounds)
    for k, (done, asked) in enumerate(zip(rounds, evaluator.adapted, strict=True)):
        destroys, repairs, seeds, steps, rules = asked
        assert (len(destroys), len(repairs), steps) == (5, 5, 6)
        assert seeds == list(range(4 * k, 4 * k + 4))
        assert rules == Glns().rules
        for population in (done.destroys, done.repairs):
            scores = [m.score for m in population]
            assert len(scores) == 3
            assert scores == sorted(scores, reverse=True)
        assert {m.program.digest for m in done.destroys} <= {p.digest for p in destroys}
        if k:
            before = [m.program.digest for m in rounds[k - 1].destroys]
            assert [p.digest for p in destroys[:3]] == before
    # Each epoch evaluates one pair of its survivors, never the same twice.
    assert len(end.individuals) == len({each.pair.digest for each in end.individuals})
    assert sum(done.counts.pairs - 4 for done in rounds) == len(end.individuals) > 5
    assert end.best.utility == max(each.utility for each in end.individuals)
    for each in end.individuals:
        done = rounds[each.round - 1]
        assert each.pair.destroy.digest in digests(done.destroys)
        assert each.pair.repair.digest in digests(done.repairs)


def test_the_run_begins_with_simple_operators():
    _, _, parts = run("g-lns", rounds=1, method_settings=EASY)
    destroys, repairs, *_ = parts.evaluator.adapted[0]
    own = first_operators(get_problem("tsp"))
    assert destroys[:3] == own["destroy"]
    assert repairs[:2] == own["repair"]
    _, _, parts = run("g-lns", rounds=1, method_settings=EASY | {"seed": False})
    assert not {p.digest for p in own["destroy"]} & {
        p.digest for p in parts.evaluator.adapted[0][0]
    }
    assert not any(first_operators(get_problem("vrptw")).values())


@pytest.mark.parametrize(("name", "counts"), [("tsp", (3, 2)), ("cvrp", (3, 3))])
def test_the_simple_operators_work_together(name, counts):
    """As many of each role as the release has, and every pair of them runs."""
    problem = get_problem(name)
    own = first_operators(problem)
    assert tuple(len(own[role]) for role in ROLES) == counts
    pairs = [Pair(d, r) for d in own["destroy"] for r in own["repair"]]
    instances = [problem.sample(size, 1, 3)[0] for size in (5, 12, 30)]
    with LocalEvaluator(problem) as evaluator:
        found = evaluator.run(pairs, instances, (0,), 40)
    assert found.ok.all(), [found.failure(p) for p in range(len(pairs))]
    cheapest = found.final_cost[1 :: counts[1]] / found.initial_cost[1 :: counts[1]]
    assert cheapest[..., 0].mean() < 0.7


def test_repairs_of_spos_forms_are_written_to_a_destroy():
    settings = EASY | {"mutation": 0.4, "crossover": 0.2}
    generator = Generator(numbers=5000, broken=0)
    evaluator = Evaluator(by_numbers, refuse=lambda n: False)
    rounds, _, _ = run(
        "g-lns", rounds=4, generator=generator, evaluator=evaluator, method_settings=settings
    )
    calls = [prompts for prompts, _, _ in generator.calls]
    assert {prompt.form for prompts in calls for prompt in prompts} == {
        "initialization", "mechanism-replacement", "state-control-redesign",
        "shared-principle-crossover",
    }  # fmt: skip
    for k, done in enumerate(rounds[1:], 1):
        new = {p.digest for p in done.programs if p.role == "destroy"}
        best = rounds[k - 1].destroys[0].program
        for prompt in calls[2 * k + 1]:
            assert prompt.destroy == best or prompt.destroy.digest in new
            if prompt.form == "shared-principle-crossover":
                assert prompt.destroy == best


@pytest.mark.long
def test_a_writer_of_prose_is_asked_in_the_methods_language():
    writer = Writer(numbers=5000, broken=0)
    settings = EASY | {"mutation": 0.3, "crossover": 0.3}
    evaluator = Evaluator(by_numbers, refuse=lambda n: False)
    rounds, _, _ = run(
        "g-lns", rounds=6, generator=writer, evaluator=evaluator, method_settings=settings
    )
    assert not [failure for done in rounds for failure in done.failures if failure.text]
    asked = [prompt for prompts, _, _ in writer.calls for prompt in prompts]
    assert {prompt.form for prompt in asked} == {
        "glns-first", "glns-replace", "glns-tune", "glns-crossover", "glns-joint",
    }  # fmt: skip
    assert all(prompt.destroy is None for prompt in asked)
    first = next(prompt for prompt in asked if prompt.role == "repair")
    assert [parent.form for parent in first.parents] == ["seed", "seed"]
    for prompt in asked:
        if prompt.form == "glns-joint":
            assert [parent.role for parent in prompt.parents] == list(ROLES)
            assert all(parent.source.strip() in prompt.text for parent in prompt.parents)
        elif prompt.form == "glns-crossover":
            places = [prompt.text.index(f"Operator {n}\n") for n in (1, 2)]
            assert places == sorted(places)
    # One answer brings both programs of a joint pair.
    joint = [
        program
        for done in rounds
        for answers in done.answers
        for program in answers.programs
        if answers.prompt.form == "glns-joint"
    ]
    answered = [prompt for prompt in asked if prompt.form == "glns-joint"]
    assert Counter(p.role for p in joint) == dict.fromkeys(ROLES, len(answered))
    assert [len(done.answers) for done in rounds] == [
        done.counts.destroy_answers + done.counts.repair_answers for done in rounds
    ]


def test_the_joint_prompt():
    pair = Pair(program("destroy", 3), program("repair", 4))
    prompt = joint_prompt(templates_of("cvrp"), "cvrp", pair, state=True)
    assert (prompt.role, prompt.answer, prompt.destroy) == ("destroy", "joint", None)
    for words in ("one new destroy operator", "one new repair operator", "to mend just these"):
        assert words in prompt.text
    answer = f"Both:\n```python\n{pair.destroy.source}\n\n{pair.repair.source}```"
    for role, half in zip(ROLES, (pair.destroy, pair.repair), strict=True):
        read = parse_answer("joint", role, answer, parents=("x",), form="glns-joint")
        assert (read.digest, read.parents, read.form) == (half.digest, ("x",), "glns-joint")
    for text, complaint in (
        ("nothing", "no function named destroy"),
        (f"```python\n{pair.destroy.source}```", "no function named repair"),
    ):
        with pytest.raises(Exception, match=complaint):
            parse_answer("joint", "destroy", text)


def test_an_answer_that_gives_no_operator_is_tried_again():
    """Up to three times, and a writer of prose is told why."""
    writer = Writer(numbers=5000, broken=1.0)
    rounds, _, _ = run("g-lns", rounds=1, generator=writer, method_settings=EASY)
    assert rounds[0].counts.destroy_answers == 4 * 2
    assert rounds[0].counts.repair_answers == 4 * 3
    assert rounds[0].metrics["retries"] == 3 * 5
    tries = [prompts[0].text for prompts, _, _ in writer.calls[:4]]
    assert [text.count("An earlier answer could not be used") for text in tries] == [0, 1, 2, 3]
    assert "no function named destroy" in tries[1]
    # Without prose it is asked for as before, from another stream.
    silent = Generator(broken=1.0)
    run("g-lns", rounds=1, generator=silent, method_settings=EASY | {"retries": 1})
    (one, _, seed), (two, _, other) = silent.calls[:2]
    assert one == two
    assert seed != other


def test_what_an_operator_raised_is_not_in_the_next_prompt():
    """Its message may have an instance's numbers in it: a model reads its type and place."""
    message = "ValueError at line 3: 0.123456 0.654321"

    class Telling(Evaluator):
        def run(self, *args, **options):
            found = super().run(*args, **options)
            found.reason[found.reason == "because crash"] = message
            return found

    evaluator = Telling(by_numbers, refuse=lambda n: False)  # 13 crashes
    writer = Writer(numbers=14, broken=0)
    rounds, _, _ = run(
        "g-lns", rounds=6, generator=writer, evaluator=evaluator, method_settings=EASY
    )
    texts = [prompt.text for prompts, _, _ in writer.calls for prompt in prompts]
    again = [text for text in texts if "An earlier answer could not be used" in text]
    assert again
    assert any("ValueError at line 3" in text for text in again)
    assert not any("0.123456" in text or "0.654321" in text for text in texts)
    assert message in {each.reason for done in rounds for each in done.failures}, "people read all"


def test_an_operator_that_fails_beside_the_trivial_one_does_not_join():
    evaluator = Evaluator(by_numbers, refuse=lambda n: False)  # 13 crashes
    generator = Generator(numbers=14, broken=0)
    rounds, _, _ = run(
        "g-lns", rounds=6, evaluator=evaluator, generator=generator, method_settings=EASY
    )
    played = [p for destroys, repairs, *_ in evaluator.adapted for p in (*destroys, *repairs)]
    assert 13 not in {number_in(p) for p in played}
    found = [each for done in rounds for each in done.failures]
    assert {(each.status, each.reason) for each in found} == {("crash", "because crash")}
    assert all(bool(each.text) for each in found)


def test_searches_of_another_shape_are_refused():
    class Short(Evaluator):
        def adaptive(self, destroys, repairs, instances, seeds, steps, rules, **options):
            return super().adaptive(destroys, repairs, instances, seeds, steps - 1, rules)

    with pytest.raises(InputError, match="must return AdaptiveRuns of shape"):
        run("g-lns", evaluator=Short())


def test_nothing_works():
    crashes = Evaluator(lambda pair: (Status.CRASH, None))
    rounds, end, _ = run("g-lns", rounds=1, evaluator=crashes, method_settings=EASY)
    assert end.best is None
    assert not end.individuals
    silent = Generator(broken=1.0)
    rounds, end, _ = run(
        "g-lns", rounds=2, generator=silent, method_settings=EASY | {"seed": False}
    )
    assert [done.counts.pairs for done in rounds] == [4] * len(rounds)
    assert all(math.isfinite(m.score) for done in rounds for m in done.destroys)
    assert not any(done.destroys for done in rounds)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [({"prune": 5}, "prune is 5"), ({"crossover": 0.6}, "0.5 and 0.6"), ({"size": 1}, "size is 1")],
)
def test_settings_out_of_range(settings, complaint):
    with pytest.raises(InputError, match=complaint):
        run("g-lns", method_settings=settings)


def test_the_numbers_are_the_published_ones():
    """ZBoyn/G-LNS: method/glns.py and examples/tsp/run_tsp.py."""
    rules = Glns()
    assert (rules.size, rules.prune, rules.generations, rules.iterations) == (5, 2, 10, 100)
    # random() < 0.5 mutates, else random() < 0.8 crosses: 0.5, 0.4 and 0.1.
    assert (rules.mutation, rules.crossover) == (0.5, pytest.approx(0.5 * 0.8))
    assert (rules.retries, rules.seed, rules.scaled) == (3, True, False)
    assert (rules.rules.temperature, rules.rules.cooling) == (100.0, 0.97)
    scaled = Glns(scaled=True, temperature=7.0, cooling=0.9)
    assert scaled.rules == replace(rules.rules, scaled=True, temperature=7.0, cooling=0.9)
    assert "scaled to the instance" in scaled.variant(True)
    assert "annealing from T = 100" in rules.variant(True)
    # 10 generations of 100 steps are 5 pairs of 2 rollouts of 100 steps.
    assert rules.cost(Settings()) == 5 + 1
    assert small(method="g-lns").learning.update == "none"
