"""Heats: the responses to each destroy race with each other while other repairs are sampled.

With `racing` the repairs that were written for one destroy are evaluated side by side, in stages:
after some evaluations the rule (`spo_jax.search.racing`) says which of them go on. The group is one
destroy's because

- it is the same whatever the workers, the parts in which a generator answers, and the order in
  which evaluations end: a heat begins when all answers to its destroy are there;
- other repairs are being sampled meanwhile, which a race of the whole round would have to wait for;
- the best responses to each destroy are evaluated in full, so that leader credits are of values and
  not of estimates; a race of the round would give up bad destroys whole.

A pair that is out is "censored". A pair that an earlier round evaluated is in its heat with the
scores of the stage, costs nothing, and keeps its J whatever the rule says of it. A pair that fails
is out of the heat. Everything else in a round evaluates in full what it asks for, also a pair that
was left out.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.envs.run.evaluator import Progress
from spo_jax.envs.run.rollouts import Status
from spo_jax.program import Pair
from spo_jax.search.parts import Parts
from spo_jax.search.payoffs import Table
from spo_jax.search.racing import completed, decided, evaluations, stages
from spo_jax.search.rounds import CENSORED, RESPONSE, Answers, Digests, Played
from spo_jax.search.utility import mean_scores


@dataclass(eq=False)
class _Entry:
    """A pair in a heat. scores, costs: [I, S], NaN for what is not made yet.

    known: an earlier round evaluated it. failed: its verdict, once it has failed. going: no rule
    has left it out.
    """

    pair: Pair
    scores: np.ndarray
    costs: np.ndarray
    known: bool
    failed: Played | None = None
    going: bool = True

    @property
    def whole(self) -> bool:
        """Whether it has all of its evaluations."""
        return self.failed is None and (self.known or self.going)


@dataclass(eq=False)
class Heats:
    """The races of one round, to be called with answers as they come, in any parts.

    prompts: how many prompts each destroy has.
    """

    parts: Parts
    table: Table
    instances: Sequence[Instance]
    prompts: int
    _waiting: dict[str, list[Answers]] = field(default_factory=dict)
    _tally: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        assert self.parts.racing is not None
        self._rule = self.parts.racing
        self._order = evaluations(*self.table.shape)
        self._stages = [*stages(self._rule, len(self._order)), len(self._order)]

    def __call__(self, new: Sequence[Answers], progress: Progress) -> None:
        """Race the responses to the destroys whose answers are all there."""
        whole = []
        for answers in new:
            assert answers.prompt.destroy is not None
            row = self._waiting.setdefault(answers.prompt.destroy.digest, [])
            row.append(answers)
            if len(row) == self.prompts:
                whole.append(row)
        heats = [self._entries(row) for row in whole]
        if any(not entry.known for heat in heats for entry in heat):
            with self.parts.observer.working(RESPONSE):
                self._race(heats, progress)

    @property
    def metrics(self) -> dict[str, float]:
        """Of the round. racing/pairs: raced that no earlier round evaluated in full. out: of these,
        left out. rollouts: that these pairs have in full. saved: of these, not made. repeated: made
        of pairs, by whatever needs them, that a race had left out.
        """
        names = ("pairs", "out", "rollouts", "saved")
        found = {f"racing/{name}": float(self._tally[name]) for name in names}
        return found | {"racing/repeated": float(self.table.repeated)}

    # --- how --------------------------------------------------------------------------------------

    def _entries(self, row: Sequence[Answers]) -> list[_Entry]:
        pairs: dict[Digests, Pair] = {}
        for answers in row:
            for repair in answers.programs:
                if answers.prompt.destroy is not None and repair is not None:
                    pair = Pair(answers.prompt.destroy, repair)
                    pairs.setdefault(_digests(pair), pair)
        self.table.reuse(pairs.values())
        new = {_digests(pair) for pair in self.table.missing(pairs.values())}
        heat = []
        # In an order that does not depend on that of the answers.
        for digests, pair in sorted(pairs.items()):
            scores = np.full(self.table.shape, np.nan)
            entry = _Entry(pair, scores, scores.copy(), known=digests not in new)
            if entry.known:
                verdict = self.table.verdict(pair.destroy, pair.repair)
                entry.scores = self.table.scores(pair.destroy, pair.repair)
                entry.failed = verdict if verdict.status != Status.OK.label else None
            heat.append(entry)
        return heat

    def _race(self, heats: Sequence[list[_Entry]], progress: Progress) -> None:
        repeated = {e.pair.digest for heat in heats for e in heat if self.table.left_out(e.pair)}
        start = 0
        for end in self._stages:
            self._evaluate([e for heat in heats for e in heat if e.going], start, end, progress)
            for heat in heats if end < len(self._order) else ():
                self._decide(heat, end)
            start = end
        for heat in heats:
            self._finish(heat)
        self._count([e for heat in heats for e in heat if not e.known], repeated)

    def _evaluate(
        self,
        entries: Sequence[_Entry],
        start: int,
        end: int,
        progress: Progress = lambda done, total: None,
    ) -> None:
        """The evaluations from `start` to before `end` of those that have not failed."""
        for places, seeds in _blocks(self._order[start:end]):
            left = [entry for entry in entries if not entry.known and entry.failed is None]
            if not left:
                return
            instances = self.instances[places.start : places.stop]
            pairs = [entry.pair for entry in left]
            size = len(places) * len(seeds)
            told = partial(_part_of, progress, len(self._order), start, size)
            found = self.table.outcomes(pairs, RESPONSE, instances, told, seeds)
            start += size
            for entry in left:
                played = found[_digests(entry.pair)]
                if played.status != Status.OK.label:
                    entry.failed = played
                    continue
                where = np.ix_(places, seeds)
                entry.scores[where] = np.reshape(played.scores, (len(places), len(seeds)))
                if played.costs:
                    entry.costs[where] = np.reshape(played.costs, (len(places), len(seeds)))

    def _decide(self, heat: list[_Entry], count: int) -> None:
        """Ask the rule after `count` evaluations; one pair alone has nobody to lose to."""
        left = [entry for entry in heat if entry.going and entry.failed is None]
        if len(left) < 2:
            return
        seen = np.full((len(left), *self.table.shape), np.nan)
        for i, s in self._order[:count]:
            seen[:, i, s] = [entry.scores[i, s] for entry in left]
        for entry, going in zip(left, decided(self._rule, seen).tolist(), strict=True):
            entry.going = going

    def _finish(self, heat: list[_Entry]) -> None:
        """The verdicts of a heat. Where all that went on have failed, those that were out go on:
        an estimate needs a pair with all evaluations.
        """
        out = [entry for entry in heat if entry.failed is None and not entry.whole]
        if out and not any(entry.whole for entry in heat):
            for entry in out:
                made = int(np.isfinite(entry.scores).sum())
                entry.going = True
                self._evaluate([entry], made, len(self._order))
            out = []
        valid = [entry for entry in heat if entry.failed is None]
        estimates = {}
        if out:
            flat = np.array([[entry.scores[place] for place in self._order] for entry in valid])
            found = completed(flat, np.isfinite(flat)).tolist()
            estimates = {id(entry): value for entry, value in zip(valid, found, strict=True)}
        verdicts, unfinished = [], {}
        for entry in heat:
            if entry.known:
                continue
            if entry in out:
                unfinished[_digests(entry.pair)] = entry.scores
                verdicts.append(
                    Played(*_digests(entry.pair), RESPONSE, CENSORED, estimates[id(entry)])
                )
            else:
                verdicts.append(entry.failed or _whole(entry))
        self.table.record(verdicts, unfinished)

    def _count(self, new: Sequence[_Entry], repeated: set[str]) -> None:
        all_of = len(self._order)
        for entry in new:
            left = 0 if entry.whole or entry.failed else int(np.isnan(entry.scores).sum())
            if entry.pair.digest in repeated:
                self.table.repeated += all_of - left
                continue
            self._tally.update(pairs=1, out=left > 0, rollouts=all_of, saved=left)


def _part_of(progress: Progress, all_of: int, start: int, size: int, done: int, of: int) -> None:
    """Tell what `size` of a race's evaluations, from `start` on, are of all."""
    progress(start * of + size * done, all_of * of)


def _whole(entry: _Entry) -> Played:
    """The verdict of a pair with all its evaluations, as if they had been made at once."""
    value = float(mean_scores(entry.scores[None])[0])
    costs = tuple(map(float, entry.costs.ravel())) if np.isfinite(entry.costs).all() else ()
    scores = tuple(map(float, entry.scores.ravel()))
    own = Played(*_digests(entry.pair), RESPONSE, Status.OK.label, value)
    return replace(own, scores=scores, costs=costs)


def _digests(pair: Pair) -> Digests:
    return (pair.destroy.digest, pair.repair.digest)


def _blocks(places: Sequence[tuple[int, int]]) -> list[tuple[range, range]]:
    """Consecutive places (instance, seed) of a race as few ranges of instances and seeds."""
    runs: list[tuple[range, range]] = []
    for i, s in places:
        if runs and runs[-1][1] == range(s, s + 1) and runs[-1][0].stop == i:
            runs[-1] = (range(runs[-1][0].start, i + 1), runs[-1][1])
        else:
            runs.append((range(i, i + 1), range(s, s + 1)))
    joined: list[tuple[range, range]] = []
    for instances, seeds in runs:
        if joined and joined[-1][0] == instances:
            joined[-1] = (instances, range(joined[-1][1].start, seeds.stop))
        else:
            joined.append((instances, seeds))
    return joined
