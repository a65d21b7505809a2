"""Messages between a worker and its children: jobs one way, reports the other.

A job is a file of frames, each a prefix and a pickle of ours: first the job without its tasks, then
one frame per task. Children read it from front to back through one shared file position, so no
child needs their number. A report is fixed-width numbers and ASCII of limited length.
"""

import math
import os
import pickle
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from spo_jax.envs.problem import Solution
from spo_jax.envs.run.acceptance import PAPER
from spo_jax.envs.run.adaptive import Adaptation
from spo_jax.envs.run.observation import Shown
from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.run.search import Terms
from spo_jax.envs.run.states import Value
from spo_jax.program import Role

# A report: index, status, role at fault (an index of ROLES), length of the reason, CPU seconds;
# then the reason, then (if OK) `payload_size` bytes.
HEADER = struct.Struct("<IBBHd")
ROLES: tuple[Role | None, ...] = (None, "destroy", "repair")
MAX_REASON = 390
WHOLE_JOB = 0xFFFFFFFF  # the index of a report that concerns every rollout of the job
JUDGED = 0xFFFFFFFE  # the index of a report that both programs of a RunJob have passed the gate
PID = struct.Struct("<q")  # a child's first message: the process that has taken the job

# Exit codes of a child that its parent reads; `child` and `confine` have more.
EXIT_ISOLATE = 94  # repeat with a process per task
EXIT_MEMORY = 97  # out of memory
EXIT_SIGNAL = 128  # plus the signal that ended a task's process

# What a worker tells its zygote, and sends on the socket of jobs.
CALL = struct.Struct("<q")  # 0: fork a child; else: wait for this child and return its status
FORK = CALL.pack(0)
TAKE = b"!"  # the message with the pipe for a job's reports: whoever reads it takes the job

PREFIX = struct.Struct("<QI?")  # length of the pickle, index of the task, whether it is the last
JOB_BYTES = 64 << 20  # of instances in one job; a child keeps them all, as tuples of floats
MOST_INSTANCES = 8  # in one job: as many as a kit keeps converted
Place = tuple[int, int]  # an instance in the store: offset and length in bytes


@dataclass(frozen=True)
class Task:
    """One rollout of a job. instance: its digest. shown: the state that its programs see for z_t.

    index: its index among the rollouts of the pair. code_length: of its best solution. work: units
    that its programs may spend before it ends, in a metered job (`meter`). luck_seed: of what its
    acceptance draws. start: the first solution; None for the random one of start_seed.
    """

    index: int
    instance: str
    code_length: int
    start_seed: int
    rng_seed: int
    shown: Shown
    work: float = math.inf
    luck_seed: int = 0
    start: Solution | None = None


@dataclass(frozen=True)
class StepTask:
    """One step from a given solution; see `lns.one_step`.

    code_length: of the candidate. room: bytes for what destroy made of the solution.
    """

    instance: str
    code_length: int
    room: int
    solution: Solution
    z: Value
    rng_seed: int
    index: int = 0


@dataclass(frozen=True)
class RunJob:
    """One pair on some tasks, in order; see `lns.rollout` for the other fields.

    cpu_seconds: per task. gate_seconds: CPU time to check and compile both programs. memory: bytes
    on top of the interpreter and the instance.
    fail_fast: stop at the first failure. isolate: a process per task for any program. metered:
    whether the work of its programs is counted.
    """

    destroy: str
    repair: str
    tasks: tuple[Task | StepTask, ...]
    steps: int
    cpu_seconds: float
    memory: int
    gate_seconds: float
    seconds: float | None = None
    skip_infeasible: bool = False
    fail_fast: bool = True
    isolate: bool = False
    metered: bool = False
    acceptance: str = PAPER

    def due(self, k: int) -> int | None:
        """The index of report k, or None if there is no such report."""
        return self.tasks[k].index if k < len(self.tasks) else None

    def payload_size(self, k: int) -> int:
        """Bytes of report k.

        A rollout's: best_cost [T+1] float64, state [T] int32, shown [T, K] float64 of a state of K
        parts that is not z_t, and code [L] int32. A step's: the text of a Python literal in ASCII,
        (partial solution, removed) or None, with blanks after it, and the candidate's code [L]
        int32. Codes end in -1 where shorter.
        """
        task = self.tasks[k]
        if isinstance(task, StepTask):
            return task.room + 4 * task.code_length
        return (12 + 8 * task.shown.parts) * self.steps + 8 + 4 * task.code_length

    def frames(self, places: Mapping[str, Place]) -> bytes:
        """The job's file. places: of each task's instance in the store."""
        return _with_tasks(replace(self, tasks=()), self.tasks, places)


@dataclass(frozen=True)
class AdaptiveJob:
    """Adaptive searches over some destroys and repairs, in order, in one process.

    The weights of one search go on in the next. luck_seeds: of what each search draws. banned:
    pairs of positions whose steps fail without being played. cpu_seconds: of one step. See
    `spo_jax.envs.run.adaptive`, and for the rest `RunJob`.
    """

    destroys: tuple[str, ...]
    repairs: tuple[str, ...]
    tasks: tuple[Task, ...]
    luck_seeds: tuple[int, ...]
    steps: int
    rules: Adaptation
    cpu_seconds: float
    memory: int
    gate_seconds: float
    banned: frozenset[tuple[int, int]] = frozenset()

    def due(self, k: int) -> int | None:
        return k if k < len(self.tasks) * (self.steps + 1) else None

    def payload_size(self, k: int) -> int:
        """Bytes of report k: `STEP`, and for a task's last step its best code [L] int32, -1 after.

        A task has a report before its first step and one after each.
        """
        task, step = divmod(k, self.steps + 1)
        return STEP.size + (4 * self.tasks[task].code_length if step == self.steps else 0)

    def frames(self, places: Mapping[str, Place]) -> bytes:
        return _with_tasks(replace(self, tasks=()), self.tasks, places)


def _with_tasks(
    job: object, tasks: Sequence[Task | StepTask], places: Mapping[str, Place]
) -> bytes:
    """The file of a job, which is without its tasks."""
    head = pickle.dumps(job)
    frames = [PREFIX.pack(len(head), 0, not tasks), head]
    for k, task in enumerate(tasks):
        # Its index is in the prefix alone: as a number it would take memory where it is above 256.
        body = pickle.dumps((replace(task, index=0), places[task.instance]))
        frames += [PREFIX.pack(len(body), task.index, k + 1 == len(tasks)), body]
    return b"".join(frames)


@dataclass(frozen=True)
class CheckJob:
    """Programs for the static gate and the compiler; cpu_seconds: for each."""

    programs: tuple[tuple[Role, str], ...]
    cpu_seconds: float
    memory: int

    def due(self, k: int) -> int | None:
        return k if k < len(self.programs) else None

    def payload_size(self, k: int) -> int:
        return 0

    def frames(self, places: Mapping[str, Place]) -> bytes:
        body = pickle.dumps(self)
        return PREFIX.pack(len(body), 0, True) + body


@dataclass(frozen=True)
class SearchJob:
    """A search that goes on from leg to leg, each on an order; see `spo_jax.envs.run.search`.

    pairs: sources of destroy and repair, and what they see of z. instance: its digest.
    code_length: of its solutions. start: the first one. luck_seed, rng_seed: of what the search
    draws, and programs.
    """

    pairs: tuple[tuple[str, str, Shown], ...]
    instance: str
    code_length: int
    start: Solution
    terms: Terms
    luck_seed: int
    rng_seed: int
    memory: int
    gate_seconds: float

    def due(self, k: int) -> int | None:
        return k

    def payload_size(self, k: int) -> int:
        """Bytes of the report of a leg: `LEG`, and the best solution's code [L] int32, -1 after."""
        return LEG.size + 4 * self.code_length

    def frames(self, places: Mapping[str, Place]) -> bytes:
        head, place = pickle.dumps(self), pickle.dumps(places[self.instance])
        return b"".join(
            [PREFIX.pack(len(head), 0, False), head, PREFIX.pack(len(place), 0, True), place]
        )


@dataclass(frozen=True)
class Order:
    """What a search is to do in its next leg.

    steps: at most; until: a time of the search's clock at which no step begins any more (its CPU
    clock begins with the search). cpu_seconds: after which the leg counts as endless. begin, end:
    the steps, or with `timed` the times, between which acceptance goes from hot to cold; the steps
    are those of the whole search. code: of the solution to go on from; empty for its own. share,
    asked, division: with a code and more than one share asked for, the one that the search keeps to
    from now on, of those whose borders `division` seeds.
    """

    steps: int
    until: float
    cpu_seconds: float
    begin: float
    end: float
    timed: bool
    code: Sequence[int] = ()
    share: int = 0
    asked: int = 1
    division: int = 0

    def packed(self, length: int) -> bytes:
        """length: of a code."""
        numbers = (
            self.steps, self.until, self.cpu_seconds, self.begin, self.end, self.timed,
            self.share, self.asked, self.division,
        )  # fmt: skip
        padded = [*self.code, *[-1] * (length - len(self.code))]
        return ORDER.pack(*numbers) + struct.pack(f"<{length}i", *padded)

    @staticmethod
    def size(length: int) -> int:
        return ORDER.size + 4 * length

    @staticmethod
    def unpacked(data: bytes) -> "Order":
        code = struct.unpack(f"<{(len(data) - ORDER.size) // 4}i", data[ORDER.size :])
        end = code.index(-1) if -1 in code else len(code)
        steps, until, cpu_seconds, begin, end_of, timed, *divided = ORDER.unpack_from(data)
        return Order(steps, until, cpu_seconds, begin, end_of, timed, code[:end], *divided)

    def progress(self, steps: int, now: float) -> float:
        """The share of the way from hot to cold; steps: of the whole search."""
        at = now if self.timed else steps
        return min(1.0, max(0.0, (at - self.begin) / max(self.end - self.begin, 1e-9)))


ORDER = struct.Struct("<qdddd?HHQ")
# Steps of the search, steps since its lowest cost fell, its clock, whether a program has failed:
# the next report says how, and is the last.
LEG = struct.Struct("<qqd?")
# The destroy and repair of the next step, -1 after the last; what became of this one, an Outcome;
# the lowest cost so far.
STEP = struct.Struct("<hhBd")
Job = RunJob | CheckJob | SearchJob | AdaptiveJob


def is_known(code: int, role: int, seconds: float) -> bool:
    """Whether the header of a report says what a child can say."""
    lawful = code <= Status.MEMORY or code == Status.HOST_FAULT
    return lawful and role < len(ROLES) and seconds >= 0.0


def is_due(job: Job, k: int, index: int, code: int) -> bool:
    """Whether report k of a job may have this index and status."""
    due = job.due(k)
    whole = index == WHOLE_JOB and (code == Status.REJECTED or isinstance(job, SearchJob))
    return due is not None and (index == due or (whole and not isinstance(job, CheckJob)))


def read_frame(fd: int) -> tuple[bytes, bytes]:
    """The next frame: its prefix, still packed, and its pickle."""
    prefix = read_exactly(fd, PREFIX.size)
    return prefix, read_exactly(fd, PREFIX.unpack(prefix)[0])


def read_frames(fd: int) -> Iterator[tuple[bytes, bytes]]:
    """All remaining frames."""
    last = False
    while not last:
        prefix, body = read_frame(fd)
        last = PREFIX.unpack(prefix)[2]
        yield prefix, body


def read_exactly(fd: int, length: int) -> bytes:
    """`length` bytes from the file position of `fd`. Raises EOFError."""
    data = os.read(fd, length)
    while len(data) < length:
        more = os.read(fd, length - len(data))
        if not more:
            raise EOFError("the job's file is cut off")
        data += more
    return data


def portions(
    tasks: Sequence[Task], size: int, weights: Mapping[str, int]
) -> list[tuple[Task, ...]]:
    """The tasks in order, at most `size` in one portion, and no more instances than JOB_BYTES hold
    and a kit keeps.

    weights: bytes of each instance, by digest.
    """
    portions: list[list[Task]] = []
    held: set[str] = set()
    for task in tasks:
        held.add(task.instance)
        room = sum(weights[digest] for digest in held) <= JOB_BYTES or len(held) == 1
        room = room and len(held) <= MOST_INSTANCES
        if portions and len(portions[-1]) < size and room:
            portions[-1].append(task)
        else:
            portions.append([task])
            held = {task.instance}
    return [tuple(portion) for portion in portions]
