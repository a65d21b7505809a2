"""The page of the state: who reads what is shown of the search, and what they do with it."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from spo_jax.envs.run.states import HIDDEN_STATE, SINCE, STATES, Value
from spo_jax.program import DESTROY_REPAIR, ROLES
from spo_jax.runs.report.figures import Figures
from spo_jax.runs.report.played import ByState, Played
from spo_jax.runs.report.text import number, reads_state
from spo_jax.runs.run import Run


def page(run: Run, played: Played | str, figures: Figures) -> dict[str, Any]:
    """The share of programs that read the state by round, and what was measured by state.

    played: or why nothing was measured.
    """
    if not run.programs:
        return {"missing": "There are no programs that could read the state."}
    counted: dict[tuple[str, int], list[bool]] = defaultdict(list)
    for each in run.programs:
        reads = reads_state(run.game.side(each.role).function, each.source)
        counted[each.role, each.round].append(reads)
    rounds = np.arange(1, run.rounds + 1)
    series, total = [], []
    for role in ROLES:
        plural = run.game.side(role).plural
        values = [counted[role, int(k)] for k in rounds]
        series.append((plural, np.array([np.mean(v) if v else np.nan for v in values])))
        everyone = [each for (of, _), found in counted.items() if of == role for each in found]
        if everyone:
            total.append(
                f"{sum(everyone):,} of {len(everyone):,} {plural} ({np.mean(everyone):.0%})"
            )
    picture = figures.lines(rounds, series, "Share that reads the state, by round", percent=True)
    state = run.config.generator.state
    hidden = state == HIDDEN_STATE
    note = "This run hides the state: programs see 0 at every step." if hidden else ""
    parts = [SINCE] if hidden else list(STATES[state].parts)
    found = {"total": total, "picture": picture, "parts": parts, "note": note}
    if isinstance(played, str):
        return found | {"unmeasured": played}
    if not played.destroys:
        why = played.stopped or f"There is no {run.game.leader.noun} to take steps with."
        return found | {"unmeasured": f"What programs do by state was not measured. {why}"}
    zero = "state 0" if played.states[0] == 0 else "the first state"
    above = "percent above the cost before the step, and below it the share of draws with the same"
    leads, follows = run.game.leader, run.game.follower
    first = (
        f"What {leads.plural} lead to by state, each with the pair's {follows.noun}: {above} "
        f"solution as in {zero}"
    )
    second = (
        f"What {follows.plural} make of the same {leads.noun} by state: {above} "
        f"solution as in {zero}"
    )
    digits = 2
    if run.game == DESTROY_REPAIR:
        first = (
            f"What destroys remove by state: how many of {played.size} {played.unit}, and below "
            f"it how much of that the same draw removes in {zero}"
        )
        second = f"What repairs make of equal removals by state: {above} solution as in {zero}"
        digits = 1
    tables = [(first, _rows(played.destroys, digits)), (second, _rows(played.repairs, 2))]
    return found | {"tables": tables, "states": [*map(_label, played.states)]}


def _label(state: Value) -> str:
    parts = state if isinstance(state, tuple) else (state,)
    return ", ".join(f"{each:.3g}" for each in parts)


def _rows(programs: Sequence[ByState], digits: int) -> list[Any]:
    """Of each program its name, whether it reads the state, and its numbers by state."""
    return [
        (row.name, row.reads, [(number(v, digits), _level(v, row.values)) for v in row.values],
         [number(v, 2) for v in row.alike])
        for row in programs
    ]  # fmt: skip


def _level(value: float, row: tuple[float, ...]) -> int:
    """Percent of the row's largest, for the bar behind the number."""
    most = max((each for each in row if np.isfinite(each)), default=0.0)
    return round(100 * max(value, 0.0) / most) if most > 0 and np.isfinite(value) else 0
