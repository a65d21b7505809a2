"""The groups of an update: the samples of each context, their credits, and which of them failed.

Line 12 of Algorithm 1. A sample without a credit is left out of the update, except that
`failure_penalty` gives one to those that failed by their own fault.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from spo_jax.envs.run.rollouts import Status
from spo_jax.program import Group, Program
from spo_jax.search.credit import Credits
from spo_jax.search.payoffs import Table
from spo_jax.search.rounds import CENSORED, Answers, Played


def leader_groups(
    leaders: Sequence[Answers],
    destroys: Sequence[Program],
    responses: Sequence[Sequence[Program]],
    credits: Credits,
    table: Table,
) -> list[Group]:
    """One group per destroy context; samples of one program have the same credit.

    leaders: the round's destroy answers. destroys, responses: the destroys that were evaluated, and
    the distinct repairs of each.
    """
    earned = {destroy.digest: float(c) for destroy, c in zip(destroys, credits.leader, strict=True)}
    evaluated = {d.digest: (d, row) for d, row in zip(destroys, responses, strict=True)}

    def failed(program: Program) -> bool:
        destroy, row = evaluated.get(program.digest, (program, ()))
        return _leader_failed([table.verdict(destroy, repair) for repair in row])

    return [_group(answers, earned, failed) for answers in leaders]


def follower_groups(
    rows: Sequence[Sequence[Answers]],
    destroys: Sequence[Program],
    responses: Sequence[Sequence[Program]],
    credits: Credits,
    table: Table,
) -> list[Group]:
    """One group per repair context. rows: the answers of each destroy's contexts."""
    groups = []
    for i, (row, destroy, repairs) in enumerate(zip(rows, destroys, responses, strict=True)):
        earned = {repair.digest: float(credits.follower[i, j]) for j, repair in enumerate(repairs)}

        def failed(program: Program, destroy: Program = destroy) -> bool:
            return table.verdict(destroy, program).role == "repair"

        groups += [_group(answers, earned, failed) for answers in row]
    return groups


def _group(answers: Answers, earned: dict[str, float], failed: Callable[[Program], bool]) -> Group:
    """An answer without a program, or with one that the gate refused, failed by its own fault."""
    credits = [math.nan if p is None else earned.get(p.digest, math.nan) for p in answers.programs]
    faults = [
        math.isnan(credit) and (i not in answers.unjudged if program is None else failed(program))
        for i, (program, credit) in enumerate(zip(answers.programs, credits, strict=True))
    ]
    return Group(answers.prompt, answers.completions, np.array(credits), np.array(faults, bool))


def _leader_failed(row: Sequence[Played]) -> bool:
    """A destroy has failed if every pair did, and at least one by the destroy's own fault.

    A failure that names no role (a process killed at its CPU limit) counts against neither.
    """
    if any(played.status in (Status.OK.label, Status.HOST_FAULT.label, CENSORED) for played in row):
        return False
    return any(played.role == "destroy" for played in row)
