"""What the baselines share: pairs are asked for half by half, and cost what they cost SPO."""

import math

import numpy as np
import pytest
from method_fakes import by_numbers, everything, individual, run
from spo_fakes import Evaluator, Generator, number_in, small

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.peers.pairs import Budget, Request, best_of, generate, scores_of
from spo_jax.program import Completion
from spo_jax.program.grammar.base import MUTATIONS
from spo_jax.runs.discovery.loop import discover
from spo_jax.search.method import method_of
from spo_jax.search.parts import Parts
from spo_jax.search.payoffs import Table
from spo_jax.search.plugins import GENERATORS
from spo_jax.search.rounds import State
from spo_jax.search.writing.prompts import INITIALIZATION

PARENTS = (individual(3, 0.5).pair, individual(4, 0.4).pair)


def bred(requests, n=1, generator=None, evaluator=None, state=None):
    """The offspring, the table, and the calls of the generator."""
    generator = generator or Generator(broken=0)
    evaluator = evaluator or Evaluator(by_numbers, refuse=lambda n: False)
    parts = Parts(small(), get_problem("tsp"), evaluator, generator)
    state = state or State()
    table = Table(parts, parts.problem.sample(6, 2, 0), state.payoffs)
    return generate(parts, 1, table, requests, n=n), table, generator.calls


def test_a_pair_is_asked_for_half_by_half():
    requests = [
        Request("shared-principle-crossover", PARENTS, "e2", 7),
        Request(MUTATIONS[0], PARENTS[:1], "m1"),
        Request(INITIALIZATION),
    ]
    offspring, table, calls = bred(requests, n=2)
    (destroys, n, _), (repairs, m, _) = calls
    assert (len(destroys), n, len(repairs), m) == (3, 2, 6, 1)
    assert [p.form for p in destroys] == [each.form for each in requests]
    for i, repair in enumerate(repairs):
        destroy = destroys[i // 2]
        assert (repair.role, repair.form, len(repair.parents)) == (
            "repair", destroy.form, len(destroy.parents),
        )  # fmt: skip
        both = zip(destroy.parents, repair.parents, strict=True)
        assert all(number_in(d) == number_in(r) for d, r in both)  # halves of one pair
        assert repair.destroy is offspring.destroys[i // 2].programs[i % 2]
    assert [each.operator for each in offspring.individuals] == ["e2", "e2", "m1", "m1", "", ""]
    assert [each.place for each in offspring.individuals] == [7, 7, 0, 0, 0, 0]
    for each in offspring.individuals:
        assert each.utility == table.utility(each.pair.destroy, each.pair.repair)
        # Every rollout of a fake pair gains the same.
        assert each.scores == (each.utility, each.utility)


def test_what_fails_is_spent_and_no_individual():
    class Half(Generator):
        def sample(self, prompt, rng):
            if prompt.role == "destroy" and rng.random() < 0.5:
                return Completion("no idea")
            return super().sample(prompt, rng)

    evaluator = Evaluator(by_numbers, refuse=lambda n: n % 3 == 0)
    half = Half(numbers=20, broken=0)
    offspring, table, calls = bred([Request(INITIALIZATION)], 200, half, evaluator)
    valid = [p for answers in offspring.destroys for p in answers.programs if p is not None]
    assert 20 < len(valid) < 120
    assert len(calls[1][0]) == len(valid)  # one repair to each destroy that passed
    assert {f.status for f in offspring.failures} == {"unparsable", "rejected"}
    crashed = {p.digests for p in table.played if p.status == "crash"}
    assert crashed
    born = {(e.pair.destroy.digest, e.pair.repair.digest) for e in offspring.individuals}
    assert not born & crashed
    assert all(not math.isnan(each.utility) for each in offspring.individuals)


def test_no_requests_are_no_brood():
    offspring, table, calls = bred([])
    assert (offspring.individuals, offspring.destroys, offspring.failures, table.played, calls) == (
        (), (), (), [], [],
    )  # fmt: skip


def test_streams_of_one_round_differ():
    parts = Parts(small(), get_problem("tsp"), Evaluator(), Generator(broken=0))
    table = Table(parts, parts.problem.sample(6, 2, 0), {})
    for stream in ((), ("mutation",)):
        generate(parts, 1, table, [Request(INITIALIZATION)], stream=stream)
    seeds = [seed for _, _, seed in parts.generator.calls]
    assert len(set(seeds)) == 4


def test_a_pair_that_an_earlier_round_played_keeps_its_scores():
    rounds, _, _ = run("best-of-n", generator=Generator(numbers=5, broken=0))
    again = [each for done in rounds[1:] for each in done.individuals]
    played = {p.digests for done in rounds[1:] for p in done.pairs}
    reused = [e for e in again if (e.pair.destroy.digest, e.pair.repair.digest) not in played]
    assert reused
    assert all(len(each.scores) == 2 for each in reused)


def test_scores_are_the_utility_by_instance():
    class Gains(Evaluator):
        def run(self, pairs, instances, **options):
            rollouts = super().run(pairs, instances, **options)
            rollouts.best_cost[:, 0, :, -1] = [[960.0, 896.0]]  # 1/16 and 1/8 of 1024 less
            rollouts.best_cost[:, 1, :, -1] = 1024.0
            return rollouts

    config = small()
    evaluator = Gains(lambda pair: (Status.OK, 0.25))
    parts = Parts(config, get_problem("tsp"), evaluator, Generator())
    table = Table(parts, parts.problem.sample(6, 2, 0), {})
    table.play([PARENTS[0]], "response")
    pair = PARENTS[0]
    np.testing.assert_array_equal(
        table.scores(pair.destroy, pair.repair), [[0.0625, 0.125], [0, 0]]
    )
    assert scores_of(pair, table) == (0.09375, 0.0)
    assert table.utility(PARENTS[0].destroy, PARENTS[0].repair) == 0.046875
    assert np.isnan(table.scores(PARENTS[1].destroy, PARENTS[1].repair)).all()


def test_budgets():
    papers = Budget(13_950, 10, 50)
    assert papers.rounds == 280  # 10 + 278 * 50 = 13,910, and 40 more
    counts = [papers.of(k) for k in range(1, 281)]
    assert (counts[0], counts[1], counts[-1], sum(counts)) == (10, 50, 40, 13_950)
    assert [papers.before(k) for k in (1, 2, 3, 281)] == [0, 10, 60, 13_950]
    little = Budget(7, 10, 50)
    assert (little.rounds, little.of(1)) == (1, 7)


def test_the_nominal_budget_is_the_papers():
    # Appendix C: 13,950 pairs, or 27,900 programs, as 900 destroys and 27,000 repairs are.
    assert small(method="eoh", pairs=7).search.nominal_pairs == 7
    with pytest.raises(InputError, match="pairs is given, and method is spo"):
        small(pairs=7)
    assert small().search.nominal_pairs == 4 * 5 * 2 * 5 // 2
    config = small().replace(rounds=30, responses=6, repairs_per_destroy=30)
    assert config.search.nominal_pairs == 13_950


def test_the_best_is_the_one_born_first():
    born = [individual(n, u) for n, u in ((1, 0.2), (2, 0.5), (3, 0.5))]
    assert best_of(born) is born[1]
    assert best_of([]) is None


def test_counts_of_a_round():
    verdicts = {Status.OK: 0, Status.CRASH: 0}

    def verdict(pair):
        status, value = by_numbers(pair)
        verdicts[status] += 1
        return status, value

    evaluator = Evaluator(verdict, refuse=lambda n: n % 7 == 0)
    rounds, _, parts = run(
        "best-of-n", rounds=1, responses=4, generator=Generator(numbers=20), evaluator=evaluator
    )
    asked = [prompt for prompts, _, _ in parts.generator.calls for prompt in prompts]
    assert {(prompt.form, prompt.parents) for prompt in asked} == {(INITIALIZATION, ())}
    [done] = rounds
    counts = done.counts
    assert counts.destroy_answers == small(rounds=1, responses=4).search.nominal_pairs == 50
    assert counts.repair_answers == counts.valid_destroys < 50
    assert counts.valid_repairs == len(done.individuals)
    assert counts.pairs == sum(verdicts.values())
    values = sorted({each.pair.digest: each.utility for each in done.individuals}.values())
    assert len(values) == verdicts[Status.OK]
    assert counts.top == values[-1]
    middle = len(values) // 2
    assert counts.median == (values[middle] + values[-middle - 1]) / 2
    assert {half for e in done.individuals for half in (e.pair.destroy, e.pair.repair)} <= set(
        done.programs
    )


@pytest.fixture(scope="module")
def evaluators():
    """The real one, with one worker and with two."""
    problem, seed = get_problem("tsp"), small().seed
    with LocalEvaluator(problem, 1, seed=seed) as one, LocalEvaluator(problem, 2, seed=seed) as two:
        yield one, two


@pytest.mark.long
@pytest.mark.parametrize(
    "method", ["eoh", "funsearch", "reevo", "g-lns", "mcts-ahd", "hsevo", "best-of-n"]
)
def test_the_number_of_workers_changes_nothing(evaluators, method):
    """The real evaluator and the grammar, on instances small enough for a test."""
    if method in ("funsearch", "g-lns"):
        settings = {
            "funsearch": {"islands": 2, "prompts": 2, "samples": 2},
            "g-lns": {"size": 3, "prune": 1, "generations": 3, "iterations": 10},
        }
    else:
        settings = {}
    found = []
    config = small(
        method=method, method_settings=settings.get(method, {}), pairs=20, size=8, steps=5
    )
    for evaluator in evaluators:
        parts = Parts(config, get_problem("tsp"), evaluator, GENERATORS["grammar"])
        rounds = []
        discover(parts, None, rounds.append, method_of(config))
        found.append(everything(rounds))
    assert found[0] == found[1]
    assert rounds[-1].best is not None
