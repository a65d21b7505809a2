"""Populations: which programs survive a round, and which destroys form the leader panel.

Selection (Appendix A.5) is deterministic and does not see the order of its candidates: ties are
broken by digest.
"""

import math
import random
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from numbers import Real
from operator import attrgetter
from typing import Any

from spo_jax.config import Settings
from spo_jax.errors import InputError
from spo_jax.program import Program, Role
from spo_jax.registry import Registry, require_function

_WORD = re.compile(r"\w+")
_MOST_READ = 4096  # characters of a strategy: more than a sentence has
_everything = attrgetter(*(each.name for each in fields(Program)))


@dataclass(frozen=True)
class Member:
    """A program with its population-selection score and the round that generated it first.

    Attributes:
        program: The program.
        score: C_D of a destroy, C_R^pop of a repair (Section 4.4); higher is better. Candidates
            whose score is not finite are never selected.
        round: From 1 on.
    """

    program: Program
    score: float
    round: int


Population = tuple[Member, ...]


@dataclass(frozen=True, eq=False)
class SurvivorContext:
    """What a rule of survivors may depend on, besides its candidates.

    Attributes:
        size: Survivors wanted.
        diversity: Weight of the Jaccard distance.
        round: From 1 on.
        role: Of the candidates.
        rng: A stream of this call alone, so that a rule that draws from it gives the same result
            whenever the run is repeated or resumed.
        settings: The run's.
    """

    size: int
    diversity: float
    round: int
    role: Role
    rng: random.Random
    settings: Settings


Survivors = Callable[[Sequence[Member], SurvivorContext], Population]  # see `diverse_survivors`


@dataclass(frozen=True, eq=False)
class PanelContext(SurvivorContext):
    """What a choice of leaders may depend on, besides the surviving destroys.

    Attributes:
        size: Evolved leaders wanted.
        diversity: As of the `SurvivorContext`.
        round: Likewise.
        role: Likewise.
        rng: Likewise.
        settings: Likewise.
        survivors: The run's rule of survivors.
        classical: The problem's classical destroys; empty where the run leaves them out.
    """

    survivors: Survivors
    classical: tuple[Program, ...]


Panel = Callable[[Population, PanelContext], tuple[Program, ...]]  # see `leader_panel`


@lru_cache(maxsize=4096)  # a population's strategies come in every round
def tokens(strategy: str) -> frozenset[str]:
    """The lower-cased words and numbers of a strategy sentence; of one without end the first."""
    return frozenset(_WORD.findall(strategy[:_MOST_READ].lower()))


def jaccard(a: str, b: str) -> float:
    """Jaccard distance between the token sets of two strategies.

    Args:
        a: A strategy sentence.
        b: Another one.

    Returns:
        In [0, 1]: 0 for equal sets, two empty ones included; 1 for sets with nothing in common.
    """
    return _distance(tokens(a), tokens(b))


@lru_cache(maxsize=1 << 16)
def _distance(a: frozenset[str], b: frozenset[str]) -> float:
    union = len(a | b)
    return 1 - len(a & b) / union if union else 0.0


def diverse_survivors(candidates: Sequence[Member], context: SurvivorContext) -> Population:
    """Choose survivors by score and diversity, the paper's rule (Appendix A.5).

    The best score comes first; then, one by one, the candidate p with the highest s(p) + diversity
    * (smallest Jaccard distance to a survivor). Duplicates count once: destroys by source digest,
    repairs by source digest and the destroy strategy that they were written for; the best score of
    a duplicate is kept, and of equal scores the oldest. So a destroy that is sampled again has the
    highest C_D of all its rounds, each from other repairs, and what is often sampled is favoured.
    The rule is deterministic: it draws nothing from `context.rng`.

    Args:
        candidates: Of one role, in any order.
        context: Of it `size` and `diversity`.

    Returns:
        At most `context.size` survivors, in the order of their selection.

    Raises:
        InputError: Candidates are of both roles, the size is negative, or the diversity is below
            zero or not finite.
    """
    left = _distinct(candidates)
    return _spread(left, [member.score for member in left], context)


def ranked_survivors(candidates: Sequence[Member], context: SurvivorContext) -> Population:
    """Choose survivors as `diverse_survivors`, with ranks in place of scores.

    A rank is 1 for the best of the distinct candidates, 0 for the worst, equal scores sharing their
    mean rank. Scores of J differ by thousandths, strategies by tenths, so that the paper's rule
    follows the distances whatever their weight is meant to be. Ranks do not depend on the scale of
    a problem.

    Args:
        candidates: Of one role, in any order.
        context: Of it `size` and `diversity`.

    Returns:
        At most `context.size` survivors, in the order of their selection.

    Raises:
        InputError: As `diverse_survivors`.
    """
    left = _distinct(candidates)
    scores = [member.score for member in left]
    ordered = sorted(scores)
    steps = max(1, len(left) - 1)
    ranks = [
        (bisect_left(ordered, score) + bisect_right(ordered, score) - 1) / 2 / steps
        for score in scores
    ]
    return _spread(left, ranks, context)


def _spread(left: list[Member], scores: Sequence[float], context: SurvivorContext) -> Population:
    """The best of distinct members, then those with the best score plus distance, one by one."""
    size, diversity = context.size, context.diversity
    if size < 0 or not (diversity >= 0 and math.isfinite(diversity)):
        raise InputError(f"size is {size} and diversity {diversity}: neither may be negative")
    if len({member.program.role for member in left}) > 1:
        raise InputError("a population holds programs of one role")
    words = [tokens(member.program.strategy) for member in left]
    nearest = [0.0] * len(left)  # distance to the nearest survivor; there is none at first
    chosen: list[Member] = []
    remaining = list(range(len(left)))
    while remaining and len(chosen) < size:
        # max() keeps the first of equals, and `left` is sorted by digest.
        best = max(remaining, key=lambda k: scores[k] + diversity * nearest[k])
        remaining.remove(best)
        for k in remaining:
            distance = _distance(words[k], words[best])
            nearest[k] = min(nearest[k], distance) if chosen else distance
        chosen.append(left[best])
    return tuple(chosen)


def leader_panel(destroys: Population, context: PanelContext) -> tuple[Program, ...]:
    """The panel of eq:repair-population-credit: evolved destroys, then the fixed classical ones.

    Args:
        destroys: The surviving ones.
        context: Its rule of survivors chooses up to `size` of them.

    Returns:
        The panel; a classical program that is already there is not repeated.

    Raises:
        InputError: A program is of the other role.
    """
    evolved = (member.program for member in context.survivors(destroys, context))
    panel: dict[str, Program] = {}
    for program in (*evolved, *context.classical):
        if program.role != "destroy":
            raise InputError(f"a leader panel holds destroy programs, not a {program.role}")
        panel.setdefault(program.digest, program)
    return tuple(panel.values())


def identity(program: Program) -> tuple[str, ...]:
    """What makes two programs of one role the same to a population.

    Returns:
        Of a destroy its digest; of a repair also its `condition`.
    """
    if program.role == "destroy":
        return (program.digest,)
    return (program.digest, program.condition)


def _distinct(candidates: Sequence[Member]) -> list[Member]:
    """One member per identity, finite scores only, sorted by identity."""

    def preference(member: Member) -> tuple[Any, ...]:
        # The program itself comes last: a complete order makes the choice independent of theirs.
        return (-member.score, member.round, _everything(member.program))

    best: dict[tuple[str, ...], Member] = {}
    for member in sorted((m for m in candidates if math.isfinite(m.score)), key=preference):
        best.setdefault(identity(member.program), member)
    return [best[identity] for identity in sorted(best)]


# --- by name --------------------------------------------------------------------------------------


def _own_survivors(name: str, function: Any) -> Survivors:
    """The function, whose results are checked: an InputError says where it returned something else
    than candidates with finite scores, each once and at most `context.size`.
    """
    require_function(f"survivors {name!r}", function, diverse_survivors)
    due = "it must return members of its candidates, with finite scores"

    def checked(candidates: Sequence[Member], context: SurvivorContext) -> Population:
        chosen = _several(f"survivors {name!r}", function(candidates, context), due)
        programs = [member.program for member in candidates]
        for each in chosen:
            lawful = isinstance(each, Member) and each.program in programs
            lawful = lawful and isinstance(each.score, Real) and type(each.round) is int
            if not (lawful and math.isfinite(each.score)):
                raise InputError(f"survivors {name!r} returned {each!r:.80}: {due}")
        distinct = len({identity(each.program) for each in chosen})
        if distinct < len(chosen) or len(chosen) > context.size:
            raise InputError(
                f"survivors {name!r} returned {len(chosen)} members, {distinct} of them distinct: "
                f"it must return each program once, and at most {context.size} (context.size)"
            )
        return tuple(replace(each, score=float(each.score)) for each in chosen)

    return checked


def _own_panel(name: str, function: Any) -> Panel:
    """The function, of whose results an InputError says where they are no destroy programs."""
    require_function(f"panel {name!r}", function, leader_panel)
    due = "it must return destroy programs"

    def checked(destroys: Population, context: PanelContext) -> tuple[Program, ...]:
        chosen = _several(f"panel {name!r}", function(destroys, context), due)
        for each in chosen:
            if not isinstance(each, Program) or each.role != "destroy":
                raise InputError(f"panel {name!r} returned {each!r:.80}: {due}")
        return chosen

    return checked


def _several(what: str, found: Any, due: str) -> tuple[Any, ...]:
    """What a function returned, as a tuple. Raises InputError for what is not iterable."""
    if not isinstance(found, Iterable):
        raise InputError(f"{what} returned {found!r:.80}: {due}")
    return tuple(found)


SURVIVORS: Registry[Survivors] = Registry(
    "survivors", {"diverse": diverse_survivors, "ranked": ranked_survivors}, _own_survivors
)
PANELS: Registry[Panel] = Registry("panel", {"evolved": leader_panel}, _own_panel)
