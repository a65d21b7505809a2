"""The payoffs of a round: evaluates pairs, and derives cross-play and the best pair.

Lines 8, 11 and 14 to 15 of Algorithm 1; `spo_jax.search.spo` puts them in order.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from spo_jax.config import Settings
from spo_jax.envs.metrics import cross_play
from spo_jax.envs.problem import Instance
from spo_jax.envs.run.evaluator import Progress, require_rollouts
from spo_jax.envs.run.rollouts import Status
from spo_jax.program import Pair, Program
from spo_jax.search.credit import Credits, CrossPlay, Payoff
from spo_jax.search.parts import Parts
from spo_jax.search.population import Member, Population
from spo_jax.search.rounds import RESPONSE, Best, Digests, Failure, Played, appended, stands
from spo_jax.search.utility import mean_scores

NONE: Mapping[Digests, tuple[Played, ...]] = {}


class Table:
    """The payoffs a round can see: those of earlier rounds, and those it adds.

    played: pairs that this round evaluated first. remeasured: its measurements of pairs that had
    one. The J of a pair is the mean over all its measurements. A pair that a race left out
    (`spo_jax.search.heats`) has an estimate; met again, it is evaluated in full.

    repeated: rollouts of pairs that a race had left out before.
    """

    def __init__(
        self,
        parts: Parts,
        instances: Sequence[Instance],
        known: Mapping[Digests, Played],
        more: Mapping[Digests, tuple[Played, ...]] = NONE,
        fresh: bool = False,
    ):
        """known: first measurements of earlier rounds. more: further ones. fresh: whether these are
        instances of the round's own; what is paid there compares with no reference, so is not kept.
        """
        self._training = None if fresh else instances
        self._parts = parts
        self._instances = instances
        self._before = known
        self._known = {d: each.joined(more.get(d, ())) for d, each in known.items()}
        self._first = dict(known)
        self._more = dict(more)
        self._reusable = {d for d, each in self._known.items() if not each.censored}
        self._again: set[Digests] = set()
        self._partial: dict[Digests, np.ndarray] = {}
        self._lost: list[Played] = []
        self._level = 0.0
        self.repeated = 0
        self.played: list[Played] = []
        self.remeasured: list[Played] = []

    @property
    def shape(self) -> tuple[int, int]:
        """How many training instances I and seeds S."""
        return (len(self._instances), self._parts.config.evaluation.rollouts)

    @property
    def first_instance(self) -> Instance:
        """The first of the instances that pairs are evaluated on."""
        return self._instances[0]

    @property
    def reused(self) -> int:
        """How many pairs need not be played, because an earlier round did."""
        return len(self._again)

    @property
    def evaluated(self) -> int:
        """How many evaluations of a pair this round took."""
        return len(self.played) + len(self.remeasured)

    def missing(self, pairs: Iterable[Pair]) -> list[Pair]:
        """The distinct pairs among `pairs` that have no verdict yet; an estimate is none."""
        new = {_digests(pair): pair for pair in pairs}
        return [p for d, p in new.items() if d not in self._known or self._known[d].censored]

    def reuse(self, pairs: Iterable[Pair]) -> None:
        """Count the pairs among `pairs` of which an earlier round has a verdict."""
        self._again |= self._reusable & {_digests(pair) for pair in pairs}

    def play(self, pairs: Sequence[Pair], kind: str, progress: Progress | None = None) -> None:
        """Evaluate what is missing (eq:pair-performance), all pairs in one batch.

        Pairs that failed by a fault of the host are repeated after the batch.
        progress: called with (rollouts done, rollouts in all).
        """
        new = self.missing(pairs)
        self.reuse(pairs)
        if not new:
            return
        self.repeated += math.prod(self.shape) * sum(self.left_out(pair) for pair in new)
        with self._parts.observer.working(kind):
            played = self.outcomes(new, kind, self._instances, progress)
        self.record([each.lowered(self._level) for each in played.values()])

    def left_out(self, pair: Pair) -> bool:
        """Whether a race left a pair out, and it was not evaluated again since."""
        return _digests(pair) in self._known and self._known[_digests(pair)].censored

    def record(
        self, found: Sequence[Played], partial: Mapping[Digests, np.ndarray] | None = None
    ) -> None:
        """Verdicts of this round. One of a pair that was left out takes the place of its estimate.

        partial: [I, S] scores of pairs that are left out now, NaN for those that were not made.
        """
        new = {each.digests for each in found}
        kinds = {d: self._first[d].kind for d in new & self._first.keys()}
        found = [replace(each, kind=kinds.get(each.digests, each.kind)) for each in found]
        self.played = [each for each in self.played if each.digests not in new]
        self.remeasured = [each for each in self.remeasured if each.digests not in new]
        first = [each for each in found if each.digests not in self._before]
        self._keep(first)
        self.played += first
        again = [each for each in found if each.digests in self._before]
        self.add([each for each in again if stands(each)])
        lost = [each for each in again if not stands(each)]  # for this round; the estimate stays
        self._known |= {each.digests: each for each in lost}
        self._lost += lost
        self._partial |= partial or {}

    def _keep(self, played: Sequence[Played]) -> None:
        """First measurements."""
        self._first |= {each.digests: each for each in played}
        self._known |= {each.digests: each for each in played}

    def set_level(self, level: float) -> None:
        """Take `level` off what this round has played, and off what it will play."""
        self.played = [each.lowered(level) for each in self.played]
        self._keep(self.played)
        self._level = level

    def add(self, more: Sequence[Played]) -> None:
        """Measurements of pairs that have one."""
        self.remeasured += more
        self._more = appended(self._more, more)
        for digests in {each.digests for each in more}:
            self._known[digests] = self._first[digests].joined(self._more[digests])

    def settled_late(self, pair: Pair) -> bool:
        """Whether this round evaluated a response in full that an earlier one had left out."""
        of_earlier = {each.digests for each in self.remeasured if each.kind == RESPONSE}
        return _digests(pair) in of_earlier and not self.left_out(pair)

    def measured_again(self, destroy: Program, repair: Program) -> bool:
        """Whether a pair has more than its first measurement."""
        return (destroy.digest, repair.digest) in self._more

    def outcomes(
        self,
        pairs: Sequence[Pair],
        kind: str,
        instances: Sequence[Instance],
        progress: Progress | None = None,
        seeds: Sequence[int] | None = None,
    ) -> dict[Digests, Played]:
        """What becomes of some pairs; those with a fault of the host are tried twice.

        seeds: by default all of the run's.
        """
        seeds = range(self.shape[1]) if seeds is None else seeds
        played = self._outcomes(pairs, kind, instances, seeds, progress)
        if faulty := [pair for pair in pairs if not stands(played[_digests(pair)])]:
            played |= self._outcomes(faulty, kind, instances, seeds)
        return played

    def _outcomes(
        self,
        pairs: Sequence[Pair],
        kind: str,
        instances: Sequence[Instance],
        seeds: Sequence[int],
        progress: Progress | None = None,
    ) -> dict[Digests, Played]:
        config = self._parts.config
        rollouts = self._parts.evaluator.run(
            pairs,
            instances,
            seeds=seeds,
            steps=config.evaluation.steps,
            fail_fast=True,
            progress=progress,
        )
        require_rollouts(rollouts, len(pairs), len(instances), len(seeds), config.evaluation.steps)
        scores = self._parts.utility(rollouts, instances)
        values = mean_scores(scores)
        trains = self._trains_on(instances)
        found = {}
        for p, pair in enumerate(pairs):
            status, reason, role = rollouts.failure(p) or (Status.OK, "", "")
            value = float(values[p]) if status == Status.OK else math.nan
            own = () if math.isnan(value) else tuple(map(float, scores[p].ravel()))
            costs = rollouts.costs_of(p) if trains else ()
            found[_digests(pair)] = Played(
                *_digests(pair), kind, status.label, value, reason, role, own, costs
            )
        return found

    def _trains_on(self, instances: Sequence[Instance]) -> bool:
        """Whether all of some instances are of the run's training."""
        own = {each.digest for each in self._training or ()}
        return all(each.digest in own for each in instances)

    def verdict(self, destroy: Program, repair: Program) -> Played:
        """What became of a pair that was played."""
        return self._known[destroy.digest, repair.digest]

    def utility(self, destroy: Program, repair: Program) -> float:
        """J of a pair, or its estimate; NaN for one that failed, or that was not played."""
        played = self._known.get((destroy.digest, repair.digest))
        return math.nan if played is None else played.utility

    def scores(self, destroy: Program, repair: Program) -> np.ndarray:
        """[I, S] float64 scores of a pair, whose mean is J; NaN for one without a J.

        Of one that this round left out those that it has, and NaN for the others.
        """
        played = self._known.get((destroy.digest, repair.digest))
        if played is not None and played.censored:
            return self._partial.get(played.digests, np.full(self.shape, np.nan))
        if played is None or not played.scores:
            return np.full(self.shape, np.nan)
        return np.array(played.scores).reshape(self.shape)

    def matrix(self, destroys: Sequence[Program], repairs: Sequence[Program]) -> np.ndarray:
        """[M, C] float64 J of all pairs of some programs, which were played; NaN for failures."""
        values = [[self.utility(destroy, repair) for repair in repairs] for destroy in destroys]
        return np.array(values).reshape(len(destroys), len(repairs))

    def cross_play(self, destroys: Iterable[Program], repairs: Iterable[Program]) -> CrossPlay:
        """What is known of some destroys with some repairs."""
        rows = tuple({program.digest: program for program in destroys}.values())
        columns = tuple({program.digest: program for program in repairs}.values())
        shape = (len(rows), len(columns), *self.shape)
        scores = np.array([[self.scores(d, r) for r in columns] for d in rows]).reshape(shape)
        known = [[self._known.get((d.digest, r.digest)) for r in columns] for d in rows]
        values = [
            [math.nan if each is None or each.censored else each.utility for each in row]
            for row in known
        ]
        return CrossPlay(rows, columns, np.array(values).reshape(shape[:2]), scores)

    def failures(self) -> list[Failure]:
        """Pairs of this round that failed, with the reason."""
        return [
            Failure("pair", played.status, played.reason, played.destroy, played.repair)
            for played in (*self.played, *self.remeasured, *self._lost)
            if played.status != Status.OK.label and not played.censored
        ]


def _digests(pair: Pair) -> Digests:
    return (pair.destroy.digest, pair.repair.digest)


def payoff_of(
    destroys: Sequence[Program],
    responses: Sequence[Sequence[Program]],
    table: Table,
    slots: int,
    leaders: Population = (),
    followers: Population = (),
    classical: Sequence[Program] = (),
) -> Payoff:
    """[D, R] utilities: row i holds destroy i with each distinct repair that was written for it.

    A repair sampled twice for one destroy has one slot: it is one member of the set R_i.
    leaders, followers: the populations that the parents were drawn from, for the baselines and,
    with the panel's fixed destroys, the cross-play. A program that was written in several contexts
    has the parents of the first.
    """
    values = np.full((len(destroys), slots), np.nan)
    bars = np.full((len(destroys), slots), np.nan)
    own = np.full((len(destroys), slots, *table.shape), np.nan)
    out = np.zeros((len(destroys), slots), bool)
    scores = _scores(followers)
    for i, (destroy, row) in enumerate(zip(destroys, responses, strict=True)):
        for j, repair in enumerate(row):
            values[i, j] = table.utility(destroy, repair)
            own[i, j] = table.scores(destroy, repair)
            out[i, j] = table.left_out(Pair(destroy, repair))
            bars[i, j] = _best_parent(repair, scores)
    scores = _scores(leaders)
    return Payoff(
        values,
        tuple(destroys),
        tuple(map(tuple, responses)),
        np.array([_best_parent(destroy, scores) for destroy in destroys], dtype=np.float64),
        bars,
        own,
        table.cross_play(
            (*(member.program for member in leaders), *classical),
            (member.program for member in followers),
        ),
        censored=out,
    )


def with_asked(payoff: Payoff, pairs: Sequence[Pair], table: Table) -> Payoff:
    """The payoff with J of some pairs that were played, for the schemes that asked for them."""
    if not pairs:
        return payoff
    asked = {_digests(pair): table.utility(pair.destroy, pair.repair) for pair in pairs}
    return replace(payoff, asked=asked)


def _scores(population: Population) -> dict[str, float]:
    """The score of each source; of one kept for several destroy strategies, the highest."""
    scores: dict[str, float] = {}
    for member in population:
        digest = member.program.digest
        scores[digest] = max(member.score, scores.get(digest, -math.inf))
    return scores


def _best_parent(program: Program, scores: Mapping[str, float]) -> float:
    """The highest score among a program's parents, NaN without one."""
    return max((scores[parent] for parent in program.parents if parent in scores), default=math.nan)


def better(best: Best | None, pairs: Iterable[Pair], table: Table, k: int) -> Best | None:
    """The pair with the highest J; of equal ones, the one that was found first.

    A pair that a race left out is none of them.
    """
    for pair in pairs:
        value = math.nan if table.left_out(pair) else table.utility(pair.destroy, pair.repair)
        if not math.isnan(value) and (best is None or value > best.utility):
            best = Best(pair, value, k)
    return best


def cross_play_candidates(
    population: Population,
    responses: Sequence[Sequence[Program]],
    payoff: Payoff,
    credits: Credits,
    config: Settings,
    k: int,
) -> list[Member]:
    """The old population, and the round's best repairs by follower credit, each identity once.

    Repairs that earned the same go by their J. Every repair against every leader would cost several
    times the round itself; the paper's count of evaluated pairs, below its count of repairs, says
    that it was not done there either.
    """
    earned = credits.selected_by.follower
    ranked = sorted(
        (-float(earned[i, j]), -float(payoff.utility[i, j]), i, j)
        for i, row in enumerate(responses)
        for j in range(len(row))
        if math.isfinite(earned[i, j])
    )
    chosen: dict[tuple[str, str], Member] = {}
    for negative, _, i, j in ranked:
        if len(chosen) == config.search.cross_play_candidates:
            break
        repair = responses[i][j]
        chosen.setdefault((repair.digest, repair.condition), Member(repair, -negative, k))
    old = {(m.program.digest, m.program.condition): m for m in population}
    return list({**chosen, **old}.values())


def cross_play_scores(
    candidates: Sequence[Member], panel: Sequence[Program], table: Table, k: int
) -> list[Member]:
    """The candidates of round k with their cross-play scores.

    A leader with which every candidate fails does not rank them and is left out; a candidate that
    fails with any other leader has no score. A fault of the host is no verdict, and the other
    leaders count; without any, a repair of an earlier round keeps the score that it came with.
    """
    played = [[table.verdict(leader, m.program) for m in candidates] for leader in panel]
    shape = (len(panel), len(candidates))
    values = np.array([[each.utility for each in row] for row in played]).reshape(shape)
    judged = np.array([[stands(each) for each in row] for row in played], bool).reshape(shape)
    useful = np.isfinite(values).any(axis=1)
    values, judged = values[useful], judged[useful]
    scores = cross_play(values)
    for j in map(int, np.flatnonzero(~judged.all(axis=0))):
        if judged[:, j].any():
            scores[j] = cross_play(values[judged[:, j], j : j + 1])[0]
        elif candidates[j].round < k:
            scores[j] = candidates[j].score
    return [
        Member(member.program, float(score), member.round)
        for member, score in zip(candidates, scores, strict=True)
    ]
