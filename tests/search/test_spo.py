import math
import random
import threading
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from spo_fakes import (
    Evaluator,
    Generator,
    Learner,
    answer,
    fingerprint,
    member,
    number_in,
    play,
    small,
)

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Refusal, Status
from spo_jax.errors import InputError
from spo_jax.program import Completion, Pair, Program
from spo_jax.program.grammar.base import CROSSOVERS, MUTATIONS
from spo_jax.runs.discovery.loop import discover
from spo_jax.search.credit import Credits
from spo_jax.search.parts import Parts
from spo_jax.search.payoffs import cross_play_scores
from spo_jax.search.plugins import GENERATORS, UPDATERS, as_generator
from spo_jax.search.population import (
    PANELS,
    SURVIVORS,
    SurvivorContext,
    diverse_survivors,
    jaccard,
    leader_panel,
)
from spo_jax.search.rounds import Played, State, Updater
from spo_jax.search.writing.contexts import draw_parents
from spo_jax.search.writing.prompts import INITIALIZATION
from spo_jax.seeding import python_rng


class Recorder(Updater):
    def __init__(self):
        self.groups = []

    def update(self, groups):
        self.groups.append(groups)
        return {"groups": float(len(groups["repair"]))}


# --- lines 3 to 7: contexts -----------------------------------------------------------------------


def test_the_first_round_is_parent_free_with_the_papers_numbers():
    # Appendix A.3: five groups of six destroys; five groups of six repairs for a valid destroy.
    config = small(rounds=1, responses=6, repairs_per_destroy=30)
    _, _, parts = play(config, generator=Generator(broken=0))
    (destroys, n, _), (repairs, m, _) = parts.generator.calls
    assert (len(destroys), n, m) == (5, 6, 6)
    assert {p.form for p in destroys + repairs} == {INITIALIZATION}
    assert not any(p.parents for p in destroys + repairs)
    assert {p.role for p in destroys} == {"destroy"}
    by_destroy = defaultdict(int)
    for prompt in repairs:
        by_destroy[prompt.destroy.digest] += 1
    assert set(by_destroy.values()) == {5}
    assert 20 < len(by_destroy) <= 30  # about one in 17 is refused, a few are drawn twice


@pytest.mark.long
def test_later_rounds_use_three_mutation_and_two_crossover_groups():
    config = small(rounds=2, responses=6, repairs_per_destroy=30)
    rounds, _, parts = play(config)
    prompts, _, _ = parts.generator.calls[2]
    assert [p.form for p in prompts] == [*MUTATIONS, *CROSSOVERS]
    assert [len(p.parents) for p in prompts] == [1, 1, 1, 2, 2]
    population = {m.program.digest for m in rounds[0].destroys}
    assert all(parent.digest in population for p in prompts for parent in p.parents)
    assert all(len({parent.digest for parent in p.parents}) == len(p.parents) for p in prompts)

    repairs, _, _ = parts.generator.calls[3]
    rows = [repairs[i : i + 5] for i in range(0, len(repairs), 5)]
    population = {m.program.digest for m in rounds[0].repairs}
    for row in rows:
        assert {p.form for p in row} == {*MUTATIONS, *CROSSOVERS}
        assert len({p.destroy.digest for p in row}) == 1
        assert all(parent.digest in population for p in row for parent in p.parents)


def test_a_small_budget_of_repairs_leaves_no_form_out_of_a_round():
    rounds, _, parts = play(small(rounds=2, responses=2, repairs_per_destroy=2))
    repairs, _, _ = parts.generator.calls[3]
    assert rounds[1].counts.destroys >= 5
    assert {p.form for p in repairs} == {*MUTATIONS, *CROSSOVERS}


def test_forms_without_enough_parents_fall_back_to_parent_free():
    _, _, parts = play(small(rounds=2, population_size=1))
    prompts, _, _ = parts.generator.calls[2]
    assert [p.form for p in prompts] == [*MUTATIONS, INITIALIZATION, INITIALIZATION]
    assert [len(p.parents) for p in prompts] == [1, 1, 1, 0, 0]


def test_one_source_under_two_conditions_is_one_parent():
    population = (member(1, 0.5, condition="a"), member(1, 0.4, condition="b"))
    assert draw_parents(population, 2, "uniform", python_rng(0)) == ()
    assert len(draw_parents(population, 1, "uniform", python_rng(0))) == 1


@pytest.mark.parametrize(("how", "share"), [("uniform", 1 / 3), ("rank", 6 / 11)])
def test_how_often_the_best_is_a_parent(how, share):
    population = (member(1, 0.1), member(2, 0.9), member(3, 0.5))
    rng = python_rng("draws")
    draws = [draw_parents(population, 1, how, rng)[0] for _ in range(3000)]
    best = sum(number_in(p) == 2 for p in draws) / len(draws)
    assert best == pytest.approx(share, abs=0.04)


def test_programs_know_where_they_come_from():
    rounds, _, parts = play(small(rounds=2))
    by_text = {}
    for prompts, _, _ in parts.generator.calls[2:]:
        for prompt in prompts:
            by_text[prompt.role, prompt.form, tuple(p.digest for p in prompt.parents)] = prompt
    born = [p for p in rounds[1].programs if p.form != INITIALIZATION]
    assert born
    fresh = [p for p in born if p not in rounds[0].programs]
    for program in fresh:
        prompt = by_text[program.role, program.form, program.parents]
        assert bool(program.condition) == (prompt.destroy is not None)


def test_a_generator_that_answers_too_little_is_named():
    class Lazy(Generator):
        def generate(self, prompts, n, seed):
            return super().generate(prompts, n, seed)[:-1]

    with pytest.raises(InputError, match="the generator answered 5 prompts"):
        play(generator=Lazy())


# --- lines 8 to 13: payoffs, credits, groups ------------------------------------------------------


def expected_utility(evaluator, destroy, repair):
    status, value = evaluator.verdict(Pair(destroy, repair))
    return value if status == Status.OK else math.nan


def parsed(completion, role):
    """The program in a fake answer, read by hand; None where there is none."""
    if "```" not in completion.text:
        return None
    source = completion.text.split("```python\n")[1].split("```")[0]
    program = Program(role, source)
    return None if number_in(program) % 17 == 0 else program


def test_groups_earn_the_papers_credits():
    """Every sample's credit, recomputed from the verdicts alone."""
    updater, evaluator = Recorder(), Evaluator()
    config = small(rounds=2, responses=6, repairs_per_destroy=12, top_responses=2)
    play(config, evaluator=evaluator, updater=updater, generator=Generator(numbers=40))
    assert len(updater.groups) == 2
    for groups in updater.groups:
        responses = defaultdict(dict)  # destroy digest -> repair digest -> J
        for group in groups["repair"]:
            destroy = group.prompt.destroy
            assert len(group.completions) == len(group.credits) == 6
            for completion, credit in zip(group.completions, group.credits, strict=True):
                repair = parsed(completion, "repair")
                j = math.nan if repair is None else expected_utility(evaluator, destroy, repair)
                # eq:follower-credit
                assert credit == j or (math.isnan(credit) and math.isnan(j))
                if repair is not None and not math.isnan(j):
                    responses[destroy.digest][repair.digest] = j
        assert len(groups["destroy"]) == 5
        for group in groups["destroy"]:
            for completion, credit in zip(group.completions, group.credits, strict=True):
                destroy = parsed(completion, "destroy")
                best = sorted(responses[destroy.digest].values())[-2:] if destroy else []
                # eq:leader-credit, over the set of responses: repeats count once
                expected = sum(best) / len(best) if best else math.nan
                assert credit == expected or (math.isnan(credit) and math.isnan(expected))


def test_a_credit_scheme_is_one_function_passed_in():
    def constant(payoff, *, top):
        return Credits(
            np.full(len(payoff.destroys), 7.0), np.where(np.isfinite(payoff.utility), 3.0, np.nan)
        )

    updater = Recorder()
    rounds, _, _ = play(small(rounds=1), credit=constant, updater=updater)
    credits = np.concatenate([group.credits for group in updater.groups[0]["repair"]])
    assert set(credits[np.isfinite(credits)]) == {3.0}
    assert {m.score for m in rounds[0].destroys} == {7.0}


def test_the_updater_sees_the_round_before_the_populations_change():
    order, begun, panel_chosen = [], threading.Event(), threading.Event()

    class Watch(Updater):
        def update(self, groups):
            order.append("update")
            begun.set()
            assert panel_chosen.wait(20)  # cross-play goes on beside the update
            return {"loss": 0.25}

    def survivors(candidates, context):
        assert begun.wait(20)
        order.append("survivors")
        return ()

    def panel(destroys, context):
        order.append("panel")
        panel_chosen.set()
        return context.classical

    rounds, _, _ = play(small(rounds=1), updater=Watch(), survivors=survivors, panel=panel)
    assert order == ["update", "survivors", "panel", "survivors"]
    assert rounds[0].metrics == {"loss": 0.25}


def test_the_best_pair_is_the_highest_response_and_ties_keep_the_older():
    ties = Evaluator(verdict=lambda pair: (Status.OK, 0.25))
    rounds, end, parts = play(evaluator=ties)
    first = parts.evaluator.batches[0][0]
    assert end.best.pair.digest == first.digest
    assert {r.best.round for r in rounds} == {1}

    evaluator = Evaluator()
    rounds, end, _ = play(evaluator=evaluator)
    responses = [
        (p.utility, r.number) for r in rounds for p in r.pairs
        if p.kind == "response" and p.status == "ok"
    ]  # fmt: skip
    assert end.best.utility == max(u for u, _ in responses)
    assert end.best.round == min(n for u, n in responses if u == end.best.utility)
    curve = [r.best.utility for r in rounds]
    assert curve == sorted(curve)


def test_cross_play_pairs_compete_for_the_best_only_if_asked():
    def cross_is_better(pair):
        return Status.OK, 0.5 if pair.digest in golden else 0.25

    golden: set[str] = set()
    rounds, _, _ = play(small(rounds=1), evaluator=Evaluator(verdict=cross_is_better))
    crossed = [p for p in rounds[0].pairs if p.kind == "cross-play"]
    programs = {p.digest: p for p in rounds[0].programs}
    pair = Pair(programs[crossed[0].destroy], programs[crossed[0].repair])
    golden.add(pair.digest)
    _, end, _ = play(small(rounds=1), evaluator=Evaluator(verdict=cross_is_better))
    assert end.best.utility == 0.25
    _, end, _ = play(small(rounds=1, best_from="all"), evaluator=Evaluator(verdict=cross_is_better))
    assert (end.best.utility, end.best.pair.digest) == (0.5, pair.digest)


# --- lines 14 to 17: populations ------------------------------------------------------------------


def survivors(candidates, size, weight):
    """Appendix A.5 as a plain loop over (program, score)."""
    left, kept = list(candidates), []
    while left and len(kept) < size:

        def value(c, kept=kept):
            near = [jaccard(c[0].strategy, k[0].strategy) for k in kept]
            return c[1] + (weight * min(near) if near else 0.0)

        best = max(left, key=value)
        kept.append(best)
        left.remove(best)
    return kept


def test_populations_follow_the_appendix():
    evaluator = Evaluator()
    config = small(rounds=3)
    rounds, _, _ = play(config, evaluator=evaluator)
    destroys, repairs = (), ()
    for done in rounds:
        programs = {(p.digest, p.condition): p for p in done.programs}
        by_digest = {p.digest: p for p in done.programs if p.role == "destroy"}
        met = defaultdict(list)
        for p in done.pairs:
            if p.kind == "response" and p.status == "ok":
                met[p.destroy].append(p.utility)
        new = [(by_digest[d], sum(sorted(u)[-2:]) / len(u[-2:])) for d, u in met.items()]
        union = [(m.program, m.score) for m in destroys] + new
        expected = survivors(union, config.search.population_size, config.search.diversity)
        assert [m.score for m in done.destroys] == [score for _, score in expected]
        assert [m.program.digest for m in done.destroys] == [p.digest for p, _ in expected]

        # Each surviving repair's score is its mean J over one panel of the survivors.
        candidates = {m.program.digest for m in repairs}
        for m in done.repairs:
            assert (m.program.digest, m.program.condition) in programs or (
                m.program.digest in candidates
            )
        panel = {p.destroy for p in done.pairs if p.kind == "cross-play"}
        assert panel <= {m.program.digest for m in done.destroys}
        leaders = [m.program for m in done.destroys]
        for m in done.repairs:
            means = {
                np.mean([expected_utility(evaluator, d, m.program) for d in pick])
                for pick in ([a, b] for a in leaders for b in leaders if a is not b)
            }
            assert any(m.score == pytest.approx(mean) for mean in means)
        destroys, repairs = done.destroys, done.repairs


def test_cross_play_takes_the_best_of_the_round_and_the_old_population():
    config = small(rounds=2, cross_play_candidates=3)
    panels = []

    def panel(destroys, context):
        panels.append(leader_panel(destroys, context))
        return panels[-1]

    rounds, end, parts = play(config, panel=panel)
    first, second = rounds
    # Round 1 plays destroys x (3 best new), round 2 adds the old population.
    responses = [p for p in first.pairs if p.kind == "response" and p.status == "ok"]
    best = sorted(responses, key=lambda p: -p.utility)[:3]
    panel = {p.destroy for p in first.pairs if p.kind == "cross-play"}
    crossed = {p.repair for p in first.pairs if p.kind == "cross-play"}
    assert crossed <= {p.repair for p in best}
    assert len(panel) <= config.search.panel_evolved
    batch = parts.evaluator.batches[3]
    old = {m.program.digest for m in first.repairs}
    new = {p.repair for p in second.pairs if p.kind == "response"}
    assert {pair.repair.digest for pair in batch} <= old | new
    assert len({pair.repair.digest for pair in batch} - old) <= 3
    assert old
    assert {(leader.digest, repair) for leader in panels[1] for repair in old} <= (
        end.payoffs.keys()
    )


def test_fixed_classical_destroys_join_the_panel():
    classical = tuple(
        Program("destroy", answer("destroy", n).text.split("```python\n")[1].split("```")[0])
        for n in (2001, 2002)
    )

    class Problem(type(get_problem("tsp"))):
        def classical_destroys(self):
            return classical

    config = small(rounds=1, panel_classical=True)
    parts = Parts(config, Problem(), Evaluator(), Generator())
    rounds = []
    discover(parts, None, rounds.append)
    met = {p.destroy for p in rounds[0].pairs if p.kind == "cross-play"}
    assert {p.digest for p in classical} <= met
    assert not {p.digest for p in classical} & {m.program.digest for m in rounds[0].destroys}


def test_a_leader_that_nobody_can_play_with_is_left_out_of_the_panel():
    candidates = [member(1, 0.0), member(2, 0.0)]
    panel = [member(n, 0.0, role="destroy").program for n in (3, 4, 5)]
    values = {(3, 1): 0.25, (3, 2): 0.5, (5, 1): 0.75}  # nobody plays with 4; 2 fails with 5

    table = Verdicts({**values, (4, 1): "host_fault"})
    scored = cross_play_scores(candidates, panel, table, 2)
    assert scored[0].score == 0.5
    assert math.isnan(scored[1].score)
    assert all(math.isnan(m.score) for m in cross_play_scores(candidates, panel[1:2], table, 1))


class Verdicts:
    """A table of the numbers in programs: a utility, or the status of a failure ("crash")."""

    def __init__(self, values):
        self.values = values

    def verdict(self, destroy, repair):
        value = self.values.get((number_in(destroy), number_in(repair)), "crash")
        status, value = (value, math.nan) if isinstance(value, str) else ("ok", value)
        return Played(destroy.digest, repair.digest, "cross-play", status, value)


def test_a_fault_of_ours_takes_no_repair_out_of_the_population():
    old, new = member(1, 0.375), replace(member(2, 0.875), round=2)
    candidates = [old, new, member(3, 0.0)]
    panel = [member(n, 0.0, role="destroy").program for n in (4, 5)]
    values = {(4, 1): 0.25, (4, 2): 0.5, (4, 3): 0.5, (5, 2): 0.75}  # 3 fails with 5
    scored = cross_play_scores(candidates, panel, Verdicts({**values, (5, 1): "host_fault"}), 2)
    assert [m.score for m in scored[:2]] == [0.25, 0.625]
    assert math.isnan(scored[2].score)

    values |= dict.fromkeys([(4, 1), (5, 1), (4, 2), (5, 2)], "host_fault")
    scored = cross_play_scores(candidates, panel, Verdicts(values), 2)
    assert scored[0].score == 0.375  # what it had earned in the round before
    assert math.isnan(scored[1].score)  # a credit is no cross-play score


def test_a_pair_that_met_a_fault_has_another_try():
    tries = Counter()

    def verdict(pair):
        tries[pair.digest] += 1
        return (Status.HOST_FAULT, None) if tries[pair.digest] == 1 else (Status.OK, 0.25)

    config = small(rounds=1)
    rounds, end, _ = play(config, evaluator=Evaluator(verdict=verdict))
    assert {p.status for p in rounds[0].pairs} == {"ok"}
    assert len(end.repairs) == config.search.cross_play_candidates
    assert set(tries.values()) == {2}
    assert len({p.digests for p in rounds[0].pairs}) == len(rounds[0].pairs)


# --- what is evaluated, and what is not -----------------------------------------------------------


def test_no_pair_is_evaluated_twice():
    rounds, _, parts = play(small(rounds=4), generator=Generator(numbers=12))
    evaluated = [pair.digest for batch in parts.evaluator.batches for pair in batch]
    assert len(evaluated) == len(set(evaluated))
    assert sum(r.counts.reused for r in rounds) > 0
    assert sum(r.counts.pairs for r in rounds) == len(evaluated)


def test_destroys_of_earlier_rounds_can_be_left_out():
    again, _, _ = play(small(rounds=3), generator=Generator(numbers=20))
    seen: set[str] = set()
    repeats = 0
    for done in again:
        new = {p.digest for p in done.programs if p.role == "destroy" and p.form}
        repeats += len(new & seen)
        seen |= new
    assert repeats > 0

    updater = Recorder()
    _, _, parts = play(
        small(rounds=3, deduplicate="run"), generator=Generator(numbers=20), updater=updater
    )
    asked: set[str] = set()
    for prompts, _, _ in parts.generator.calls:
        conditions = {p.destroy.digest for p in prompts if p.destroy}
        assert not conditions & asked
        asked |= conditions
    # A destroy that was left out is left out of the update as well.
    last = {group.prompt.destroy.digest for group in updater.groups[2]["repair"]}
    left_out = 0
    for group in updater.groups[2]["destroy"]:
        for completion, credit in zip(group.completions, group.credits, strict=True):
            destroy = parsed(completion, "destroy")
            if destroy is not None and destroy.digest not in last:
                assert math.isnan(credit)
                left_out += 1
    assert left_out


def test_failures_are_data():
    rounds, _, parts = play(generator=Generator(broken=0.3))
    failures = [f for r in rounds for f in r.failures]
    assert {f.status for f in failures} == {"unparsable", "rejected", "crash", "timeout"}
    assert {(f.subject, f.status) for f in failures if f.subject != "pair"} == {
        (role, status) for role in ("destroy", "repair") for status in ("unparsable", "rejected")
    }
    broken = [f for f in failures if f.status == "unparsable"]
    assert all(f.text == "no idea" and f.reason.startswith("no function named") for f in broken)
    refused = [f for f in failures if f.status == "rejected"]
    assert all(f.reason == "seventeen" and f.text for f in refused)
    ran = {pair.destroy.digest for batch in parts.evaluator.batches for pair in batch}
    assert not {f.destroy for f in refused if f.destroy} & ran
    crashed = [f for f in failures if f.status == "crash"]
    assert all(f.subject == "pair" and f.reason == "because crash" for f in crashed)
    for done in rounds:
        bad = [p for p in done.pairs if p.status != "ok"]
        assert all(math.isnan(p.utility) for p in bad)
        assert sum(done.tally().values()) == len(done.failures)
        answers = done.counts.repair_answers
        assert done.counts.valid_repairs <= answers


def test_a_host_fault_earns_nothing_and_is_played_again():
    faults = Counter()

    def verdict(pair):
        if pair.digest in faults or len(faults) < 12:
            faults[pair.digest] += 1
        return (Status.HOST_FAULT, None) if 0 < faults[pair.digest] <= 2 else (Status.OK, 0.25)

    updater = Recorder()
    rounds, end, _ = play(
        small(rounds=4),
        evaluator=Evaluator(verdict=verdict),
        generator=Generator(numbers=6, broken=0),
        updater=updater,
    )
    faulty = {p.digests for p in rounds[0].pairs if p.status == "host_fault"}
    assert len(faulty) == 12
    for group in updater.groups[0]["repair"]:
        for completion, credit in zip(group.completions, group.credits, strict=True):
            repair = parsed(completion, "repair")
            if repair and (group.prompt.destroy.digest, repair.digest) in faulty:
                assert math.isnan(credit)
    later = {p.digests for r in rounds[1:] for p in r.pairs}
    assert faulty & later  # few programs: some come again
    assert all(end.payoffs[d].status == "ok" for d in faulty & later)
    assert not any(p.status == "host_fault" for p in end.payoffs.values())


def test_a_program_that_the_gate_could_not_judge_has_not_failed():
    class Faulty(Evaluator):
        def check(self, programs):
            return [Refusal(Status.HOST_FAULT, "cannot fork") for _ in programs]

    updater = Recorder()
    rounds, _, _ = play(
        small(rounds=1), evaluator=Faulty(), generator=Generator(broken=0.4), updater=updater
    )
    tally = rounds[0].tally()
    assert set(tally) == {"host_fault", "unparsable"}
    failed = [failed for group in updater.groups[0]["destroy"] for failed in group.failed]
    assert sum(failed) == tally["unparsable"] < len(failed)


def test_a_round_in_which_nothing_works_goes_by():
    silent = Generator(broken=1.0)
    rounds, end, _ = play(small(rounds=2), generator=silent)
    assert end.best is None
    assert [r.counts.repair_answers for r in rounds] == [0, 0]
    assert all(not r.destroys and not r.repairs for r in rounds)

    crashes = Evaluator(verdict=lambda pair: (Status.CRASH, None))
    rounds, end, _ = play(small(rounds=2), evaluator=crashes)
    assert end.best is None
    assert rounds[1].counts.median is None


# --- determinism ----------------------------------------------------------------------------------


@pytest.mark.long
def test_equal_runs_are_equal_and_seeds_differ():
    first, second = play(updater=Learner())[0], play(updater=Learner())[0]
    assert fingerprint(first) == fingerprint(second)
    assert fingerprint(play(small(seed=1))[0]) != fingerprint(first)


@pytest.mark.long
def test_a_run_goes_on_from_any_state_as_if_never_stopped():
    whole, end, _ = play(small(rounds=4))
    for stop in (1, 2, 3):
        state = State()
        for done in whole[:stop]:
            state = state.after(done)
        rest, last, _ = play(small(rounds=4), state=state)
        assert fingerprint(rest) == fingerprint(whole[stop:])
        assert last.best == end.best


def test_more_rounds_begin_with_the_same_rounds():
    short, long = play(small(rounds=2))[0], play(small(rounds=3))[0]
    assert fingerprint(long[:2]) == fingerprint(short)


@pytest.mark.long
def test_the_number_of_workers_changes_nothing():
    """The real evaluator and the grammar, on instances small enough for a test."""
    found = []
    for workers in (1, 3):
        config = small(rounds=2, size=8, steps=5, responses=2, repairs_per_destroy=2)
        problem = get_problem("tsp")
        with LocalEvaluator(problem, workers, seed=config.seed) as evaluator:
            parts = Parts(config, problem, evaluator, GENERATORS["grammar"])
            rounds = []
            discover(parts, None, rounds.append)
        found.append(fingerprint(rounds))
    assert found[0] == found[1]
    assert found[0][1][4] is not None  # there is a best pair


def test_completions_are_handed_to_the_updater_untouched():
    updater = Recorder()
    tokens, logprobs = np.arange(5, dtype=np.int32), np.full(5, -0.5, np.float32)

    class Tokens(Generator):
        def sample(self, prompt, rng):
            return Completion(super().sample(prompt, rng).text, tokens, logprobs)

    play(small(rounds=1), generator=Tokens(), updater=updater)
    for group in (g for role in ("destroy", "repair") for g in updater.groups[0][role]):
        assert all(c.tokens is tokens and c.logprobs is logprobs for c in group.completions)


# --- parts by name --------------------------------------------------------------------------------


class Structural:
    """An updater by its methods alone."""

    def update(self, groups):
        return {}

    def save(self, folder, number):
        pass

    def restore(self, folder, number):
        pass


def metrics_of(groups):
    return {"destroys": len(groups["destroy"])}


def test_parts_are_found_by_name():
    assert isinstance(GENERATORS["spo_fakes:Generator"], Generator)
    assert isinstance(UPDATERS["spo_fakes:Learner"], Learner)
    assert UPDATERS["none"].update({"destroy": [], "repair": []}) == {}
    assert isinstance(UPDATERS[f"{__name__}:Structural"], Structural)
    updater = UPDATERS[f"{__name__}:metrics_of"]
    assert play(small(rounds=1), updater=updater)[0][0].metrics == {"destroys": 5}


def best_alone(candidates, context):
    return diverse_survivors(candidates, replace(context, size=1, diversity=0.0))


def stranger(destroys, context):
    return (answer_program("destroy"),)


def nothing_known(candidates, context):
    return [replace(member, score=math.nan) for member in candidates]


def repairs_judge(destroys, context):
    return (answer_program("repair"),)


def answer_program(role):
    return member(1, 0.0, role=role).program


def test_who_survives_and_who_judges_are_found_by_name():
    assert (SURVIVORS["diverse"], PANELS["evolved"]) == (diverse_survivors, leader_panel)
    config = small(rounds=1, survivors=f"{__name__}:best_alone", panel=f"{__name__}:stranger")
    rules = {
        "survivors": SURVIVORS[config.search.survivors],
        "panel": PANELS[config.search.panel],
    }
    fine = Evaluator(verdict=lambda pair: (Status.OK, 0.25))
    rounds = play(config, evaluator=fine, **rules)[0]
    assert (len(rounds[0].destroys), len(rounds[0].repairs)) == (1, 1)
    judges = {p.destroy for p in rounds[0].pairs if p.kind == "cross-play"}
    assert judges == {answer_program("destroy").digest}

    with pytest.raises(InputError, match="it must return members of its candidates"):
        play(small(rounds=1), survivors=SURVIVORS[f"{__name__}:nothing_known"])
    with pytest.raises(InputError, match="it must return destroy programs"):
        play(small(rounds=1), panel=PANELS[f"{__name__}:repairs_judge"])


@pytest.mark.parametrize("rule", [lambda c, x: [c[0], c[0]], lambda c, x: c])
def test_a_rule_that_keeps_too_many_or_one_twice_is_refused(monkeypatch, rule):
    monkeypatch.setitem(globals(), "rule", lambda candidates, context: rule(candidates, context))
    context = SurvivorContext(2, 0.1, 1, "repair", random.Random(0), small())
    candidates = [member(n, 0.5) for n in range(3)]
    with pytest.raises(InputError, match="each program once, and at most 2"):
        SURVIVORS[f"{__name__}:rule"](candidates, context)
    assert SURVIVORS[f"{__name__}:nobody"](candidates, context) == ()


def nobody(candidates, context):
    return []


def tournament(candidates, context):
    """The best of two, drawn by the rng of the context."""
    seen.append((context.round, context.role, context.size, type(context).__name__))
    left = [m for m in candidates if math.isfinite(m.score)]
    chosen = []
    while left and len(chosen) < context.size:
        winner = max(context.rng.sample(left, min(2, len(left))), key=lambda m: m.score)
        left = [m for m in left if m.program.digest != winner.program.digest]
        chosen.append(winner)
    return chosen


seen = []


@pytest.mark.long
def test_a_rule_with_its_rng_repeats_itself_and_chooses_the_panel():
    config = small(survivors=f"{__name__}:tournament")
    rule = SURVIVORS[config.search.survivors]
    whole, end, _ = play(config, survivors=rule)
    assert fingerprint(play(config, survivors=rule)[0]) == fingerprint(whole)
    assert fingerprint(whole) != fingerprint(play(small())[0])
    half, state, _ = play(small(survivors=config.search.survivors, rounds=2), survivors=rule)
    rest, resumed, _ = play(config, state=state, survivors=rule)
    assert fingerprint(half + rest) == fingerprint(whole)
    assert (resumed.destroys, resumed.repairs) == (end.destroys, end.repairs)
    due = [
        (k, role, size, kind)
        for k in range(1, config.search.rounds + 1)
        for role, size, kind in (
            ("destroy", config.search.population_size, "SurvivorContext"),
            ("destroy", config.search.panel_evolved, "PanelContext"),
            ("repair", config.search.population_size, "SurvivorContext"),
        )
    ]
    assert seen[: len(due)] == due
    for done in whole:  # what the tournament chose judges the repairs, not the best by score
        judges = {p.destroy for p in done.pairs if p.kind == "cross-play"}
        assert judges <= {m.program.digest for m in done.destroys}


def test_an_object_that_only_generates_is_adapted():
    class Plain:
        def generate(self, prompts, n, seed):
            return Generator().generate(prompts, n, seed)

    class Prose(Plain):
        writes_prose = True

        def fits(self, text):
            return False

    adapted = as_generator(Plain())
    assert adapted.fits("x")
    assert not adapted.writes_prose
    adapted.open(None, print)
    adapted.close()
    assert fingerprint(play(generator=adapted)[0]) == fingerprint(play()[0])
    assert as_generator(adapted) is adapted
    assert as_generator(Prose()).writes_prose
    assert not as_generator(Prose()).fits("x")

    class Wrong(Plain):
        def fits(self):
            return True

    with pytest.raises(InputError, match=r"its method fits must take \(text\)"):
        as_generator(Wrong())
    with pytest.raises(InputError, match=r"has no method generate, as spo_jax\.generator"):
        as_generator(object())


@pytest.mark.parametrize(
    ("registry", "name", "words"),
    [
        (GENERATORS, "gramar", "unknown generator 'gramar': use model, vllm, openai, grammar"),
        (GENERATORS, "spo_fakes:nothing", "cannot import generator .*AttributeError"),
        (GENERATORS, "spo_fakes:small", "has no method generate"),
        (UPDATERS, "no_such_module:f", "cannot import update .*ModuleNotFoundError"),
        (UPDATERS, ":f", "unknown update"),
        (UPDATERS, "math:pi", "is a float, neither Updater nor function"),
        (
            SURVIVORS,
            "best",
            "unknown survivors 'best': use diverse, ranked, or 'package.module:NAME'",
        ),
        (PANELS, "math:pi", "panel 'math:pi' is of type float, not a function"),
    ],
)
def test_parts_that_are_not_there(registry, name, words):
    with pytest.raises(InputError, match=words):
        registry[name]
