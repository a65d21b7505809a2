"""The best programs of a round, measured again on fresh instances, so that luck does not live on.

A high score is partly luck, and a survivor would keep it. With `remeasure` = n, the n best
candidates of each role are measured anew in every round before its survivors are chosen: a destroy
with the L best of its responses (L = `top_responses`), a repair with all leaders of the panel. The
instances are the round's own, the same for all, as many as the training has; their seeds are as new
as they are.

J of a pair is then the mean over everything measured of it, the first time included, and scores
are what they always are, of these means: C_D is the credit of the destroy's row, C_R^pop the mean
over the panel (eq:leader-credit, eq:repair-population-credit). The update learns from what is known
before the round measures anything again, when all new answers are alike.

Other instances change every J, by more than pairs differ. So `CONTROLS` valid responses of the
round, drawn whatever their J, are measured there too; the median of what they gain is the level of
the round's instances, and it is taken off. No choice by J enters it, so measurements of all rounds
are on the scale of the run's first instances without bias.

With `fresh_instances` the round's own instances also take the place of the training instances from
round 2 on. The controls then run on the first instances, and the level is taken off whatever the
round measures. Candidates of the round itself have been on its instances already.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from spo_jax.envs.problem import Instance
from spo_jax.program import Pair, Program
from spo_jax.search.instances import round_instances
from spo_jax.search.parts import Parts
from spo_jax.search.payoffs import Table, better, cross_play_scores, payoff_of
from spo_jax.search.population import Member, identity
from spo_jax.search.rounds import Best, Played, Row, State, stands
from spo_jax.seeding import python_rng

CONTROLS = 10
STAGE = "remeasure"  # in the display and in `timings`


class Elites:
    """What round k measures again; with `remeasure` = 0 nothing.

    table: the payoffs of the round. To be called in this order: `responded`, `destroys`, `repairs`,
    `best`.
    """

    def __init__(self, parts: Parts, instances: Sequence[Instance], k: int, state: State):
        self._parts, self._k, self._state = parts, k, state
        self._count = parts.config.search.remeasure
        self._fresh = parts.config.evaluation.fresh_instances
        self._first = instances
        self._own: Sequence[Instance] = ()
        if self._count and not (self._fresh and k == 1):
            self._own = round_instances(parts.config, parts.problem, k)
        self._rows: dict[Row, tuple[Program, ...]] = {}
        self._level: float | None = None
        self._controls: list[Pair] = []
        self._pending: list[Played] = []  # of the controls, which no credit has seen
        fresh = self._fresh and bool(self._own)
        on = self._own if fresh else instances
        self.table = Table(parts, on, state.payoffs, state.again, fresh)

    def responded(
        self, destroys: Sequence[Program], responses: Sequence[Sequence[Program]]
    ) -> None:
        """The round's responses are played: finds its level where they are on its own instances."""
        self._rows = dict(self._state.responses)
        rows = zip(destroys, responses, strict=True)
        self._rows |= {(destroy.digest, self._k): tuple(row) for destroy, row in rows}
        new = [Pair(d, r) for d, row in zip(destroys, responses, strict=True) for r in row]
        self._controls = self._drawn(new) if self._own else []
        if self._fresh and self._own:
            before = self._utilities(self._controls)
            found = self._measured(self._controls, self._first)
            self._level = level_of(found, before, sign=-1)
            self.table.set_level(self._level or 0.0)
            self._pending = found

    def destroys(self, candidates: Sequence[Member]) -> Sequence[Member]:
        """Candidates for the destroys' population, scored by all that is known after measuring."""
        if not self._count:
            return candidates
        self.table.add(self._pending)
        candidates = self._scored(candidates)
        top = self._parts.config.search.top_responses
        pairs = []
        for member in best_members(candidates, self._count):
            row = self._rows.get((member.program.digest, member.round), ())
            known = [(self.table.utility(member.program, repair), repair) for repair in row]
            valid = [each for each in known if math.isfinite(each[0])]
            best = sorted(valid, key=lambda each: -each[0])[:top]
            pairs += [Pair(member.program, repair) for _, repair in best]
        self._measure(pairs)
        return self._scored(candidates)

    def repairs(self, candidates: Sequence[Member], panel: Sequence[Program]) -> list[Member]:
        """Candidates for the repairs' population with their cross-play scores, likewise.

        Their pairs with the panel were played.
        """
        rated = cross_play_scores(candidates, panel, self.table, self._k)
        if not self._count:
            return rated
        best = best_members(rated, self._count)
        pairs = [Pair(leader, member.program) for member in best for leader in panel]
        self._measure([p for p in pairs if math.isfinite(self.table.utility(p.destroy, p.repair))])
        return cross_play_scores(candidates, panel, self.table, self._k)

    def best(self, pairs: Sequence[Pair]) -> Best | None:
        """The best pair so far (line 11). pairs: those of the round that it is chosen from.

        Where pairs are measured again, J of the best and of surviving destroys' responses may have
        changed, so these are compared anew.
        """
        found = self._state.best
        if self._count and found is not None:
            now = self.table.utility(found.pair.destroy, found.pair.repair)
            old = {m.program.digest: m.program for m in self._state.destroys}
            found = None if math.isnan(now) else Best(found.pair, now, found.round)
            for (digest, number), row in self._state.responses.items():
                earlier = [Pair(old[digest], repair) for repair in row]
                found = better(found, earlier, self.table, number)
        return better(found, pairs, self.table, self._k)

    @property
    def metrics(self) -> dict[str, float]:
        """What was measured again, and the level of the round's instances; none without any."""
        if not self._count or not self.table.remeasured:
            return {}
        level = math.nan if self._level is None else self._level
        return {f"{STAGE}/pairs": float(len(self.table.remeasured)), f"{STAGE}/level": level}

    # --- how --------------------------------------------------------------------------------------

    def _measure(self, pairs: Sequence[Pair]) -> None:
        """Measure pairs on the round's own instances, except those that have been on them.

        The first time also the controls, unless the level is known; without a level, which takes
        a valid control, nothing is kept.
        """
        if not self._own:
            return
        done = {each.digests for each in self.table.remeasured}
        if self._fresh:
            done |= {each.digests for each in self.table.played}
        controls = [] if self._fresh or done else self._controls
        wanted = {pair.digest: pair for pair in (*controls, *pairs)}
        new = [p for p in wanted.values() if (p.destroy.digest, p.repair.digest) not in done]
        before = self._utilities(controls)
        found = self._measured(new, self._own)
        if controls:
            self._level = level_of(found, before)
        if self._level is not None:
            self.table.add([each.lowered(self._level) for each in found])

    def _measured(self, pairs: Sequence[Pair], on: Sequence[Instance]) -> list[Played]:
        """Measurements of some pairs; a fault of the host is none."""
        if not pairs:
            return []
        look = self._parts.observer
        look.stage(self._k, STAGE, len(pairs))
        blind = {(pair.destroy.digest, pair.repair.digest) for pair in self._controls}
        with look.working(STAGE):
            found = self.table.outcomes(
                pairs, "elite", on, lambda done, total: look.advance(done * len(pairs) // total)
            )
        kinds = {digests: "control" if digests in blind else "elite" for digests in found}
        return [replace(each, kind=kinds[d]) for d, each in found.items() if stands(each)]

    def _drawn(self, pairs: Sequence[Pair]) -> list[Pair]:
        """Controls: valid pairs of the round, drawn whatever their J."""
        distinct = {pair.digest: pair for pair in pairs}
        played = {each.digests for each in self.table.played}
        valid = [
            pair for _, pair in sorted(distinct.items())
            if (pair.destroy.digest, pair.repair.digest) in played
            and math.isfinite(self.table.utility(pair.destroy, pair.repair))
        ]  # fmt: skip
        rng = python_rng(self._parts.config.seed, "round", self._k, "controls")
        return rng.sample(valid, min(CONTROLS, len(valid)))

    def _utilities(self, pairs: Sequence[Pair]) -> dict[tuple[str, str], float]:
        return {
            (p.destroy.digest, p.repair.digest): self.table.utility(p.destroy, p.repair)
            for p in pairs
        }

    def _scored(self, members: Sequence[Member]) -> list[Member]:
        """Destroys by the credit of their rows, where any pair of the row was measured again."""
        found = []
        for member in members:
            row = self._rows.get((member.program.digest, member.round), ())
            score = member.score
            if any(self.table.measured_again(member.program, repair) for repair in row):
                score = self._credit(member.program, row)
            found.append(Member(member.program, score, member.round))
        return found

    def _credit(self, destroy: Program, row: tuple[Program, ...]) -> float:
        """The credit that a destroy earns by its row alone, of as many slots as in its round."""
        search = self._parts.config.search
        payoff = payoff_of([destroy], [row], self.table, search.repairs_per_destroy)
        top = search.top_responses
        return float(self._parts.credit(payoff, top=top).selected_by.leader[0])


def level_of(
    found: Sequence[Played], before: Mapping[tuple[str, str], float], sign: int = 1
) -> float | None:
    """The median of what controls gain, times `sign`; None without one that is valid.

    found: measurements, those of other pairs among them. before: J of the controls.
    """
    gains = [
        sign * (each.utility - before[each.digests])
        for each in found
        if each.digests in before and math.isfinite(each.utility)
    ]
    return median(gains) if gains else None


def best_members(members: Sequence[Member], count: int) -> list[Member]:
    """The `count` with the highest scores; equal ones by what identifies them, not by place."""
    valid = [member for member in members if math.isfinite(member.score)]
    return sorted(valid, key=lambda m: (-m.score, m.round, identity(m.program)))[:count]
