"""Elites measured again: means by hand, levels, which are measured, resume, and runs without it."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from spo_fakes import Evaluator, Generator, Learner, number, play, small

from spo_jax.config import Settings
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.rollouts import Rollouts, Status
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program
from spo_jax.search.credit import get_credit
from spo_jax.search.instances import record, round_instances, training_instances
from spo_jax.search.parts import Parts
from spo_jax.search.population import Member
from spo_jax.search.remeasure import CONTROLS, best_members, level_of
from spo_jax.search.rounds import Observer, Played, Round, State
from spo_jax.search.runs import tables
from spo_jax.search.runs.folders import CHECKPOINTS, MANIFEST
from spo_jax.search.runs.run import load_run
from spo_jax.search.runs.store import Store, dump
from spo_jax.search.spo import discover
from spo_jax.seeding import derive

TSP = get_problem("tsp")
MODES = (False, True)  # fresh_instances


class Field(Evaluator):
    """J is the pair's quality plus the instance's effect plus noise, all multiples of 2^-14."""

    def __init__(self, noise: float = 0.0, effect: float = 0.25):
        super().__init__()
        self.noise, self.effect = noise, effect

    def quality(self, destroy: str, repair: str) -> float:
        """NaN for a pair that fails."""
        draw = number("quality", destroy, repair)
        return math.nan if draw < 0.1 else round(2**10 * draw) / 2**12

    def level(self, instance: Any) -> float:
        return round(2**10 * self.effect * number("effect", instance.digest)) / 2**10

    def j(self, destroy: str, repair: str, instance: Any, seed: int) -> float:
        luck = number("luck", destroy, repair, instance.digest, seed) - 0.5
        noise = round(2**14 * self.noise * luck) / 2**14
        return self.quality(destroy, repair) + self.level(instance) + noise

    def run(self, pairs, instances, seeds=(0, 1), steps=100, **more):  # type: ignore[no-untyped-def]
        self.batches.append((list(pairs), [i.digest for i in instances]))
        shape = (len(pairs), len(instances), len(seeds))
        cost = np.full((*shape, steps + 1), 1.0)
        status = np.zeros(shape, np.int8)
        for p, pair in enumerate(pairs):
            for i, instance in enumerate(instances):
                for s in seeds:
                    value = self.j(pair.destroy.digest, pair.repair.digest, instance, s)
                    cost[p, i, s, -1] = 1 - value
                    if math.isnan(value):
                        status[p, i, s] = Status.CRASH
        none, text = np.zeros((*shape, 0)), np.full(shape, "", object)
        return Rollouts(cost, none, status, np.ones(shape), none, text, text)


def config_of(fresh: bool = False, **changes: Any) -> Settings:
    own = {"remeasure": 3, "fresh_instances": fresh, "repairs_per_destroy": 6, "rounds": 5}
    return small(**(own | changes))


def played(utility: float, status: str = "ok", scores: Sequence[float] = (), **more: Any) -> Played:
    return Played("d", "r", "response", status, utility, scores=tuple(scores), **more)


# --- by hand --------------------------------------------------------------------------------------


def test_a_pair_is_worth_the_mean_of_everything_measured() -> None:
    first = played(0.9, scores=(1.0, 0.8))
    again = [played(0.6, scores=(0.6, 0.6)), played(0.3, scores=(0.4, 0.2))]
    assert first.joined([]) is first
    assert first.joined(again[:1]).utility == pytest.approx((0.9 + 0.6) / 2)
    joined = first.joined(again)
    assert joined.utility == pytest.approx((0.9 + 0.6 + 0.3) / 3)
    assert joined.scores == pytest.approx((0.7, 0.5))  # moved by what the mean moved
    failed = first.joined([again[0], played(math.nan, "crash", reason="bad", role="repair")])
    assert (failed.status, failed.reason, failed.role, failed.scores) == (
        "crash",
        "bad",
        "repair",
        (),
    )
    assert math.isnan(failed.utility)
    lower = first.lowered(0.25)
    assert (lower.utility, lower.scores) == (0.65, (0.75, pytest.approx(0.55)))


def test_the_level_is_the_median_gain_of_the_controls() -> None:
    def measured(name: str, utility: float) -> Played:
        return Played(name, "r", "control", "ok", utility)

    before = {("a", "r"): 0.5, ("b", "r"): 0.5, ("c", "r"): 0.5, ("d", "r"): 0.5}
    found = [measured("a", 0.6), measured("b", 0.4), measured("c", 0.8), measured("d", math.nan),
             measured("elite", 9.0)]  # fmt: skip
    assert level_of(found, before) == pytest.approx(0.1)  # of 0.1, -0.1 and 0.3
    assert level_of(found, before, sign=-1) == pytest.approx(-0.1)
    assert level_of(found[3:], before) is None


def test_the_best_members_do_not_depend_on_their_order() -> None:
    program = [Program("destroy", f"def destroy(): {k}", f"s {k}") for k in range(4)]
    scores = (0.5, 0.5, math.nan, 0.75)
    members = [Member(p, score, 1) for p, score in zip(program, scores, strict=True)]
    assert best_members(members, 3) == best_members(members[::-1], 3)
    assert [m.score for m in best_members(members, 2)] == [0.75, 0.5]
    assert len(best_members(members, 9)) == 3


# --- a run against loops over its record ----------------------------------------------------------


class Ledger:
    """Everything measured of each pair, put on the scale of the first instances by hand."""

    def __init__(self, config: Settings, field: Field):
        self.config, self.field = config, field
        self.first = training_instances(config, TSP)
        self.known: dict[tuple[str, str], list[float]] = {}

    def j(self, digests: tuple[str, str], instances: Sequence[Any]) -> float:
        seeds = range(self.config.evaluation.rollouts)
        return float(np.mean([self.field.j(*digests, i, s) for i in instances for s in seeds]))

    def take(self, done: Round) -> None:
        """Add a round; checks each number in it."""
        own = round_instances(self.config, TSP, done.number)
        fresh = self.config.evaluation.fresh_instances and done.number > 1
        on, anew = (own, self.first) if fresh else (self.first, own)
        controls = [p.digests for p in done.again if p.kind == "control"]
        gains = [self.j(d, own) - self.j(d, self.first) for d in controls]
        level = float(np.median(gains)) if gains else 0.0
        for p in done.pairs:
            value = self.j(p.digests, on) - (level if fresh else 0.0)
            assert p.utility == pytest.approx(value, nan_ok=True)
            assert p.digests not in self.known
            self.known[p.digests] = [value]
        for p in done.again:
            if fresh and p.kind == "control":
                value = self.j(p.digests, anew)
            else:
                value = self.j(p.digests, own) - level
            assert p.utility == pytest.approx(value)
            assert np.mean(p.scores) == pytest.approx(value)
            self.known[p.digests].append(value)
        assert len({p.digests for p in done.again}) == len(done.again)
        if controls:
            assert done.metrics["remeasure/level"] == pytest.approx(level)
            assert done.metrics["remeasure/pairs"] == len(done.again)

    def mean(self, destroy: str, repair: str) -> float:
        return float(np.mean(self.known[destroy, repair]))


@pytest.mark.parametrize("fresh", MODES)
def test_scores_are_the_papers_of_the_means(fresh: bool) -> None:
    field, config = Field(noise=0.125), config_of(fresh)
    rounds, end, _ = play(config, evaluator=field)
    ledger = Ledger(config, field)
    rows: dict[tuple[str, int], list[str]] = {}
    for done in rounds:
        ledger.take(done)
        assert done.counts.pairs == len(done.pairs) + len(done.again)
        assert done.scored is not None
        for destroy, row in zip(done.scored.destroys, done.scored.repairs, strict=True):
            rows[destroy.digest, done.number] = [repair.digest for repair in row]
        # A score is as of when the survivors were chosen: repairs are measured after destroys.
        late = {p.digests for p in done.again} & {
            (leader.digest, m.program.digest)
            for leader in done.scored.panel for m in done.scored.candidates
        }  # fmt: skip
        for m in done.destroys:
            digest = m.program.digest
            if any((digest, repair) in late for repair in rows[digest, m.round]):
                continue
            means = [ledger.mean(digest, repair) for repair in rows[digest, m.round]]
            assert m.score == pytest.approx(np.mean(sorted(v for v in means if v == v)[-2:]))
        for member in done.scored.candidates:
            values = [ledger.mean(d.digest, member.program.digest) for d in done.scored.panel]
            if not math.isnan(member.score):
                assert member.score == pytest.approx(np.mean(values))
        assert done.best is not None
        best = done.best.pair
        assert done.best.utility == pytest.approx(
            ledger.mean(best.destroy.digest, best.repair.digest)
        )
    assert sum(len(done.again) for done in rounds) > 20
    assert max(len(values) for values in ledger.known.values()) >= 4  # some again and again
    assert end.again.keys() == {p.digests for done in rounds for p in done.again}


def test_the_best_of_each_role_and_controls_are_measured() -> None:
    field, config = Field(noise=0.125), config_of(rounds=1)
    [done], _, _ = play(config, evaluator=field)
    assert done.scored is not None
    j = {p.digests: p.utility for p in done.pairs if p.status == "ok"}
    top: dict[str, list[tuple[float, str]]] = {}
    for destroy, row in zip(done.scored.destroys, done.scored.repairs, strict=True):
        digests = [repair.digest for repair in row]
        known = [(j[destroy.digest, r], r) for r in digests if (destroy.digest, r) in j]
        top[destroy.digest] = sorted(known, reverse=True)[:2]
    score = {d: np.mean([v for v, _ in best]) for d, best in top.items() if best}
    leading = sorted(score, key=lambda d: -score[d])[:3]
    due = {(d, r) for d in leading for _, r in top[d]}
    controls = {p.digests for p in done.again if p.kind == "control"}
    assert len(controls) == CONTROLS
    elites = {p.digests for p in done.again if p.kind == "elite"}
    assert due <= elites | controls
    of_panel = {(d.digest, m.program.digest) for d in done.scored.panel
                for m in done.scored.candidates}  # fmt: skip
    assert elites - due <= of_panel
    measured = {
        m.program.digest
        for m in done.scored.candidates
        if all((d.digest, m.program.digest) in elites | controls for d in done.scored.panel)
    }
    assert len(measured) >= 3


@pytest.mark.parametrize("fresh", MODES)
def test_instances_that_only_shift_every_score_change_nothing(fresh: bool) -> None:
    """Without noise a measurement on other instances tells nothing new, whatever their level."""
    plain, end, _ = play(small(repairs_per_destroy=6, rounds=5), evaluator=Field())
    again, other, _ = play(config_of(fresh), evaluator=Field())
    assert [r.destroys for r in again] == [r.destroys for r in plain]
    assert [r.repairs for r in again] == [r.repairs for r in plain]
    assert end.best == other.best
    assert {p.digests: p.utility for r in again for p in r.pairs if p.status == "ok"} == {
        p.digests: p.utility for r in plain for p in r.pairs if p.status == "ok"
    }
    levels = [r.metrics["remeasure/level"] for r in again if r.again]
    assert len(levels) == (4 if fresh else 5)
    assert len({round(level, 9) for level in levels}) == len(levels)


@pytest.mark.parametrize("fresh", MODES)
def test_a_credit_by_the_number_of_slots_keeps_its_scale(fresh: bool) -> None:
    """`max-at-k` counts the slots of a row; what failed or came twice is one of them, too."""
    credit = get_credit("max-at-k")
    plain, end, _ = play(small(repairs_per_destroy=6), evaluator=Field(), credit=credit)
    again, other, _ = play(config_of(fresh, rounds=4), evaluator=Field(), credit=credit)
    assert [r.destroys for r in again] == [r.destroys for r in plain]
    assert end.best == other.best


def test_a_credit_by_the_spread_over_instances_sees_it_when_measured_again() -> None:
    rounds, _, _ = play(
        config_of(rounds=1, instances=3), evaluator=Field(noise=0.25),
        credit=get_credit("lower-bound"),
    )  # fmt: skip
    [done] = rounds
    assert done.scored is not None
    first = {p.digests: p for p in done.pairs}
    again = {p.digests for p in done.again}
    checked = 0
    for member in done.destroys:
        i = [d.digest for d in done.scored.destroys].index(member.program.digest)
        digests = [(member.program.digest, r.digest) for r in done.scored.repairs[i]]
        if not again & set(digests):
            continue
        known = [first[d] for d in digests if first[d].status == "ok"]
        own = np.array([p.scores for p in known]).reshape(len(known), 3, -1).mean(axis=2)
        own -= own.mean(axis=1, keepdims=True)
        error = np.sqrt(((own - own.mean(axis=0)) ** 2).sum(axis=1) / 2 / 3)
        worth = [p.joined([q for q in done.again if q.digests == p.digests]).utility for p in known]
        assert member.score == pytest.approx(np.sort(worth - error)[-2:].mean(), abs=1e-12)
        checked += 1
    assert checked >= 2


def luck(config: Settings) -> float:
    """What the last destroys are praised for beyond what their pairs are worth: a mean."""
    field = Field(noise=0.1, effect=0.25)
    rounds, _, _ = play(config, evaluator=field)
    levels = [field.level(instance) for instance in training_instances(config, TSP)]
    rows = {
        (d.digest, done.number): row
        for done in rounds if done.scored is not None
        for d, row in zip(done.scored.destroys, done.scored.repairs, strict=True)
    }  # fmt: skip
    found = []
    for m in rounds[-1].destroys:
        row = rows[m.program.digest, m.round]
        true = [field.quality(m.program.digest, repair.digest) for repair in row]
        best = sorted(value for value in true if not math.isnan(value))[-2:]
        found.append(m.score - np.mean(levels) - np.mean(best))
    return float(np.mean(found))


@pytest.mark.long
def test_luck_does_not_live_on() -> None:
    more = {"rounds": 6, "instances": 1, "rollouts": 1, "responses": 4, "repairs_per_destroy": 8}
    without, same, fresh = (
        np.mean([luck(config_of(seed=seed, **own, **more)) for seed in range(6)])
        for own in ({"remeasure": 0}, {"remeasure": 6}, {"remeasure": 6, "fresh": True})
    )
    assert without > 0.02
    assert max(same, fresh) < 0.75 * without


def test_the_update_learns_from_first_measurements() -> None:
    credits: list[Mapping[str, Any]] = []

    class Watch(Learner):
        def update(self, groups: Any) -> dict[str, float]:
            credits.append(groups)
            return {}

    field, config = Field(noise=0.125), config_of(rounds=2)
    rounds, _, _ = play(config, evaluator=field, updater=Watch())
    first = {p.digests: p.utility for p in rounds[0].pairs}
    for group in credits[0]["repair"]:
        known = {u for (d, _), u in first.items() if d == group.prompt.destroy.digest}
        assert {c for c in group.credits.tolist() if c == c} <= known


def test_a_pair_that_fails_when_it_is_measured_again_is_out() -> None:
    class Brittle(Field):
        def j(self, destroy: str, repair: str, instance: Any, seed: int) -> float:
            seen = instance.digest in self.training
            return super().j(destroy, repair, instance, seed) if seen else math.nan

    config = config_of(rounds=1)
    field = Brittle()
    field.training = {i.digest for i in training_instances(config, TSP)}  # type: ignore[attr-defined]
    [done], end, _ = play(config, evaluator=field)
    # No control has a result either, so there is no level, and nothing is kept.
    assert done.again == ()
    assert end.best is not None
    fragile = {end.best.pair.digest}

    class Fragile(Field):
        def run(self, pairs, instances, *rest, **more):  # type: ignore[no-untyped-def]
            found = super().run(pairs, instances, *rest, **more)
            for p, pair in enumerate(pairs):
                if pair.digest in fragile and instances[0].digest not in field.training:  # type: ignore[attr-defined]
                    found.status[p], found.reason[p] = Status.TIMEOUT, "slow"
            return found

    [done], end, _ = play(config, evaluator=Fragile())
    failed = [p for p in done.again if p.status == "timeout"]
    assert [Pair(*_programs(done, p)).digest for p in failed] == list(fragile)
    assert end.best is not None
    assert end.best.pair.digest not in fragile
    assert any((f.subject, f.status) == ("pair", "timeout") for f in done.failures)


def _programs(done: Round, p: Played) -> list[Program]:
    known = {each.digest: each for each in done.programs}
    return [known[p.destroy], known[p.repair]]


# --- resume, workers, old runs --------------------------------------------------------------------


def stored(folder: Path, config: Settings, stop: tuple[int, int] | None = None) -> None:
    """A run in a folder, begun or resumed. stop: at this stage of this round, as Ctrl-C does."""

    class Stopper(Observer):
        seen = 0

        def stage(self, number: int, name: str, total: int) -> None:
            self.seen += name == "remeasure" and stop is not None and number == stop[0]
            if stop is not None and self.seen == stop[1]:
                raise KeyboardInterrupt

    if not folder.exists():
        Store.create(folder, {"config": config.flat()}).__exit__()
    learner = Learner()
    with Store.reopen(folder) as store:
        state = store.state()
        if state.round:
            learner.restore(folder / CHECKPOINTS, state.round)

        def commit(done: Round) -> None:
            learner.save(folder / CHECKPOINTS, done.number)
            store.commit(done)

        field = Field(noise=0.125)
        parts = Parts(config, TSP, field, Generator(), updater=learner, observer=Stopper())  # type: ignore[arg-type]
        discover(parts, state, commit)


@pytest.mark.parametrize("fresh", MODES)
def test_a_run_that_stops_while_it_measures_again_ends_as_one_that_does_not(
    tmp_path: Path, fresh: bool
) -> None:
    config = config_of(fresh)
    stored(tmp_path / "whole", config)
    for moment in ((2, 1), (3, 2), (5, 1)):
        with pytest.raises(KeyboardInterrupt):
            stored(tmp_path / "stopped", config, moment)
        assert load_run(tmp_path / "stopped").rounds == moment[0] - 1
    stored(tmp_path / "stopped", config)
    assert dump(tmp_path / "stopped") == dump(tmp_path / "whole")
    assert len(dump(tmp_path / "whole")["remeasured"]) > 20


@pytest.mark.parametrize("fresh", MODES)
def test_a_state_survives_the_database(tmp_path: Path, fresh: bool) -> None:
    config = config_of(fresh)
    stored(tmp_path / "run", config)
    rounds, state = [], State()
    field = Field(noise=0.125)
    parts = Parts(config, TSP, field, Generator(), updater=Learner())  # type: ignore[arg-type]
    discover(parts, state, rounds.append)
    for done in rounds:
        state = state.after(done)
    with Store.reopen(tmp_path / "run") as store:
        read = store.state()
        best = store.candidates(4)
        store.rewind(3)
        assert {p.digests for p in rounds[2].again} <= store.state().again.keys()
        assert len(dump(tmp_path / "run")["remeasured"]) == sum(len(r.again) for r in rounds[:3])
    assert read.responses == state.responses
    assert read.again == state.again
    assert read.best == state.best
    # Finalists go by the mean over everything measured.
    joined = {d: p.joined(state.again.get(d, ())) for d, p in state.payoffs.items()}
    ledger = {d: p.utility for d, p in joined.items() if p.kind == "response"}
    for each in best:
        digests = (each.pair.destroy.digest, each.pair.repair.digest)
        assert each.utility == ledger[digests]
    tops: dict[str, float] = {}
    for (destroy, _), value in ledger.items():
        if not math.isnan(value):
            tops[destroy] = max(value, tops.get(destroy, -math.inf))
    values = sorted(tops.values(), reverse=True)
    assert [each.utility for each in best[1:]] == pytest.approx(values[1:4])


@pytest.mark.long
@pytest.mark.parametrize("fresh", MODES)
def test_the_number_of_workers_changes_nothing(tmp_path: Path, fresh: bool) -> None:
    import spo_jax

    for workers in (1, 2):
        spo_jax.discover(
            "tsp", preset="smoke", path=tmp_path / str(workers), workers=workers, size=8, steps=5,
            generator="grammar", remeasure=2, fresh_instances=fresh, halving=True, finalists=6,
            validation_size=9, validation_instances=2,
        )  # fmt: skip
    one, two = (dump(tmp_path / str(workers)) for workers in (1, 2))
    assert one == two
    run = load_run(tmp_path / "1")
    assert len(run.remeasured) == len(one["remeasured"]) > 0
    assert {each.kind for each in run.remeasured} == {"elite", "control"}
    assert run.evaluated == len(run.pairs) + len(run.remeasured)
    assert {"remeasure"} <= {each.stage for each in run.timings}
    assert run.metrics["remeasure/pairs"][-1] > 0


@pytest.mark.parametrize("fresh", MODES)
def test_gaps_are_told_only_where_all_rounds_have_the_same_instances(
    tmp_path: Path, fresh: bool
) -> None:
    config = config_of(fresh, rounds=2)
    what = {"config": config.flat(), "instances": record(training_instances(config, TSP))}
    Store.create(tmp_path / "run", what).__exit__()
    stored(tmp_path / "run", config)
    run = load_run(tmp_path / "run")
    assert run.best is not None
    known = [each for each in run.pairs if each.status == "ok"]
    gaps = [run.gap(run.pair(each.destroy, each.repair)) for each in known]
    assert math.isnan(run.gap(run.best.pair)) == fresh
    assert all(map(math.isnan, gaps)) == fresh
    assert (len(run.references) == 0) == fresh


def test_a_run_of_before_there_was_any_of_this(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    stored(folder, small(rounds=2))
    assert dump(folder)["remeasured"] == []
    text = json.loads((folder / MANIFEST).read_text())
    news = ("remeasure", "fresh_instances", "halving")
    for name in news:
        del text["config"][name]
    (folder / MANIFEST).write_text(json.dumps(text))
    with tables.connect(folder / "spo.sqlite") as db:
        db.execute(f"DELETE FROM config WHERE name IN {news}")
    run = load_run(folder)
    assert (run.config.search.remeasure, run.config.search.halving) == (0, False)
    assert not run.config.evaluation.fresh_instances
    assert len(run.remeasured) == 0
    with Store.reopen(folder) as store:
        state = store.state()
        assert (state.again, state.responses) == ({}, {})
        parts = Parts(run.config.replace(rounds=3), TSP, Field(), Generator())  # type: ignore[arg-type]
        discover(parts, state, store.commit)
    assert load_run(folder).rounds == 3


def test_a_run_without_its_table_is_refused(tmp_path: Path) -> None:
    stored(tmp_path / "run", config_of(rounds=1))
    with tables.connect(tmp_path / "run" / "spo.sqlite") as db:
        db.execute("DROP TABLE remeasured")
    with pytest.raises(InputError, match="there is no table remeasured"):
        load_run(tmp_path / "run")


def test_what_cannot_be_measured_again_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="fresh_instances is true and remeasure is 0"):
        small(fresh_instances=True)
    file = tmp_path / "a.tsp"
    file.write_text("NAME: a\nTYPE: TSP\nDIMENSION: 5\nEDGE_WEIGHT_TYPE: EUC_2D\n"
                    "NODE_COORD_SECTION\n1 0 0\n2 0 3\n3 4 0\n4 4 3\n5 1 1\nEOF\n")  # fmt: skip
    with pytest.raises(InputError, match="remeasure is 3, which draws new instances each round"):
        play(config_of(on=(str(file),)))


def test_each_round_draws_its_own_instances() -> None:
    config = config_of(on=("uniform:6x2@3", "uniform:9x1"), seed=4)
    sets = [round_instances(config, TSP, k) for k in (1, 2)]
    assert [[i.size for i in each] for each in sets] == [[6, 6, 9]] * 2
    drawn = [*sets[0], *sets[1], *training_instances(config, TSP)]
    assert len({i.digest for i in drawn}) == 9
    seed = derive(4, "round", 2, "instances")
    assert [i.digest for i in sets[1]] == [
        i.digest for size, count in ((6, 2), (9, 1)) for i in TSP.sample(size, count, seed)
    ]
