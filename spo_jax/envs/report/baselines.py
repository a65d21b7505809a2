"""`spo baseline`: runs the handcrafted and solver baselines of Appendix C on groups of instances.

A baseline is one function (instance, seed) -> solution. A problem declares its own; any other is
named as "package.module:NAME". It runs outside the sandbox, as it is no generated program, but
its solutions are checked and their costs recomputed like those of programs. The report has the
format of `spo evaluate`.
"""

import importlib
import inspect
import math
import multiprocessing
import os
import pickle
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spo_jax import __version__
from spo_jax.envs.files.reading import AS_STATED, Reading
from spo_jax.envs.files.specs import Spec, parse_specs, reference_settings
from spo_jax.envs.problem import Infeasible, Instance, Problem, Solution
from spo_jax.envs.report.evaluation import Progress, Report, filled
from spo_jax.envs.run.rollouts import Rollouts, Status
from spo_jax.envs.run.sandbox.process.confine import die_with_parent
from spo_jax.errors import InputError, MissingExtra
from spo_jax.registry import imported, require_function
from spo_jax.stopping import held

Method = Callable[..., Solution]  # of (instance, seed), and of steps if it has such a parameter

SEEDS = 3  # rollouts of an instance, where the seed matters and none are asked for


@dataclass(frozen=True)
class Heuristic:
    """A baseline that is ready to run.

    solve: must be picklable to run in several workers, such as a function of a module.
    function: its origin, as "package.module:NAME". seeded: whether the seed matters. symmetric:
    whether it is for distances that are alike both ways alone.
    """

    name: str
    solve: Method
    function: str = ""
    seeded: bool = True
    symmetric: bool = False

    @property
    def takes_steps(self) -> bool:
        """Whether `solve` has a parameter `steps`, which --steps sets."""
        return "steps" in inspect.signature(self.solve).parameters


def get_baseline(name: str, problem: Problem) -> Heuristic:
    """One that `problem` declares, by name, or "package.module:NAME".

    Raises InputError where there is none, MissingExtra where its package is not installed.
    """
    known = list(problem.baselines)
    listed = ", ".join([*known[:-2], " or ".join(known[-2:])])
    declared = problem.baselines.get(name)
    if declared is not None:
        if declared.needs:
            module, extra = declared.needs
            package = module.partition(".")[0]
            try:
                for name_of in (package, module):
                    importlib.import_module(name_of)
            except ImportError:
                raise MissingExtra(package, extra) from None
        solve = imported("baseline", declared.function, listed)
        return Heuristic(name, solve, declared.function, declared.seeded, declared.symmetric)
    if ":" not in name:
        offer = f"there is {listed}" if known else "it declares none"
        raise InputError(
            f"{name!r} is no baseline of {problem.name}: {offer}; "
            "name any other as 'package.module:NAME'"
        )
    solve = imported("baseline", name, listed)
    require_function(f"baseline {name!r}", solve, _like)
    return Heuristic(name, solve, name)


def _like(instance: Instance, seed: int) -> Solution:
    """The signature of a custom baseline."""


def evaluate_baseline(
    baseline: Heuristic,
    problem: Problem,
    specs: Sequence[str],
    *,
    steps: int | None = None,
    seeds: int | None = None,
    workers: int = 1,
    references: str = "solve",
    effort: str = "standard",
    reading: Reading = AS_STATED,
    cache: str | Path | None = None,
    progress: Progress = lambda what, done, total: None,
    save: Callable[[Report], None] = lambda report: None,
) -> Report:
    """Run `baseline` on every instance of every spec with seeds 0, 1, ..., seeds - 1.

    steps: passed on to a baseline that takes steps; its own default unless given. seeds: 3 unless
    given; 1, whatever is given, where the seed changes nothing. The rest is as in
    `spo_jax.envs.report.evaluation.evaluate`. The same for any number of workers.
    """
    if steps is not None and not baseline.takes_steps:
        raise InputError(f"{baseline.name} takes no steps: leave --steps out")
    if min(workers, 1 if steps is None else steps, 1 if seeds is None else seeds) < 1:
        raise InputError("steps, seeds and workers must be at least 1")
    count = (SEEDS if seeds is None else seeds) if baseline.seeded else 1
    plans = parse_specs(specs, problem, references, reading)
    if baseline.symmetric:
        _require_symmetric(baseline, problem, plans)
    settings: dict[str, Any] = {"seeds": list(range(count))}
    settings |= reference_settings(references, effort) | reading.given | problem.sense
    method = baseline.solve
    if steps is not None:
        method = partial(method, steps=steps)
    if baseline.takes_steps:
        settings["steps"] = inspect.signature(method).parameters["steps"].default
    about = {"name": baseline.name, "function": baseline.function}
    report = Report(__version__, problem.name, None, settings, baseline=about)
    run = partial(run_baseline, method, problem, seeds=range(count), workers=workers)
    return filled(report, problem, plans, run, cache=cache, progress=progress, save=save)


def _require_symmetric(baseline: Heuristic, problem: Problem, plans: Sequence[Spec]) -> None:
    """Raises InputError for an instance whose distances depend on the direction."""
    for plan in plans:
        for instance in plan.load(problem):
            if instance.directed:
                others = (name for name, each in problem.baselines.items() if not each.symmetric)
                raise InputError(
                    f"{instance.name}: {baseline.name} is for distances that are alike both ways; "
                    f"use {', '.join(others)}"
                )


def run_baseline(
    method: Method,
    problem: Problem,
    instances: Sequence[Instance],
    progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    seeds: Sequence[int] = (0,),
    workers: int = 1,
) -> Rollouts:
    """The runs as rollouts [1, I, S] of one step, which starts from nothing.

    So the initial cost is NaN and state is -1. workers: processes; the result is the same for any.
    """
    shape = (1, len(instances), len(seeds))
    longest = max(map(problem.code_length, instances))
    found = Rollouts(
        best_cost=np.full((*shape, 2), math.nan),
        state=np.full((*shape, 1), -1, np.int32),
        status=np.zeros(shape, np.int8),
        seconds=np.full(shape, math.nan),
        code=np.full((*shape, longest), -1, np.int32),
        reason=np.full(shape, "", object),
        role=np.full(shape, "", object),
    )
    tasks = [(instance, seed) for instance in instances for seed in seeds]
    for k, run in enumerate(_runs(method, problem, tasks, min(workers, len(tasks)))):
        at = (0, *divmod(k, len(seeds)))
        found.status[at], found.reason[at], found.seconds[at] = run.status, run.reason, run.seconds
        if run.status == Status.OK:
            found.best_cost[at][-1] = run.cost
            found.code[at][: len(run.code)] = run.code
        progress(k + 1, len(tasks))
    return found


class _Run(NamedTuple):
    """One run. seconds: of CPU time. cost: what is minimised. code: as `Rules.encode` gives it."""

    status: Status
    reason: str
    seconds: float
    cost: float = math.nan
    code: tuple[int, ...] = ()


def _runs(
    method: Method, problem: Problem, tasks: Sequence[tuple[Instance, int]], workers: int
) -> Iterator[_Run]:
    """The runs of `tasks`, in their order."""
    if workers <= 1:
        for instance, seed in tasks:
            yield _run(method, problem, instance, seed)
        return
    try:
        pickle.dumps((method, problem))
    except Exception as error:  # whatever the user's objects raise
        raise InputError(f"the baseline cannot be sent to workers, use one: {error}") from None
    # Spawned, not forked: a fork of a process in which JAX has started threads may hang.
    # Pipes, not an executor: its semaphores outlive a process that a signal ends at once.
    spawn = multiprocessing.get_context("spawn")
    started: list[Any] = []
    idle: list[Connection] = []
    try:
        with held():  # a worker that is half started would complain
            for _ in range(workers):
                ours, theirs = spawn.Pipe()
                worker = spawn.Process(target=_work, args=(theirs, method, problem, os.getpid()))
                worker.start()
                started.append(worker)
                theirs.close()  # the worker's copy is the last: its end is seen
                idle.append(ours)
        yield from _in_order(tasks, idle)
    finally:  # whatever ends the command, or who reads the runs
        for worker in started:
            worker.kill()
        for worker in started:
            worker.join()


def _in_order(
    tasks: Sequence[tuple[Instance, int]], workers: Sequence[Connection]
) -> Iterator[_Run]:
    """The runs of `tasks` in their order, whichever worker ends first.

    Raises InputError if a worker dies, and what the problem raised in one.
    """
    waiting = iter(enumerate(tasks))
    running: dict[Connection, int] = {}
    done: dict[int, _Run] = {}

    def give(worker: Connection) -> None:
        if (found := next(waiting, None)) is not None:
            running[worker], task = found
            with _alive():
                worker.send(task)

    for worker in workers:
        give(worker)
    for k in range(len(tasks)):
        while k not in done:
            ready = wait([*running])
            for worker in [each for each in running if each in ready]:
                with _alive():
                    result = worker.recv()
                if isinstance(result, Exception):
                    raise result
                done[running.pop(worker)] = result
                give(worker)
        yield done.pop(k)


@contextmanager
def _alive() -> Iterator[None]:
    """Raises InputError where the other end of a connection is gone."""
    try:
        yield
    except (EOFError, ConnectionError):
        raise InputError("a worker died, perhaps for lack of memory: use fewer workers") from None


def _work(tasks: Connection, method: Method, problem: Problem, parent: int) -> None:
    """A worker: run what `tasks` brings; end with the command, on Ctrl-C without a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    die_with_parent(parent)
    with suppress(EOFError):
        while True:
            task = tasks.recv()
            try:
                tasks.send(_run(method, problem, *task))
            except Exception as error:  # of the problem: `_run` keeps those of the method
                tasks.send(_sendable(error, traceback.format_exc()))


def _sendable(error: Exception, where: str) -> Exception:
    """The error with its traceback as a note; where it cannot be sent, another that tells of it."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # whatever the user's objects raise
        error = RuntimeError(f"{type(error).__name__} in a worker")
    error.add_note(where)
    return error


def _run(method: Method, problem: Problem, instance: Instance, seed: int) -> _Run:
    """One run; an exception of the method becomes a status with its reason, as with programs."""
    rules = problem.rules(instance)
    start = time.process_time()
    try:
        output = method(instance, seed)
    except Exception as error:
        return _Run(*why_failed(error), time.process_time() - start)
    seconds = time.process_time() - start
    try:
        solution = rules.repaired(output)
    except Infeasible as error:
        return _Run(*why_failed(error), seconds)
    cost = problem.minimised(instance, solution)
    return _Run(Status.OK, "", seconds, cost, tuple(rules.encode(solution)))


def why_failed(error: Exception) -> tuple[Status, str]:
    """The status of a run that `error` ended, and a line that names the place of a crash."""
    text = " ".join(str(error).split())
    if isinstance(error, Infeasible):
        return Status.INVALID, text
    last = traceback.extract_tb(error.__traceback__)[-1]
    named = f"{type(error).__name__}: {text}" if text else type(error).__name__
    status = Status.MEMORY if isinstance(error, MemoryError) else Status.CRASH
    return status, f"{named} ({Path(last.filename).name}, line {last.lineno})"
