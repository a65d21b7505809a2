"""Which programs of runs enter a data set of payoffs, and the card that says what is in it."""

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np

from common.tables import markdown
from spo_jax.envs.files.textfiles import load_json
from spo_jax.envs.run.evaluator import Evaluator
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError, Rejection
from spo_jax.jsontext import parse
from spo_jax.program import ROLES, Program, Role, normalise, parse_response
from spo_jax.runs.run import Run
from spo_jax.search.lab.measured.dataset import ARRAYS, VERSION, DataProgram, PayoffData, load_data
from spo_jax.search.lab.measured.replay import reliability
from spo_jax.search.lab.measured.tables import Table
from spo_jax.search.rounds import RESPONSE
from spo_jax.seeding import numpy_rng

Group = list[DataProgram]  # candidates of one origin, the first ones to be taken first


@dataclass(frozen=True)
class Chosen:
    """answer: by destroy the place of the repair that was written for it, -1 for none."""

    destroys: tuple[DataProgram, ...]
    repairs: tuple[DataProgram, ...]
    answer: tuple[int, ...]


@dataclass(frozen=True)
class Pool:
    """Programs of a table or a file, by role. answers: digests of destroys with those of the
    repairs that were written for them.
    """

    destroys: Group
    repairs: Group
    answers: Sequence[tuple[str, str]] = ()
    problem: str = ""


def of_runs(
    runs: Sequence[Run], pools: Sequence[Pool], count: int, failing: int, seed: int
) -> Chosen:
    """At most `count` programs of each role, as many of each origin as there are.

    An origin is the first or the last round of a run, or a pool. failing: programs of an origin
    that come first because they failed in that half of the run. Raises InputError for a run without
    a round, and fewer than three programs of a role.
    """
    origins = [(run, number) for run in runs for number in _ends(run)]
    first = [_ranked(run, number, "destroy", failing, seed, set()) for run, number in origins]
    destroys = _taken([*first, *(pool.destroys for pool in pools)], count)
    chosen = {each.program.digest for each in destroys}
    second = [
        _ranked(run, number, "repair", failing, seed, _responses(run, chosen))
        for run, number in origins
    ]
    repairs = _taken([*second, *(pool.repairs for pool in pools)], count)
    if min(len(destroys), len(repairs)) < 3:
        raise InputError(
            f"there are {len(destroys)} destroys and {len(repairs)} repairs: a table takes three"
        )
    place = {each.program.digest: j for j, each in enumerate(repairs)}
    own: dict[str, int] = {}
    written = [(run[d].digest, run[r].digest) for run in runs for d, r in _written(run)]
    for destroy, repair in (*written, *(pair for pool in pools for pair in pool.answers)):
        if repair in place:
            own.setdefault(destroy, place[repair])
    return Chosen(destroys, repairs, tuple(own.get(each.program.digest, -1) for each in destroys))


def _ends(run: Run) -> list[int]:
    if not run.rounds:
        raise InputError(f"{run.path} has no round yet")
    return sorted({1, run.rounds})


def _written(run: Run) -> list[tuple[str, str]]:
    """Names of destroys with the repairs that were written for them."""
    return [(each.destroy, each.repair) for each in run.pairs if each.kind == RESPONSE]


def _responses(run: Run, destroys: set[str]) -> set[str]:
    """Names of the first repair that was written for each of these destroys, by digest."""
    found: dict[str, str] = {}
    for destroy, repair in _written(run):
        if run[destroy].digest in destroys:
            found.setdefault(destroy, repair)
    return set(found.values())


def _ranked(run: Run, number: int, role: Role, failing: int, seed: int, wanted: set[str]) -> Group:
    """A round's new programs: `failing` of those that failed in its half of the run, then those
    that are wanted, then others, all in an order by chance.
    """
    rng = numpy_rng(seed, "payoff table", run.path.name, number, role)

    def drawn(members: Sequence[DataProgram]) -> Group:
        return [members[i] for i in rng.permutation(len(members))]

    origin = f"run {run.path.name}"
    half = [k for k in range(1, run.rounds + 1)
            if number == 1 == run.rounds or (2 * k <= run.rounds) == (number == 1)]  # fmt: skip
    ran, refused = _failures(run, role, half)
    bad = [*drawn([DataProgram(each, origin, k) for each, k in ran]),
           *drawn([DataProgram(each, origin, k) for each, k in refused])]  # fmt: skip
    own = [each for each in run.programs if (each.role, each.round) == (role, number)]
    first, last = (
        drawn([DataProgram(each.program, origin, number) for each in own
               if (each.name in wanted) == asked])
        for asked in (True, False)
    )  # fmt: skip
    return [*bad[:failing], *first, *last]


Written = list[tuple[Program, int]]  # with the round


def _failures(run: Run, role: Role, rounds: Sequence[int]) -> tuple[Written, Written]:
    """Programs of these rounds with which a pair failed, and those that the gates refused."""
    blamed = {p.destroy if role == "destroy" else p.repair for p in run.pairs if p.failed == role}
    ran = [(each.program, each.round) for each in run.programs
           if each.name in blamed and each.round in rounds]  # fmt: skip
    refused = []
    for each in run.failures:
        if (each.subject, each.status) == (role, Status.REJECTED.label) and each.round in rounds:
            with contextlib.suppress(Rejection):
                refused.append((parse_response(role, each.text), each.round))
    return ran, refused


def of_table(path: Path) -> Pool:
    """The programs of a data set, or of a table of before with its JSON. Raises InputError."""
    json_path = path.with_suffix(".json")
    if not json_path.exists():
        data = load_data(path)
        sides = [list(data.destroys), list(data.repairs)]
        own = [(d, int(r)) for d, r in enumerate(data.answer) if r >= 0]
        problem = str(data.made["problem"])
    else:
        try:
            record = load_json(json_path)
            problem = str(record["settings"]["problem"])
            sides = [
                [DataProgram(Program(role, each[role]["source"], each[role]["strategy"]),
                        f"table {path.stem}") for each in record["pairs"]]
                for role in ROLES
            ]  # fmt: skip
        except (KeyError, TypeError, AttributeError):
            raise InputError(f"--table {path}: {json_path} has no programs") from None
        own = [(k, k) for k in range(len(sides[0]))]
    destroys, repairs = sides
    answers = [(destroys[d].program.digest, repairs[r].program.digest) for d, r in own]
    return Pool(destroys, repairs, answers, problem)


def answered(path: Path, evaluator: Evaluator) -> Pool:
    """The programs in a file of answers that the gates let pass. Raises InputError."""
    found = []
    try:
        for line in path.read_text("utf-8").splitlines():
            record = parse(line)
            role, text = record["role"], record["answer"]
            if role not in ROLES or not isinstance(text, str):
                raise ValueError("role is destroy or repair, and answer a text")
            try:
                found.append(
                    DataProgram(
                        parse_response(role, text), f"answers of {record.get('model', path.name)}"
                    )
                )
            except Rejection:
                continue
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"--answers {path} is no file of answers ({error})") from None
    refused = evaluator.check([each.program for each in found])
    passed = [each for each, why in zip(found, refused, strict=True) if why is None]
    destroys, repairs = ([each for each in passed if each.program.role == role] for role in ROLES)
    return Pool(destroys, repairs)


def _taken(groups: Iterable[Group], count: int) -> tuple[DataProgram, ...]:
    """One of each group in turn, each program once."""
    found: dict[str, DataProgram] = {}
    for row in zip_longest(*groups):
        for each in row:
            if each is not None and len(found) < count:
                found.setdefault(normalise(each.program.source), each)
    return tuple(found.values())


COLUMNS = {
    "scores": "float32, J = (start - cost) / start, where cost is the best after each of the steps "
    "`at`; NaN where the evaluation failed",
    "seconds": "float32, CPU seconds of the evaluation, NaN where none were reported",
    "status": "int8, an index of `statuses`; 0 is ok",
    "reason": "int16, an index of `reasons`; 0 is none",
    "start": "float64, cost of the first solution, the same for all pairs",
    "at": "int, steps",
    "answer": "int, the repair that was written for each destroy, -1 where it is not there",
    "test": "bool, instances of the test evaluations; the others are for training",
}


CARD = """# {name}

Payoffs of real programs of large neighbourhood search, {problem}: {destroys} destroys with
{repairs} repairs, each with each, failing ones included. Version {version} of the format.

- Evaluations of a pair: {trains} instances for training and {tests} for test, {seeds} of each.
- Pairs of which an evaluation failed: {failed}.
- Mean J without programs that fail ({kept}): {mean:.4f}, standard deviation {deviation:.4f}.
- Variance of J there: {parts}.
- Reliability of the order of destroys by their best response, on instances that a round does not
  see: {reliable:.2f}.
- Destroys with the repair that was written for them: {answered}.
- CPU seconds of all evaluations: {cpu:,.0f}.

## How it was made

```
{command}
```

With {package}. Scores repeat on any machine with these programs and settings; CPU seconds, and what
ran into a limit of time, do not.

{settings}

## Where the programs are from

{origins}

## How evaluations ended

{ended}

The most frequent reasons, without words of a program's making:

{reasons}

## Columns

Axes: D destroy, R repair, I instance, S seed, C step.

{columns}

`about` is a text in JSON: `version`, `made` (the command, the package, what decides an evaluation),
`destroys` and `repairs` (source, strategy, origin, round, and how each was written), `instances`
(name, digest, size), `statuses` and `reasons`. `numpy.load` reads the file without pickle;
`spo_jax.search.lab.measured.dataset.load_data` checks it.

## Use and licence

For comparisons of credit schemes, selection and sampling without running a program. The programs
were never run outside a sandbox: do not run them outside one. J is of small instances after few
steps. Licence: Apache-2.0, as the project's.
"""


def card(name: str, data: PayoffData, table: Table) -> str:
    """What is in a data set, how it was made and what it may be used for, as Markdown."""
    failed, whole, shares = data.failed, table.whole, table.shares
    seeds, tests = data.scores.shape[3], int(data.test.sum())
    parts = [(part, getattr(shares, part) / (shares.total or 1))
             for part in ("leader", "follower", "interaction", "noise")]  # fmt: skip
    ended = np.bincount(data.status.ravel(), minlength=len(Status))
    often = np.bincount(data.reason.ravel(), minlength=len(data.reasons))
    reasons = [[data.reasons[k], f"{often[k]:,}"] for k in np.argsort(-often) if k and often[k]]
    settings = [[f"`{key}`", str(value)] for key, value in data.made.items()
                if key not in ("command", "package", "problem") and value != ""]  # fmt: skip
    return CARD.format(
        name=name, version=VERSION, problem=data.made["problem"].upper(),
        command=data.made["command"], package=data.made["package"],
        destroys=len(data.destroys), repairs=len(data.repairs), trains=len(data.test) - tests,
        tests=tests, seeds="one seed" if seeds == 1 else f"{seeds} seeds",
        failed=f"{failed.sum():,} of {failed.size:,} ({failed.mean():.1%})",
        kept=" x ".join(map(str, whole.utility.shape)), mean=whole.utility.mean(),
        deviation=whole.utility.std(), parts=", ".join(f"{part} {x:.0%}" for part, x in parts),
        reliable=reliability(table), answered=(data.answer >= 0).sum(),
        cpu=np.nansum(data.seconds), settings=markdown(["setting", "value"], settings),
        origins=markdown(["programs", "round", "how many", "pairs that failed", "fail with all"],
                         _origins(data)),
        ended=markdown(["status", "evaluations", "share"],
                       [[each.label, f"{ended[each]:,}", f"{ended[each] / ended.sum():.2%}"]
                        for each in Status if ended[each]]),
        reasons=markdown(["reason", "evaluations"], reasons[:12]) if reasons else "None failed.",
        columns=markdown(["array", "axes", "what it is"],
                         [[f"`{key}`", ", ".join(axes), COLUMNS[key]]
                          for key, axes in ARRAYS.items()]),
    )  # fmt: skip


def _origins(data: PayoffData) -> list[list[str]]:
    """A row for each role, origin and round."""
    lines = []
    for role, own, axis in (("destroys", data.destroys, 1), ("repairs", data.repairs, 0)):
        share = data.failed.mean(axis=axis)
        where = [(each.origin, each.round) for each in own]
        for origin, number in sorted(set(where)):
            mine = share[[each == (origin, number) for each in where]]
            lines.append([f"{role} of {origin}", str(number or ""), str(mine.size),
                          f"{mine.mean():.1%}", str((mine == 1).sum())])  # fmt: skip
    return lines
