"""The payoffs of a round: evaluates pairs, and derives cross-play and the best pair.

Lines 8, 11 and 14 to 15 of Algorithm 1; `spo_jax.search.spo` puts them in order.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from spo_jax.config import Settings
from spo_jax.envs.problem import Instance
from spo_jax.envs.run.evaluator import Progress, require_rollouts
from spo_jax.envs.run.rollouts import Status
from spo_jax.program import Pair, Program
from spo_jax.search.credit import Credits, CrossPlay, Payoff
from spo_jax.search.parts import Parts
from spo_jax.search.population import Member, Population
from spo_jax.search.rounds import Best, Digests, Failure, Played
from spo_jax.search.utility import mean_scores


class PlayedPairs:
    """Payoffs of pairs that were played; of any other pair nothing is known."""

    def __init__(self, shape: tuple[int, int], known: Mapping[Digests, Played]) -> None:
        """shape: how many training instances I and seeds S."""
        self.shape = shape
        self._known = dict(known)

    def verdict(self, destroy: Program, repair: Program) -> Played:
        """What became of a pair that was played."""
        return self._known[destroy.digest, repair.digest]

    def failed(self, destroy: Program, repair: Program) -> bool:
        """Whether a pair has no J by a fault of its programs; a fault of the host is no verdict."""
        played = self._known.get((destroy.digest, repair.digest))
        return played is not None and not played.host_fault and math.isnan(played.utility)

    def utility(self, destroy: Program, repair: Program) -> float:
        """J of a pair; NaN for one that failed, or that was not played."""
        return self.utility_of((destroy.digest, repair.digest))

    def utility_of(self, digests: Digests) -> float:
        """As `utility`, by digests."""
        played = self._known.get(digests)
        return math.nan if played is None else played.utility

    def scores(self, destroy: Program, repair: Program) -> np.ndarray:
        """[I, S] float64 scores of a pair, whose mean is J; NaN for one without a J."""
        played = self._known.get((destroy.digest, repair.digest))
        if played is None or not played.scores:
            return np.full(self.shape, np.nan)
        return np.array(played.scores).reshape(self.shape)

    def matrix(self, destroys: Sequence[Program], repairs: Sequence[Program]) -> np.ndarray:
        """[M, C] float64 J of all pairs of some programs; NaN for failures."""
        values = [[self.utility(destroy, repair) for repair in repairs] for destroy in destroys]
        return np.array(values).reshape(len(destroys), len(repairs))

    def cross_play(self, destroys: Iterable[Program], repairs: Iterable[Program]) -> CrossPlay:
        """What is known of some destroys with some repairs."""
        rows = tuple({program.digest: program for program in destroys}.values())
        columns = tuple({program.digest: program for program in repairs}.values())
        shape = (len(rows), len(columns), *self.shape)
        scores = np.array([[self.scores(d, r) for r in columns] for d in rows]).reshape(shape)
        return CrossPlay(rows, columns, self.matrix(rows, columns), scores)


class Table(PlayedPairs):
    """The payoffs a round can see: those of earlier rounds, and those it adds.

    Attributes:
        shape: How many training instances I and seeds S.
        played: The pairs that this round evaluated.
    """

    def __init__(
        self, parts: Parts, instances: Sequence[Instance], known: Mapping[Digests, Played]
    ) -> None:
        """known: what earlier rounds evaluated."""
        super().__init__((len(instances), parts.config.evaluation.rollouts), known)
        self._parts = parts
        self._instances = instances
        self._earlier = known.keys()
        self._again: set[Digests] = set()
        self.played: list[Played] = []

    @property
    def first_instance(self) -> Instance:
        """The first of the instances that pairs are evaluated on."""
        return self._instances[0]

    @property
    def reused(self) -> int:
        """How many pairs need not be played, because an earlier round did."""
        return len(self._again)

    def missing(self, pairs: Iterable[Pair]) -> list[Pair]:
        """The distinct pairs among `pairs` that have no verdict yet."""
        new = {digests_of(pair): pair for pair in pairs}
        return [pair for digests, pair in new.items() if digests not in self._known]

    def play(self, pairs: Sequence[Pair], kind: str, progress: Progress | None = None) -> None:
        """Evaluate what is missing (eq:pair-performance), all pairs in one batch.

        Pairs that failed by a fault of the host are repeated after the batch.

        Args:
            pairs: Those that are wanted.
            kind: Of their verdicts.
            progress: Called with (rollouts done, rollouts in all).
        """
        new = self.missing(pairs)
        self._again |= self._earlier & {digests_of(pair) for pair in pairs}
        if not new:
            return
        played: dict[Digests, Played] = {}
        with self._parts.observer.working(kind):
            for watched in (progress, None):
                played |= self._outcomes(new, kind, watched)
                new = [pair for pair in new if played[digests_of(pair)].host_fault]
                if not new:
                    break
        self._known |= played
        self.played += played.values()

    def play_stage(self, k: int, pairs: Sequence[Pair], kind: str) -> None:
        """As `play`, as a stage of round k that the observer watches."""
        look, count = self._parts.observer, len(self.missing(pairs))
        look.stage(k, kind, count)
        self.play(pairs, kind, lambda done, total: look.advance(count * done // total))

    def _outcomes(
        self, pairs: Sequence[Pair], kind: str, progress: Progress | None
    ) -> dict[Digests, Played]:
        config, (instances, seeds) = self._parts.config, self.shape
        rollouts = self._parts.evaluator.run(
            pairs,
            self._instances,
            seeds=range(seeds),
            steps=config.evaluation.steps,
            fail_fast=True,
            progress=progress,
        )
        require_rollouts(rollouts, len(pairs), instances, seeds, config.evaluation.steps)
        scores = self._parts.utility(rollouts, self._instances)
        values = mean_scores(scores)
        found = {}
        for p, pair in enumerate(pairs):
            status, reason, role = rollouts.failure(p) or (Status.OK, "", "")
            value = float(values[p]) if status == Status.OK else math.nan
            own = () if math.isnan(value) else tuple(map(float, scores[p].ravel()))
            key, paid = digests_of(pair), rollouts.costs_of(p)
            found[key] = Played(*key, kind, status.label, value, reason, role, own, paid)
        return found

    def failures(self) -> list[Failure]:
        """Pairs of this round that failed, with the reason."""
        return [
            Failure("pair", played.status, played.reason, played.destroy, played.repair)
            for played in self.played
            if played.status != Status.OK.label
        ]


def digests_of(pair: Pair) -> Digests:
    """By which a pair is known."""
    return (pair.destroy.digest, pair.repair.digest)


def payoff_of(
    destroys: Sequence[Program],
    responses: Sequence[Sequence[Program]],
    table: PlayedPairs,
    slots: int,
    leaders: Population = (),
    followers: Population = (),
    classical: Sequence[Program] = (),
) -> Payoff:
    """[D, R] utilities: row i holds destroy i with each distinct repair that was written for it.

    A repair sampled twice for one destroy has one slot: it is one member of the set R_i. A program
    that was written in several contexts has the parents of the first.

    Args:
        destroys: [D] those of the round.
        responses: [D] distinct repairs that were written for each.
        table: What is known of their pairs.
        slots: R, unless a row has more.
        leaders: The destroys that parents were drawn from, for the baselines and the cross-play.
        followers: The repairs, likewise.
        classical: The panel's fixed destroys, for the cross-play.
    """
    slots = max(slots, *map(len, responses), 0)
    values = np.full((len(destroys), slots), np.nan)
    bars = np.full((len(destroys), slots), np.nan)
    own = np.full((len(destroys), slots, *table.shape), np.nan)
    failed = np.zeros(values.shape, bool)
    scores = _scores(followers)
    for i, (destroy, row) in enumerate(zip(destroys, responses, strict=True)):
        for j, repair in enumerate(row):
            values[i, j] = table.utility(destroy, repair)
            own[i, j] = table.scores(destroy, repair)
            failed[i, j] = table.failed(destroy, repair)
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
        failed=failed,
    )


def with_asked(payoff: Payoff, pairs: Iterable[Digests], table: PlayedPairs) -> Payoff:
    """The payoff with J of some pairs that were played, for the schemes that asked for them."""
    return replace(payoff, asked={pair: table.utility_of(pair) for pair in pairs})


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
    """The pair with the highest J; of equal ones, the one that was found first."""
    for pair in pairs:
        value = table.utility(pair.destroy, pair.repair)
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
        if math.isfinite(earned[i, j]) and math.isfinite(payoff.utility[i, j])
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
    from spo_jax.envs.metrics import cross_play  # JAX takes time to import
    from spo_jax.numerics.float64 import bucket, padded

    def mean(values: np.ndarray) -> np.ndarray:
        """Of columns, of which a few more are compiled for."""
        count = values.shape[1]
        return np.array(cross_play(padded(values, (len(values), bucket(count))))[:count])

    played = [[table.verdict(leader, m.program) for m in candidates] for leader in panel]
    shape = (len(panel), len(candidates))
    values = np.array([[each.utility for each in row] for row in played]).reshape(shape)
    judged = np.array([[not each.host_fault for each in row] for row in played], bool)
    judged = judged.reshape(shape)
    useful = np.isfinite(values).any(axis=1)
    values, judged = values[useful], judged[useful]
    scores = mean(values)
    for j in map(int, np.flatnonzero(~judged.all(axis=0))):
        if judged[:, j].any():
            scores[j] = mean(values[judged[:, j], j : j + 1])[0]
        elif candidates[j].round < k:
            scores[j] = candidates[j].score
    return [
        Member(member.program, float(score), member.round)
        for member, score in zip(candidates, scores, strict=True)
    ]
