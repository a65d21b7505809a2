"""The groups of an update: the samples of each context, their credits, and which of them failed.

Line 12 of Algorithm 1. A sample without a credit is left out of the update, except that
`failure_penalty` gives one to those that failed by their own fault.

What mended answers teach is the setting `mended`. "original": the original has no credit; it failed
by its own fault, unless its program was a parent's again. "inherit": the original earns what the
mended program does. "sample": as "original", and the further answers to the originals of a context
are a group of their own, each a sample of the conversation that it answered. Their advantages are
relative to this group's mean, so a group needs two of them.

A model that repeats a parent earns what the parent is worth, and learns to do so. With the setting
`copies` "unpaid" such answers are left out.

What counts as a sample is the credit's (`spo_jax.search.credit.types.Samples`). "programs": the
answers of a context, as in the paper. "pairs": a destroy is a sample of its context once for each
of its pairs, with that pair's follower credit. "one-group": so it is, and the repairs of these
destroys are in the same group, so that both roles are compared with the same mean.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from spo_jax.envs.run.rollouts import Status
from spo_jax.program import Group, Program
from spo_jax.search.credit import Credits
from spo_jax.search.credit.types import Samples
from spo_jax.search.payoffs import Table
from spo_jax.search.rounds import Answers, Played
from spo_jax.search.sampling.mends import COPY, is_copy

_NO_FAULT = (COPY, Status.HOST_FAULT.label)
Mended = Literal["original", "inherit", "sample"]
Copies = Literal["earn", "unpaid"]
Earned = dict[str, float]  # by a program's digest
Failing = Callable[[Program], bool]  # whether a program without a credit failed by its own fault


def leader_groups(
    leaders: Sequence[Answers],
    destroys: Sequence[Program],
    responses: Sequence[Sequence[Program]],
    credits: Credits,
    table: Table,
    mended: Mended = "original",
    samples: Samples = "programs",
    *,
    copies: Copies = "earn",
) -> list[Group]:
    """One group per destroy context, then those of mended answers, if these are samples; samples of
    one program have the same credit.

    leaders: the round's destroy answers. destroys, responses: the destroys that were evaluated, and
    the distinct repairs of each.
    """
    earned = {destroy.digest: float(c) for destroy, c in zip(destroys, credits.leader, strict=True)}
    evaluated = {d.digest: (d, row) for d, row in zip(destroys, responses, strict=True)}

    def failed(program: Program) -> bool:
        destroy, row = evaluated.get(program.digest, (program, ()))
        return _leader_failed([table.verdict(destroy, repair) for repair in row])

    pairs = None
    if samples != "programs":
        pairs = {d.digest: credits.follower[i] for i, d in enumerate(destroys)}
    groups = [_group(answers, earned, failed, mended, copies, pairs) for answers in leaders]
    if mended == "sample":
        groups += _of_mends([(answers, earned, failed) for answers in leaders])
    return groups


def follower_groups(
    rows: Sequence[Sequence[Answers]],
    destroys: Sequence[Program],
    responses: Sequence[Sequence[Program]],
    credits: Credits,
    table: Table,
    mended: Mended = "original",
    samples: Samples = "programs",
    leaders: Sequence[Answers] = (),
    *,
    copies: Copies = "earn",
) -> list[Group]:
    """One group per repair context, then those of mended answers, if these are samples.

    rows: the answers of each destroy's contexts. leaders: the round's destroy answers, which say
    for "one-group" whose pairs a repair is compared with.
    """
    groups: list[Group] = []
    pools = _pools(leaders, destroys, responses, credits) if samples == "one-group" else None
    contexts: list[tuple[Answers, Earned, Failing]] = []
    for i, (row, destroy, repairs) in enumerate(zip(rows, destroys, responses, strict=True)):
        earned = {repair.digest: float(credits.follower[i, j]) for j, repair in enumerate(repairs)}

        def failed(program: Program, destroy: Program = destroy) -> bool:
            return table.verdict(destroy, program).role == "repair"

        for answers in row:
            group = _group(answers, earned, failed, mended, copies)
            if pools is not None:
                own = {(destroy.digest, each.digest) for each in answers.programs if each}
                others = [value for pair, value in pools[destroy.digest].items() if pair not in own]
                group = replace(group, others=np.array(others))
            groups.append(group)
        contexts += [(answers, earned, failed) for answers in row]
    return groups + (_of_mends(contexts) if mended == "sample" else [])


def _pools(
    leaders: Sequence[Answers],
    destroys: Sequence[Program],
    responses: Sequence[Sequence[Program]],
    credits: Credits,
) -> dict[str, dict[tuple[str, str], float]]:
    """By a destroy's digest: the credits of all pairs of the context that wrote it first, by the
    digests of destroy and repair. A destroy that no context wrote has its own pairs alone.
    """
    written = {
        program.digest: c
        for c, answers in reversed([*enumerate(leaders)])
        for program in answers.programs
        if program is not None
    }
    pools: dict[int | str, dict[tuple[str, str], float]] = {}
    for i, (destroy, row) in enumerate(zip(destroys, responses, strict=True)):
        pool = pools.setdefault(written.get(destroy.digest, destroy.digest), {})
        values = credits.follower[i].tolist()
        for repair, value in zip(row, values, strict=False):  # slots may be empty
            if math.isfinite(value):
                pool[destroy.digest, repair.digest] = value
    return {d.digest: pools[written.get(d.digest, d.digest)] for d in destroys}


def _group(
    answers: Answers,
    earned: Earned,
    failed: Failing,
    how: Mended,
    copies: Copies,
    pairs: Mapping[str, np.ndarray] | None = None,
) -> Group:
    """An answer without a program, with one that the gate refused, or with one that failed its
    trial failed by its own fault, unless it earns what the program does that took its place.

    pairs: the credits [R] of a program's pairs, by its digest, where these are the samples.
    """
    credits, faults = [], []
    for i, program in enumerate(answers.programs):
        mend = answers.mended[i] if answers.mended else None
        if mend is not None and mend.program is not None and how != "inherit":
            credit, fault = math.nan, mend.status != COPY
        elif program is None:
            credit, fault = math.nan, i not in answers.unjudged
        elif copies == "unpaid" and is_copy(program, answers.prompt):
            credit, fault = math.nan, False
        else:
            credit = earned.get(program.digest, math.nan)
            fault = math.isnan(credit) and failed(program)
        credits.append(credit)
        faults.append(fault)
    group = Group(answers.prompt, answers.completions, np.array(credits), np.array(faults, bool))
    if pairs is None:
        return group
    none = np.full(max(map(len, pairs.values()), default=1), math.nan)
    paid = zip(answers.programs, credits, strict=True)
    by_pair = [pairs[p.digest] if p is not None and math.isfinite(c) else none for p, c in paid]
    return replace(group, by_pair=np.array(by_pair))


def _of_mends(contexts: Sequence[tuple[Answers, Earned, Failing]]) -> list[Group]:
    """The groups of further answers, of each context that has at least two."""
    groups = []
    for answers, earned, failed in contexts:
        attempts = [attempt for mend in answers.mends for attempt in mend.attempts]
        if len(attempts) < 2:
            continue
        credits, faults = [], []
        for attempt in attempts:
            credit, fault = math.nan, attempt.status not in _NO_FAULT
            if not attempt.status and attempt.program is not None:
                credit = earned.get(attempt.program.digest, math.nan)
                fault = math.isnan(credit) and failed(attempt.program)
            credits.append(credit)
            faults.append(fault)
        group = Group(
            answers.prompt,
            tuple(attempt.completion for attempt in attempts),
            np.array(credits),
            np.array(faults, bool),
            tuple(attempt.prompt for attempt in attempts),
        )
        groups.append(group)
    return groups


def _leader_failed(row: Sequence[Played]) -> bool:
    """A destroy has failed if every pair did, and at least one by the destroy's own fault.

    A failure that names no role (a process killed at its CPU limit) counts against neither.
    """
    if any(played.status in (Status.OK.label, Status.HOST_FAULT.label) for played in row):
        return False
    return any(played.role == "destroy" for played in row)
