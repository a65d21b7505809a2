"""What the update is given: the samples of each context, their credits, and whose fault is none.

Line 12 of Algorithm 1. A sample without a credit is left out of the update; whether it has none by
its own fault matters only where failures are punished (`failure_penalty`).
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from spo_jax.envs.run.rollouts import Status
from spo_jax.program import Group, Program
from spo_jax.search.candidates import Answers
from spo_jax.search.credit import Credits
from spo_jax.search.payoffs import Table
from spo_jax.search.rounds import Played


def leader_groups(
    leaders: Sequence[Answers],
    destroys: Sequence[Program],
    responses: Sequence[Sequence[Program]],
    credits: Credits,
    table: Table,
) -> list[Group]:
    """One group a destroy context; samples of one program earn the same.

    leaders: the round's destroy answers. destroys, responses: those that took part, and to each the
    distinct repairs that it met.
    """
    earned = {destroy.digest: float(c) for destroy, c in zip(destroys, credits.leader, strict=True)}
    met = {d.digest: (d, row) for d, row in zip(destroys, responses, strict=True)}

    def failed(program: Program) -> bool:
        destroy, row = met.get(program.digest, (program, ()))
        return _leader_failed([table.verdict(destroy, repair) for repair in row])

    return [_group(answers, earned, failed) for answers in leaders]


def follower_groups(
    rows: Sequence[Sequence[Answers]],
    destroys: Sequence[Program],
    responses: Sequence[Sequence[Program]],
    credits: Credits,
    table: Table,
) -> list[Group]:
    """One group a repair context. rows: to each destroy the answers of its contexts."""
    groups = []
    for i, (row, destroy, repairs) in enumerate(zip(rows, destroys, responses, strict=True)):
        earned = {repair.digest: float(credits.follower[i, j]) for j, repair in enumerate(repairs)}

        def failed(program: Program, destroy: Program = destroy) -> bool:
            return table.verdict(destroy, program).role == "repair"

        groups += [_group(answers, earned, failed) for answers in row]
    return groups


def _group(answers: Answers, earned: dict[str, float], failed: Callable[[Program], bool]) -> Group:
    """An answer without a program, or with one that the gate refused, has itself failed."""
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
    if any(played.status in (Status.OK.label, Status.HOST_FAULT.label) for played in row):
        return False
    return any(played.role == "destroy" for played in row)
