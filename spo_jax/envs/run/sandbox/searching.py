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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Protocol

import numpy as np

from spo_jax.envs.kits import Kit
from spo_jax.envs.problem import Instance, Problem, Rules, Solution
from spo_jax.envs.run.adaptive import Portfolio
from spo_jax.envs.run.lns import Failure, Operator, OperatorPair
from spo_jax.envs.run.own import OwnError
from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.run.sandbox.acts import (
    Loaded,
    arm,
    define,
    padded_code,
    read_instance,
    report,
)
from spo_jax.envs.run.sandbox.gate.namespace import make_rng
from spo_jax.envs.run.sandbox.jobs import (
    EXIT_MEMORY,
    LEG,
    WHOLE_JOB,
    Order,
    SearchJob,
    read_exactly,
    read_frame,
)
from spo_jax.envs.run.sandbox.process import confine
from spo_jax.envs.run.sandbox.process.confine import JOB_FD, RESULT_FD
from spo_jax.envs.run.search import CLOCKS, Search
from spo_jax.program import Role

ENDLESS = 1 << 30  # seconds of CPU time: each leg has its own limit
PAIR: tuple[Role, Role] = ("destroy", "repair")
Programs = Sequence[tuple[Operator, Loaded]]  # those of a search, and what they were loaded from


@dataclass(frozen=True)
class Filters:
    """The seccomp filters of a child, of a task's process and of a search; None if the kernel has
    none.
    """

    job: bytes | None
    task: bytes | None
    search: bytes | None


class Confined(Protocol):
    """The process that a search runs in: `spo_jax.envs.run.sandbox.child.Child`."""

    @property
    def problem(self) -> Problem: ...

    @property
    def kit(self) -> Kit | None: ...

    @property
    def filters(self) -> Filters: ...

    def gate(
        self, seconds: float, programs: Iterable[tuple[Role, str]], counted: bool = False
    ) -> list[Loaded] | None:
        """Check and compile the programs of a job, and report; None where one is refused."""
        ...


def run_search(child: Confined, job: SearchJob, matrix: np.ndarray | None) -> None:
    """The whole search of a child that is confined so far as to take a job.

    matrix: the distances of its instance [N * N], where they are not in the store.
    """
    sources = [each for *pair, _ in job.pairs for each in zip(PAIR, pair, strict=True)]
    loaded = child.gate(job.gate_seconds, sources)
    if loaded is None:
        return
    instance = read_instance(pickle.loads(read_frame(JOB_FD)[1]))
    if matrix is not None:
        n = math.isqrt(len(matrix))
        instance = replace(instance, dist=matrix.reshape(n, n))
    rng = make_rng(job.rng_seed)
    operators = [Operator(never, known.layout) for known in loaded]
    programs = list(zip(operators, loaded, strict=True))
    pairs = [
        OperatorPair(destroy, repair, shown)
        for destroy, repair, (_, _, shown) in zip(
            operators[::2], operators[1::2], job.pairs, strict=True
        )
    ]
    try:
        search = Search(
            child.problem, instance, Portfolio(pairs), job.start, job.terms,
            random.Random(job.luck_seed), rng, preparing(child.kit, programs),
            mending(programs, rng), observed=any(pair.shown.observes for pair in pairs),
        )  # fmt: skip
    except OwnError as error:
        report(WHOLE_JOB, Status.HOST_FAULT, str(error), None)
        return
    search.look()  # before the programs' memory counts
    confine.confine_task(job.memory, ENDLESS, child.filters.search)
    gc.collect()
    gc.freeze()
    try:
        arm(job.gate_seconds)
        for (operator, known), (role, _) in zip(programs, sources, strict=True):
            operator.function = define(known, role, rng)
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
            prepared.append(rules.prepared(layout))
            kit.prepare(*prepared[-1])

    return prepare


def mending(programs: Programs, rng: Any) -> Callable[[OperatorPair, Role, BaseException], bool]:
    """What mends a program that fails with the tuples which the gate chose: it gets the array."""

    def mend(pair: OperatorPair, role: Role, error: BaseException) -> bool:
        failed = pair.destroy if role == "destroy" else pair.repair
        if failed.layout != "rows" or not isinstance(error, TypeError | AttributeError):
            return False
        failed.layout = "array"
        [known] = [loaded for operator, loaded in programs if operator is failed]
        failed.function = define(known, role, rng)
        return True

    return mend


def _divided(
    problem: Problem, instance: Instance, order: Order
) -> tuple[Solution, Sequence[int] | None]:
    """The solution that a search goes on from, and its share of it, as the parent divides it."""
    solution = problem.decode(instance, order.code)
    if order.asked < 2:
        return solution, None
    shares = problem.shares(instance, solution, order.asked, random.Random(order.division))
    return solution, shares[order.share]


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
            search.adopt(*_divided(problem, search.instance, order))
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
