"""Pairs that a run starts from: round 1 has them besides what it samples.

Each is a leader with its response, evaluated on the training instances before the round samples
anything. Those that are valid make up P_D^(1) and P_R^(1), with their J as scores (the C_D of a
leader with one response is that response's J), and so are parents in round 1. They are also rows of
the round's payoff: their credits come from the same call as those of the sampled programs, their
destroys compete for P_D^(2) by C_D, their repairs for P_R^(2) by C_R^pop. No update learns from
them, since nobody sampled them.
"""

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from spo_jax.envs.run.evaluator import Evaluator
from spo_jax.envs.run.states import HIDDEN_STATE, STAGNATION
from spo_jax.errors import InputError
from spo_jax.program import (
    DESTROY_REPAIR,
    ROLES,
    Game,
    Pair,
    Program,
    entry_function,
    parse_tree,
)
from spo_jax.search.parts import Parts
from spo_jax.search.payoffs import PlayedPairs, Table
from spo_jax.search.population import Member, Population

START = "start"  # the form of their programs, the kind of their evaluation, and its stage


@dataclass(frozen=True)
class StartPair:
    """A pair that a run starts from. name: how it was asked for. state: what it was shown."""

    name: str
    pair: Pair
    state: str = STAGNATION

    @classmethod
    def of(cls, name: str, pair: Pair, state: str = STAGNATION) -> "StartPair":
        """With programs of the form START, without the parents that they had elsewhere."""
        destroy = replace(pair.destroy, form=START, parents=(), condition="")
        condition = destroy.strategy_digest
        repair = replace(pair.repair, form=START, parents=(), condition=condition)
        return cls(name, Pair(destroy, repair), state)

    @property
    def programs(self) -> tuple[Program, Program]:
        return (self.pair.destroy, self.pair.repair)


@dataclass(frozen=True)
class Opening:
    """The valid start pairs: rows of the payoff, one for each destroy, and the populations."""

    destroys: tuple[Program, ...] = ()
    responses: tuple[tuple[Program, ...], ...] = ()
    leaders: Population = ()
    followers: Population = ()

    def without(self, destroys: Sequence[Program]) -> tuple[Program, ...]:
        """Those of some destroys that are none of these."""
        own = {destroy.digest for destroy in self.destroys}
        return tuple(destroy for destroy in destroys if destroy.digest not in own)


def opening(parts: Parts, k: int, start: Sequence[StartPair], table: Table) -> Opening:
    """Evaluate the start pairs in round k, and say what each is worth."""
    if not start:
        return Opening()
    look = parts.observer
    table.play_stage(k, [each.pair for each in start], START)
    for each in start:
        verdict = table.verdict(*each.programs)
        if math.isnan(verdict.utility):
            look.remark(f"Start pair {each.name}: {verdict.status}, {verdict.reason}; left out")
        else:
            look.remark(f"Start pair {each.name}: J {verdict.utility:.4f}")
    return opened(start, k, table)


def opened(start: Sequence[StartPair], k: int, table: PlayedPairs) -> Opening:
    """What round k opens with: those of the start pairs that have a J."""
    rows: dict[str, tuple[Program, list[Program]]] = {}
    leaders: dict[str, Member] = {}
    followers = []
    for each in start:
        destroy, repair = each.programs
        utility = table.utility(destroy, repair)
        if math.isnan(utility):
            continue
        row = rows.setdefault(destroy.digest, (destroy, []))
        row[1].append(replace(repair, condition=row[0].strategy_digest))
        followers.append(Member(row[1][-1], utility, k))
        known = leaders.get(destroy.digest)
        if known is None or utility > known.score:
            leaders[destroy.digest] = Member(row[0], utility, k)
    return Opening(
        tuple(destroy for destroy, _ in rows.values()),
        tuple(tuple(repairs) for _, repairs in rows.values()),
        tuple(leaders.values()),
        tuple(followers),
    )


def require_runnable(
    start: Sequence[StartPair], evaluator: Evaluator, state: str, game: Game = DESTROY_REPAIR
) -> None:
    """Raises InputError for a start pair that the run's workers would not run.

    state: what programs are shown. game: of the problem's programs.
    """
    programs = [(each, program) for each in start for program in each.programs]
    verdicts = evaluator.check([program for _, program in programs])
    for (each, program), refusal in zip(programs, verdicts, strict=True):
        noun = game.named(program.role)
        if refusal is not None:
            raise InputError(
                f"start pair {each.name}: this run cannot run its {noun} "
                f"({refusal.status.label}: {refusal.reason})"
            )
        if state != each.state and reads_state(program, game.side(program.role).function):
            read = "the steps since the last improvement"
            if each.state != STAGNATION:
                read = f"the state {each.state}"
            option = "--no-state" if state == HIDDEN_STATE else f"--state {state}"
            raise InputError(
                f"start pair {each.name}: its {noun} reads {read}, which this run does not "
                f"show ({option})"
            )


def reads_state(program: Program, entry: str = "") -> bool:
    """Whether a lawful program names its last argument but one, the steps, in its body.

    entry: the name of its function, where it is not the role's.
    """
    function = entry_function(parse_tree(program.source), entry or program.role)
    steps = function.args.args[-2].arg
    nodes = (node for statement in function.body for node in ast.walk(statement))
    return any(isinstance(node, ast.Name) and node.id == steps for node in nodes)


def record(start: Sequence[StartPair]) -> list[dict[str, str]]:
    """Where start pairs came from and what they are, for the manifest."""
    return [
        {"from": each.name}
        | {role: program.digest for role, program in zip(ROLES, each.programs, strict=True)}
        for each in start
    ]
