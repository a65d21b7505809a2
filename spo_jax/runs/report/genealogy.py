"""The page of descent: who was written from whom, in what form, and what became of it."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spo_jax.program import ROLES, Role
from spo_jax.program.changes import Changes
from spo_jax.runs.report.figures import COLOURS, Scale
from spo_jax.runs.report.text import number
from spo_jax.runs.run import ProgramRecord, Run

_DOWN, _EDGE = 22, 26  # pixels between programs, and around
_ACROSS, _WIDTH = (88, 190), 1080  # between rounds, at least and at most, and of a picture
_MOST = 40  # programs of a round that are drawn, and of the best pair's line
_MOST_DRAWN = 2000  # programs of a picture
_MEMBERS = 100  # programs of a population that are shown
_PARENTS = 12  # of a program that are drawn or compared


@dataclass(frozen=True)
class Node:
    """A program in the picture. bin: of what it is worth. alive: in the last population."""

    name: str
    x: int
    y: int
    bin: int
    alive: bool
    best: bool
    about: str


@dataclass(frozen=True)
class Edge:
    """From a parent to its child. form: that of the child."""

    path: str
    form: str
    colour: str
    about: str


@dataclass(frozen=True)
class Ancestor:
    """A program of the best pair's line. parents: names, in words. changes: lines of the
    differences to each parent.
    """

    program: ProgramRecord
    parents: str
    worth: str
    changes: tuple[tuple[str, tuple[str, ...]], ...]


def page(run: Run) -> dict[str, Any]:
    """The pictures by role, the legend of forms, the last populations and the best pair's line."""
    if not run.programs:
        return {"missing": "There is no descent, because no program has passed the gate."}
    worth = {each.name: each.credit for each in run.programs}
    by_credit = any(map(math.isfinite, worth.values()))
    if not by_credit:  # a method without credits
        worth |= _best_utility(run)
    best = set(run.names(run.best.pair)) if run.best else set()
    forms = sorted({each.form for each in run.programs})
    colour = {form: COLOURS[k % len(COLOURS)] for k, form in enumerate(forms)}
    titles = [(role, run.game.side(role).plural.capitalize()) for role in ROLES]
    trees = [(title, _tree(run, role, best, colour, worth)) for role, title in titles]
    drawn = {edge.form for _, tree in trees for edge in tree["edges"]}
    members = [
        (
            title,
            [
                (member, run[member.name], number(member.score), number(worth[member.name]))
                for member in list(run.populations[run.rounds, role])[:_MEMBERS]
            ],
            max(0, len(run.populations[run.rounds, role]) - _MEMBERS),
        )
        for role, title in titles
        if run.rounds
    ]
    ancestors, older = line(run, worth)
    return {
        "trees": trees,
        "forms": {form: each for form, each in colour.items() if form in drawn},
        "members": members,
        "line": ancestors,
        "older": older,
        "worth": "credit" if by_credit else "best J",
    }


def _best_utility(run: Run) -> dict[str, float]:
    """The highest J of each program's pairs."""
    found: dict[str, float] = {}
    for pair in run.pairs:
        for name in (pair.destroy, pair.repair):
            if pair.utility > found.get(name, -math.inf):
                found[name] = pair.utility
    return found


def _tree(
    run: Run, role: Role, best: set[str], colours: dict[str, str], worth: dict[str, float]
) -> dict[str, Any]:
    """The survivors of all rounds with their ancestors, columns of rounds, the best on top."""
    ever = {m.name for k in range(1, run.rounds + 1) for m in run.populations[k, role]}
    alive = {m.name for m in run.populations[run.rounds, role]} if run.rounds else set()
    wanted = {each.name: each for each in run.programs if each.role == role and each.name in ever}
    wanted |= {n: run[n] for n in best if n and run[n].role == role}
    waiting = list(wanted.values())
    while waiting:
        for name in waiting.pop().parents:
            if name not in wanted and (found := _find(run, name)) is not None:
                wanted[name] = found
                waiting.append(found)
    columns: dict[int, list[ProgramRecord]] = {}
    for each in sorted(wanted.values(), key=lambda e: (e.round, _falling(worth[e.name]), e.name)):
        columns.setdefault(each.round, []).append(each)
    drawn, room = {}, _MOST_DRAWN
    for k in sorted(columns, reverse=True):  # the last rounds first
        drawn[k] = columns[k][: min(_MOST, room)]
        room -= len(drawn[k])
    drawn = {k: drawn[k] for k in sorted(drawn) if drawn[k]}
    left_out = len(wanted) - sum(map(len, drawn.values()))
    scale = Scale(np.array([worth[each.name] for column in drawn.values() for each in column]))
    first, wide = (min(drawn), max(drawn) - min(drawn)) if drawn else (0, 0)
    across = min(max(_WIDTH // max(wide, 1), _ACROSS[0]), _ACROSS[1])
    place = {
        each.name: (_EDGE + across * (k - first) + 10, _EDGE + 16 + _DOWN * i)
        for k, column in drawn.items()
        for i, each in enumerate(column)
    }
    nodes, edges = [], []
    for column in drawn.values():
        for each in column:
            x, y = place[each.name]
            for parent in each.parents[:_PARENTS]:
                if parent in place:
                    edges.append(_edge(place[parent], (x, y), parent, each, colours))
            about = f"{each.name}, round {each.round}, {each.form}, {number(worth[each.name])}"
            lives = each.name in alive
            nodes.append(
                Node(each.name, x, y, scale.bin(worth[each.name]), lives, each.name in best, about)
            )
    tallest = max((len(column) for column in drawn.values()), default=0)
    heads = [(k, _EDGE + across * (k - first) + 10) for k in drawn]
    return {
        "nodes": nodes,
        "edges": edges,
        "heads": heads,
        "width": 2 * _EDGE + across * wide + 60,
        "height": 2 * _EDGE + _DOWN * tallest,
        "left_out": left_out,
        "ends": (number(scale.low), number(scale.high)),
    }


def _edge(
    start: tuple[int, int],
    end: tuple[int, int],
    parent: str,
    child: ProgramRecord,
    colours: dict[str, str],
) -> Edge:
    (x0, y0), (x1, y1) = start, end
    bend = max((x1 - x0) // 2, 18)
    path = f"M{x0},{y0}C{x0 + bend},{y0} {x1 - bend},{y1} {x1},{y1}"
    about = f"{child.name} from {parent}: {child.form}"
    return Edge(path, child.form, colours[child.form], about)


def line(run: Run, worth: dict[str, float]) -> tuple[list[Ancestor], int]:
    """The best pair and its ancestors, the youngest first, with what changed; how many older ones
    are left out.
    """
    if run.best is None:
        return [], 0
    waiting = deque(name for name in run.names(run.best.pair) if name)
    seen: dict[str, ProgramRecord] = {}
    while waiting:
        found = _find(run, waiting.popleft())
        if found is not None and found.name not in seen:
            seen[found.name] = found
            waiting += found.parents
    ordered = sorted(seen.values(), key=lambda e: (-e.round, e.role, e.name))
    changes = Changes()
    ancestors = [
        Ancestor(
            each,
            number(worth[each.name]),
            few(each.parents),
            tuple(
                (parent, changes.between(found.source, each.source))
                for parent in each.parents[:_PARENTS]
                if (found := _find(run, parent)) is not None
            ),
        )
        for each in ordered[:_MOST]
    ]
    return ancestors, len(ordered) - len(ancestors)


def few(names: Sequence[str]) -> str:
    """Names in words; of many the first."""
    more = f" and {len(names) - _PARENTS:,} more" if len(names) > _PARENTS else ""
    return ", ".join(names[:_PARENTS]) + more


def _find(run: Run, name: str) -> ProgramRecord | None:
    """A parent may be a digest of a program that the run does not have."""
    return run.index.get(name)


def _falling(value: float) -> float:
    return math.inf if math.isnan(value) else -value
