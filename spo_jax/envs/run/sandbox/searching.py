"""A search in a confined child: it takes an order, does a leg, reports, and waits for the next.

Orders come on the descriptor of reports, which is a socket here and the only one that is left. Like
a task's process it cannot open, fork or signal anything; all that it may do more is to read that
socket.
"""

import gc
import math
import os
import pickle
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from spo_jax.envs.kits import Kit
from spo_jax.envs.problem import Problem, Rules
from spo_jax.envs.run.adaptive import Operator, Player
from spo_jax.envs.run.lns import Failure
from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.run.sandbox import confine
from spo_jax.envs.run.sandbox.acts import (
    EXIT_MEMORY,
    Loaded,
    arm,
    define,
    padded_code,
    read_instance,
    report,
)
from spo_jax.envs.run.sandbox.confine import JOB_FD, RESULT_FD
from spo_jax.envs.run.sandbox.jobs import (
    JUDGED,
    LEG,
    WHOLE_JOB,
    Order,
    SearchJob,
    read_exactly,
    read_frame,
)
from spo_jax.envs.run.sandbox.namespace import make_rng
from spo_jax.envs.run.search import CLOCKS, Search
from spo_jax.errors import Rejection
from spo_jax.program import Role

if TYPE_CHECKING:
    from spo_jax.envs.run.sandbox.child import Child

ENDLESS = 1 << 30  # seconds of CPU time: each leg has its own limit
PAIR: tuple[Role, Role] = ("destroy", "repair")
Programs = Sequence[tuple[Operator, Loaded]]  # those of a search, and what they were loaded from


def run_search(child: "Child", job: SearchJob, matrix: np.ndarray | None) -> None:
    """The whole search of a child that is confined so far as to take a job.

    matrix: the distances of its instance [N * N], where they are not on the board.
    """
    arm(job.gate_seconds)
    loaded: list[dict[Role, Loaded]] = []
    for destroy, repair, _ in job.pairs:
        loaded.append({})
        sources: tuple[tuple[Role, str], ...] = (("destroy", destroy), ("repair", repair))
        for role, source in sources:
            try:
                loaded[-1][role] = child.load(role, source)
            except Rejection as error:
                report(WHOLE_JOB, Status.REJECTED, error.reason, role)
                return
    arm(0.0)
    report(JUDGED, Status.OK)
    confine.free_address_space()  # an instance may need more than a program's limit
    instance = read_instance(pickle.loads(read_frame(JOB_FD)[1]))
    if matrix is not None:
        n = math.isqrt(len(matrix))
        instance = replace(instance, dist=matrix.reshape(n, n))
    rng = make_rng(job.rng_seed)
    operators = [
        [Operator(never, roles[role].layout) for role in PAIR] for roles in loaded
    ]  # of each pair
    players: list[Player] = []
    kits = [
        (operator, roles[role])
        for own, roles in zip(operators, loaded, strict=True)
        for operator, role in zip(own, PAIR, strict=True)
    ]
    prepare, mend = preparing(child.kit, kits), mending(kits, rng)
    luck = random.Random(job.luck_seed)
    search = Search(
        child.problem, instance, players, job.start, job.terms, luck, rng, prepare, mend
    )
    search.look()  # before the programs' memory counts
    confine.confine_task(job.memory, ENDLESS, child.filters.search)
    gc.collect()
    gc.freeze()
    try:
        arm(job.gate_seconds)
        for own, roles, (_, _, shown) in zip(operators, loaded, job.pairs, strict=True):
            for operator, role in zip(own, PAIR, strict=True):
                operator.function = define(roles[role], role, rng)
            players.append(Player(own[0], own[1], shown))
        arm(0.0)
    except Failure as failure:
        arm(0.0)
        report(WHOLE_JOB, failure.status, str(failure), failure.role)
        return
    try:
        _serve(search, child.problem, job)
    except MemoryError:  # the programs left too little for our own code
        os._exit(EXIT_MEMORY)


def never(*arguments: Any) -> NoReturn:
    """The function of an operator that is not defined."""
    raise AssertionError("the program is not defined")


def preparing(kit: Kit | None, programs: Programs) -> Callable[[Rules], None]:
    """What lets the kit convert an instance, in each layout in which programs use it.

    In place of the one before: a search sees one at a time.
    """
    prepared: list[tuple[Any, ...]] = []

    def prepare(rules: Rules) -> None:
        if kit is None:
            return
        while prepared:
            kit.release(*prepared.pop())
        for layout in sorted({operator.layout for operator, known in programs if known.kit}):
            prepared.append(rules.arguments(layout))
            kit.prepare(*prepared[-1])

    return prepare


def mending(programs: Programs, rng: Any) -> Callable[[Player, Role, BaseException], bool]:
    """What mends a program that fails with the tuples which the gate chose: it gets the array."""

    def mend(player: Player, role: Role, error: BaseException) -> bool:
        failed = player.destroy if role == "destroy" else player.repair
        if failed.layout != "rows" or not isinstance(error, TypeError | AttributeError):
            return False
        failed.layout = "array"
        [known] = [loaded for operator, loaded in programs if operator is failed]
        failed.function = define(known, role, rng)
        return True

    return mend


def _serve(search: Search, problem: Problem, job: SearchJob) -> None:
    """One leg for each order, until there are no more or a program fails."""
    clock = CLOCKS[job.terms.clock]
    base = clock() if job.terms.clock == "cpu" else 0.0
    index = 0
    while True:
        try:
            order = Order.unpacked(read_exactly(RESULT_FD, Order.size(job.code_length)))
        except EOFError:
            return
        if order.code:
            search.adopt(problem.decode(search.instance, order.code))
        failure = None
        arm(order.cpu_seconds)
        began = time.process_time()
        try:
            search.leg(
                order.steps,
                order.until + base,
                lambda steps, now, order=order: order.progress(steps, now - base),  # type: ignore[misc]
            )
        except Failure as found:
            failure = found
        seconds = time.process_time() - began
        arm(0.0)  # no kill in the middle of a report
        leg = LEG.pack(search.steps, search.idle, clock() - base, failure is not None)
        code = padded_code(search.rules, search.best, job.code_length)
        report(index, Status.OK, seconds=seconds, payload=leg + code)
        if failure is not None:
            role = None if failure.status == Status.HOST_FAULT else failure.role
            report(index + 1, failure.status, str(failure), role)
            return
        index += 1
