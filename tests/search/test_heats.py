"""Races in a round: who is out, what that does to all that follows, resuming, and what is saved.

The fake evaluator gives every rollout a score of its own, so that any pair's J can be worked out.
"""

import math
from collections import Counter
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from spo_fakes import Evaluator, Generator, Learner, fingerprint, number, play, small

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.program import Pair
from spo_jax.search.credit import SCHEMES, get_credit
from spo_jax.search.instances import training_instances
from spo_jax.search.parts import Parts
from spo_jax.search.racing import TTest, WorstOut, completed, evaluations
from spo_jax.search.rounds import State
from spo_jax.search.runs.store import Store, dump
from spo_jax.search.spo import discover

RULE = WorstOut(2, 0.25)


class Rough(Evaluator):
    """Every rollout has its own score. breaks(pair, instance, seed) -> the Status of a rollout."""

    def __init__(self, breaks=lambda pair, instance, seed: Status.OK, **more):
        super().__init__(**more)
        self.breaks = breaks
        self.made = Counter()

    def score(self, pair, instance, seed):
        names = (pair.destroy.digest, pair.repair.digest)
        return (round(256 * number("J", *names)) + round(
            256 * number("noise", *names, instance.digest, seed))) / 1024  # fmt: skip

    def run(self, pairs, instances, seeds=(0, 1), steps=100, **more):
        found = super().run(pairs, instances, seeds, steps, **more)
        for p, pair in enumerate(pairs):
            self.made[pair.destroy.digest, pair.repair.digest] += len(instances) * len(seeds)
            for i, instance in enumerate(instances):
                for s, seed in enumerate(seeds):
                    status = self.breaks(pair, instance, seed)
                    if status != Status.OK:
                        found.status[p, i, s] = status
                    if found.status[p, i, s] == Status.OK:
                        score = self.score(pair, instance, seed)
                        found.best_cost[p, i, s, -1] = 1024.0 * (1 - score)
        return found


class Parted(Generator):
    """The same answers in parts of another size and order."""

    def stream(self, prompts, n, seed):
        every = self.generate(prompts, n, seed)
        for place in np.random.default_rng(len(prompts)).permutation(len(prompts)).tolist():
            yield {place: every[place]}


def settings(**more):
    return small(**{"racing": "worst-quarter", "repairs_per_destroy": 8, "instances": 3} | more)


def raced(config=None, **parts):
    return play(config or settings(), **{"evaluator": Rough(), "racing": RULE} | parts)


def whole_scores(pair, instances, seeds=2):
    return np.array([[Rough().score(pair, i, s) for s in range(seeds)] for i in instances])


def known_pairs(rounds):
    destroys = {p.digest: p for r in rounds for p in r.programs if p.role == "destroy"}
    repairs = {p.digest: p for r in rounds for p in r.programs if p.role == "repair"}
    return lambda played: Pair(destroys[played.destroy], repairs[played.repair])


def test_who_is_out_and_what_its_j_is():
    rounds, _, parts = raced()
    instances = training_instances(parts.config, parts.problem)
    order = evaluations(3, 2)
    named, outs = known_pairs(rounds), 0
    first = rounds[0]
    played = {each.digests: each for each in first.pairs if each.kind == "response"}
    for destroy, row in zip(first.scored.destroys, first.scored.repairs, strict=True):
        of_row = [played[destroy.digest, r.digest] for r in row]
        valid = sorted((p for p in of_row if p.status in ("ok", "censored")),
                       key=lambda p: p.digests)  # fmt: skip
        if not valid:
            continue
        scores = np.array([
            [whole_scores(named(p), instances)[place] for place in order] for p in valid
        ])  # fmt: skip
        means = scores[:, :2].mean(axis=1)
        out = np.argsort(means, kind="stable")[: len(valid) // 4]
        assert {p.digests for p in valid if p.censored} == {valid[p].digests for p in out}
        made = np.ones(scores.shape, bool)
        made[out, 2:] = False
        for p, due in zip(valid, completed(scores, made).tolist(), strict=True):
            assert p.utility == pytest.approx(due, abs=1e-12)
            assert (p.scores == ()) == p.censored
        outs += len(out)
    assert outs > 5
    assert first.metrics["racing/out"] == outs


def test_a_rule_that_leaves_nobody_out_changes_nothing():
    ours, _, _ = raced(racing=WorstOut(2, 0.0))
    plain, _, _ = raced(racing=None)
    for own, other in zip(ours, plain, strict=True):
        for names in (own, other):
            assert names.again == ()
        kept = {each.digests: each for each in own.pairs}
        for each in other.pairs:  # reasons of failures may be of another rollout
            if each.status == "ok":
                assert kept[each.digests] == each  # to the bit, scores and costs too
            assert kept[each.digests].status == each.status
        assert (own.destroys, own.repairs, own.best) == (other.destroys, other.repairs, other.best)


def test_neither_parts_nor_order_of_answers_show():
    ours, _, _ = raced(generator=Parted())
    other, _, _ = raced()

    def shown(rounds):
        found = fingerprint(rounds)
        return [(*each[:1], sorted(map(repr, each[1])), *each[2:-1]) for each in found]

    assert shown(ours) == shown(other)


def test_the_best_and_leaders_are_of_values_not_estimates():
    rounds, end, _ = raced(settings(rounds=6))
    outs = 0
    for r in rounds:
        censored = {p.digests for p in (*r.pairs, *r.again) if p.censored}
        outs += len(censored)
        assert (r.best.pair.destroy.digest, r.best.pair.repair.digest) not in censored
        utility = r.scored.utility
        for i, (destroy, row) in enumerate(zip(r.scored.destroys, r.scored.repairs, strict=True)):
            out = np.array([(destroy.digest, each.digest) in censored for each in row])
            own = utility[i, : len(row)]
            if out.any():
                assert own[out].max() <= np.nanmax(own[~out])
    assert outs > 20
    assert end.best is not None


def test_pairs_that_were_left_out_are_evaluated_again_in_full():
    config = settings(rounds=8)
    evaluator = Rough()
    rounds, end, parts = raced(config, evaluator=evaluator, generator=Generator(numbers=12))
    instances = training_instances(parts.config, parts.problem)
    named, met = known_pairs(rounds), 0
    for r in rounds:
        by = {each.digests for each in r.pairs}
        assert not by & {each.digests for each in r.again}
        for each in r.again:
            met += 1
            assert each.kind == end.payoffs[each.digests].kind
            if each.status == "ok":
                due = whole_scores(named(each), instances).ravel()
                np.testing.assert_array_equal(each.scores, due)
                assert end.payoffs[each.digests].joined(end.again[each.digests]).utility == (
                    each.utility
                )
    assert met > 3
    for r in rounds:  # cross-play is of values alone
        assert not {(d.digest, m.program.digest) for d in r.scored.panel
                    for m in r.scored.candidates} & {
            each.digests for each in (*r.pairs, *r.again) if each.censored}  # fmt: skip
    best = max(
        (played.joined(end.again.get(played.digests, ())) for played in end.payoffs.values()
         if played.kind == "response"),
        key=lambda each: -1.0 if each.censored or math.isnan(each.utility) else each.utility,
    )  # fmt: skip
    assert end.best.utility == best.utility


def test_the_metrics_say_how_many_rollouts_are_saved():
    for rule in (RULE, TTest(0.9)):
        ours, plain = Rough(), Rough()
        config = settings(rounds=1)  # later rounds have other programs
        [done], _, _ = raced(config, evaluator=ours, racing=rule)
        [other], _, _ = raced(config, evaluator=plain, racing=None)
        responses = {each.digests for each in other.pairs if each.kind == "response"}
        failed = {each.digests for each in other.pairs if each.status != "ok"}
        spent, all_of = (sum(each.made[d] for d in responses - failed) for each in (ours, plain))
        metrics = done.metrics
        assert metrics["racing/pairs"] == len(responses)
        assert metrics["racing/rollouts"] == 6 * len(responses)
        assert metrics["racing/saved"] > 0
        assert metrics["racing/saved"] - metrics["racing/repeated"] == all_of - spent
        # But for pairs that the round's own cross-play evaluated after all.
        assert metrics["racing/out"] >= sum(each.censored for each in done.pairs)


def test_where_all_that_went_on_fail_those_that_were_out_go_on():
    late = set()

    def breaks(pair, instance, seed):
        """Whoever is among the better half on the first two evaluations fails on the last."""
        good = sum(Rough().score(pair, i, 0) for i in instances[:2]) / 2 > 0.2
        if good and seed == 1 and instance.digest == instances[2].digest:
            late.add(pair.repair.digest)
            return Status.CRASH
        return Status.OK

    config = settings(rounds=1)
    instances = training_instances(config, get_problem("tsp"))
    [done], _, _ = raced(config, evaluator=Rough(breaks), racing=WorstOut(2, 0.5))
    assert late
    seen = 0
    for destroy, row in zip(done.scored.destroys, done.scored.repairs, strict=True):
        played = {each.digests: each for each in done.pairs}
        own = [played[destroy.digest, repair.digest] for repair in row]
        if any(each.censored for each in own):
            assert any(each.status == "ok" for each in own)
        else:
            seen += any(each.status == "ok" for each in own)
    assert seen  # a destroy whose worse half took the place of those that failed


def test_a_fault_of_the_host_is_no_verdict_on_a_pair_that_was_left_out():
    rounds, _, _ = raced(settings(rounds=8), generator=Generator(numbers=12))
    again = next(each for r in rounds for each in r.again if each.status == "ok")
    before = next(r.number for r in rounds if again in r.again) - 1

    def breaks(pair, instance, seed):
        ours = (pair.destroy.digest, pair.repair.digest) == again.digests
        return Status.HOST_FAULT if ours else Status.OK

    state = State()
    for r in rounds[:before]:
        state = state.after(r)
    config = settings(rounds=before + 1)
    [done], then, _ = play(config, state=state, evaluator=Rough(breaks), racing=RULE,
                           generator=Generator(numbers=12))  # fmt: skip
    assert again.digests not in {each.digests for each in (*done.pairs, *done.again)}
    assert any(f.status == "host_fault" for f in done.failures)
    assert then.payoffs[again.digests].censored


# --- what is kept ---------------------------------------------------------------------------------


def run_in(folder, rounds, stop=None, rewind=None):
    config = settings(rounds=rounds)
    learner = Learner()
    if not folder.exists():
        Store.create(folder, {"config": config.flat()}).__exit__()
    with Store.reopen(folder) as store:
        if rewind is not None:
            store.rewind(rewind)
        state = store.state()
        if state.round:
            learner.restore(store.path / "checkpoints", state.round)

        def commit(done):
            learner.save(store.path / "checkpoints", done.number)
            store.commit(done)
            if done.number == stop:
                raise KeyboardInterrupt

        parts = Parts(config, get_problem("tsp"), Rough(), Generator(numbers=12),
                      updater=learner, racing=RULE)  # fmt: skip
        with suppress(KeyboardInterrupt):
            discover(parts, state, commit)
        return store.state(), store.candidates(100), store.controls(100, ())


@pytest.mark.long
def test_a_run_resumes_and_rewinds_to_the_same_bits(tmp_path):
    end, best, others = run_in(tmp_path / "whole", 6)
    due = dump(tmp_path / "whole")
    assert sum(row[4] == "censored" for row in due["pairs"]) > 10
    assert len(due["remeasured"]) > 1
    for stop in (1, 3, 5):
        folder = tmp_path / f"stopped-{stop}"
        run_in(folder, 6, stop)
        run_in(folder, 6)
        assert dump(folder) == due
    run_in(tmp_path / "whole", 6, rewind=2)
    assert dump(tmp_path / "whole") == due
    # Finalists are of values, and the controls of all, estimates too.
    outs = {d for d, each in end.payoffs.items() if each.joined(end.again.get(d, ())).censored}
    of = lambda found: {(b.pair.destroy.digest, b.pair.repair.digest) for b in found}  # noqa: E731
    assert not of(best) & outs
    assert of(others) & outs
    assert best[0].utility == max(each.utility for each in best)
    assert best[0].utility == end.best.utility


# --- what is told ---------------------------------------------------------------------------------


def test_credit_schemes_see_who_is_out():
    seen = []

    def scheme(payoff, *, top=2):
        seen.append(payoff)
        return get_credit("stackelberg")(payoff, top=top)

    raced(settings(rounds=1), credit=scheme)
    [payoff] = seen
    assert payoff.censored.sum() > 5
    assert not payoff.censored.flags.writeable
    whole = np.isfinite(payoff.utility) & ~payoff.censored
    assert np.isfinite(payoff.scores[whole]).all()
    assert (np.isfinite(payoff.scores[payoff.censored]).sum(axis=(1, 2)) == 2).all()
    i, j = np.argwhere(payoff.censored)[0]
    assert math.isnan(payoff.known(payoff.destroys[i], payoff.repairs[i][j]))
    for name in SCHEMES:
        credits = get_credit(name)(payoff, top=2)
        assert np.isfinite(credits.follower[payoff.censored]).all()
        top = get_credit("max")(payoff, top=2).leader
        np.testing.assert_array_equal(top[whole.any(axis=1)], np.nanmax(
            np.where(whole, payoff.utility, np.nan)[whole.any(axis=1)], axis=1))  # fmt: skip
    with pytest.raises(InputError, match="censored"):
        replace(payoff, censored=np.ones(payoff.utility.shape, bool))
    with pytest.raises(InputError, match="censored"):
        replace(payoff, censored=np.zeros(3, bool))


def test_what_does_not_go_together_is_refused():
    for more in ({"remeasure": 4}, {"method": "best-of-n"}):
        with pytest.raises(InputError, match="racing is worst-quarter"):
            settings(**more)
    with pytest.raises(InputError, match="more instances or rollouts"):
        raced(settings(instances=1))
