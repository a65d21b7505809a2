"""An evaluator whose workers are on several machines, with our sandbox on each of them.

This process plans the jobs, deals them out, and checks what comes back exactly as for workers of
its own: so results do not depend on the nodes, their number, or what becomes of them.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.run.cluster.compatibility import difference, fingerprint, missing
from spo_jax.envs.run.cluster.encoding import Malformed, unpack
from spo_jax.envs.run.cluster.fleet import Fleet, HostLost, HostSettings
from spo_jax.envs.run.cluster.host import GOOD, STUCK
from spo_jax.envs.run.cluster.nodes import RESTARTS, About, Node, State, common_layers, shares
from spo_jax.envs.run.cluster.schedule import LOSSES, Schedule
from spo_jax.envs.run.jobs.job_evaluator import Finished, JobEvaluator, Running, Wanted, Work
from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.run.sandbox.instance_store import LIMIT
from spo_jax.envs.run.sandbox.outcome import ChildReport, Ended
from spo_jax.envs.run.sandbox.process.starting import import_path
from spo_jax.errors import SandboxUnavailable

REFRESH = 2.0  # seconds between looks at which nodes there are
HANG = STUCK + 15.0  # seconds after which a node that owes an answer is lost
START = 120.0  # seconds in which a node must be ready when an evaluation begins
MOMENT = 0.05  # seconds for which results are checked before nodes are looked at again
SLOW = 15.0  # seconds after which it is reported that a node is not ready
NOBODY = 600.0  # seconds to wait for a node where all are lost


class ClusterEvaluator(JobEvaluator):
    """An `Evaluator` on the machines of a fleet; its settings are those of `LocalEvaluator`.

    Each node that offers CPUs has a host with as many workers. A node without a required layer of
    the sandbox, or where programs may give other bits than here, takes no programs.

    Args:
        problem: Of the pairs.
        workers: Without effect; they are those of this machine.
        fleet: The machines.
        **settings: As `LocalEvaluator` has them.

    Raises:
        SandboxUnavailable: On entry, if no node can take programs, with the reason of each.
    """

    def __init__(self, problem: Problem, workers: int = 1, *, fleet: Fleet, **settings: Any):
        super().__init__(problem, workers, **settings)
        self._fleet = fleet
        self._nodes: dict[str, Node] = {}
        self._shelf: dict[str, tuple[int, Any]] = {}  # instances by digest: bytes, and the fleet's
        self._run = 0  # number of the evaluation
        self._looked = 0.0
        self._unsettled: deque[tuple[Work, Ended]] = deque()
        self._say: Callable[[str], None] | None = None
        self._pending_messages: list[str] = []

    # --- what it tells ----------------------------------------------------------------------------

    def listen(self, say: Callable[[str], None] | None) -> None:
        """Report to `say`, a line at a time, what becomes of nodes; pending lines at once."""
        self._say = say
        if say is not None:
            pending, self._pending_messages = self._pending_messages, []
            for line in pending:
                say(line)

    def shares(self) -> str:
        """Which node did how much of this session's rollouts, in a few words."""
        return shares(self._nodes.values())

    def record(self) -> list[dict[str, Any]]:
        """What ran where in this session, node by node, for a manifest."""
        return [node.record() for node in self._nodes.values()]

    @property
    def layers(self) -> dict[str, bool]:
        """Which sandbox layers hold on all nodes that take programs."""
        return common_layers(self._nodes.values())

    def _tell(self, line: str) -> None:
        (self._pending_messages.append if self._say is None else self._say)(line)

    # --- its life ---------------------------------------------------------------------------------

    def _start(self) -> None:
        self._require_kit()
        self._fingerprint = fingerprint()
        self._settings = HostSettings(self.problem.spec, self._kit, import_path(), self._parts)
        self._fleet.open()
        self._nodes, self._shelf, self._looked = {}, {}, 0.0
        self._started = True
        try:
            end = time.monotonic() + START
            while True:
                self._survey()
                if time.monotonic() > end or not any(n.may_come for n in self._nodes.values()):
                    break
                self._listen_to_calls(None)
            if not self._ready:
                raise SandboxUnavailable(f"no node takes programs: {self._reasons()}")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End all hosts and whatever they run."""
        if not self._started:
            return
        self._started = False
        live = [n for n in self._nodes.values() if n.state in (State.STARTING, State.READY)]
        try:
            calls = [self._fleet.call(node.id, "close") for node in live]
            end = time.monotonic() + 5.0
            while calls and time.monotonic() < end:
                ended = set(self._fleet.wait(calls, 1.0))
                calls = [call for call in calls if call not in ended]
            for node in live:
                self._fleet.drop(node.id)
        finally:
            self._fleet.close()

    @property
    def _ready(self) -> list[Node]:
        return [node for node in self._nodes.values() if node.state is State.READY]

    @property
    def _width(self) -> int:
        if not self._started:
            self._start()
        return max(1, sum(node.workers for node in self._ready))

    def _reasons(self) -> str:
        nodes = self._nodes.values()
        reasons = [f"{node.name}: {node.why or node.state.value}" for node in nodes]
        return "; ".join(reasons) or "the cluster has none"

    # --- doing jobs -------------------------------------------------------------------------------

    def _drain(
        self,
        queue: deque[Work],
        finished: Finished,
        wanted: Wanted,
        running: Running,
        instances: Sequence[Instance],
    ) -> None:
        """Keep every node busy until all jobs are done."""
        schedule = Schedule(queue)
        self._run += 1
        self._shelve(instances)
        digests = list(dict.fromkeys(instance.digest for instance in instances))
        self._unsettled.clear()
        alone = time.monotonic()  # since when there is no node
        while schedule.left or self._unsettled:
            self._survey(schedule)
            for node in self._ready:
                if node.call is None:
                    self._serve(node, schedule, wanted, digests)
            self._settle(schedule, finished)
            if self._ready:
                alone = time.monotonic()
            elif time.monotonic() - alone > NOBODY:
                raise SandboxUnavailable(
                    f"no node has taken programs for {NOBODY:g} s ({self._reasons()})"
                )
            if schedule.left:
                self._listen_to_calls(schedule)
            running(sum(len(ended.reports) for _, ended in self._unsettled))

    def _settle(self, schedule: Schedule[Work], finished: Finished) -> None:
        """Check and record results for a moment. Nodes got their next jobs before: checking takes
        most of this process's time, and they need not wait for it.
        """
        end = time.monotonic() + MOMENT
        while self._unsettled and time.monotonic() < end:
            schedule.add(finished(*self._unsettled.popleft()))

    def _serve(
        self, node: Node, schedule: Schedule[Work], wanted: Wanted, digests: Sequence[str]
    ) -> None:
        """Give a node that owes no answer what it needs next."""
        if node.held != self._run:
            node.held = self._run
            self._call(node, "hold", digests, [self._shelf[digest][1] for digest in digests])
            return
        if node.id not in schedule.nodes:
            schedule.join(node.id, node.workers)
        dealt = schedule.deal(node.id, wanted)
        if dealt or schedule.out(node.id):
            self._call(node, "turn", [(ticket, work.job) for ticket, work in dealt])

    def _call(self, node: Node, method: str, *arguments: Any) -> None:
        node.call = self._fleet.call(node.id, method, *arguments)
        node.method, node.since = method, time.monotonic()

    def _listen_to_calls(self, schedule: Schedule[Work] | None) -> None:
        """Take the answers that have come; wait for one unless there is something else to do."""
        owing = {node.call: node for node in self._nodes.values() if node.call is not None}
        patience = 0.0 if self._unsettled else REFRESH / 4
        if not owing:
            time.sleep(patience)
        for call in self._fleet.wait(list(owing), patience) if owing else ():
            node = owing[call]
            node.call = None
            try:
                data = self._fleet.answer(call)
                if node.method == "open":
                    self._opened(node, About.read(data))
                elif data[:1] != GOOD:
                    raise HostLost(data[1:].decode("utf-8", "replace")[:1000])
                elif node.method == "turn" and schedule is not None:
                    self._take(node, data[1:], schedule)
            except HostLost as error:
                self._lose(node, str(error), schedule)
            except Malformed as error:  # what it says is not to be trusted
                node.losses = RESTARTS
                self._lose(node, f"its answer is malformed: {error}", schedule)
        now = time.monotonic()
        for node in self._nodes.values():
            owed = node.call is not None and node.method != "open"
            if owed and now - node.since > HANG:
                self._lose(node, f"it gave no answer for {HANG:g} s", schedule)

    def _take(self, node: Node, data: bytes, schedule: Schedule[Work]) -> None:
        """Jobs of a node that have ended."""

        def job_of(ticket: int) -> Any:
            work = schedule.job(node.id, ticket)
            return None if work is None else work.job

        for done in unpack(data, job_of):
            work = schedule.done(node.id, done.ticket, done.seconds)
            assert work is not None  # since it was unpacked
            node.jobs += 1
            node.rollouts += work.size and len(done.ended.reports)
            node.seconds += done.seconds
            self._unsettled.append((work, done.ended))

    # --- which nodes there are --------------------------------------------------------------------

    def _survey(self, schedule: Schedule[Work] | None = None) -> None:
        """Notice nodes that have come or gone, from time to time."""
        now = time.monotonic()
        if self._looked and now - self._looked < REFRESH:
            return
        self._looked = now
        alive = self._fleet.machines()
        for key, machine in alive.items():
            node = self._nodes.get(key)
            if node is None:
                node = self._nodes[key] = Node(key, machine, State.STARTING)
                if machine.cpus < 1:
                    self._refuse(node, "it offers no CPU")
                    continue
                self._open(node)
            elif node.state is State.LOST and node.may_come:
                self._open(node)
        for node in list(self._nodes.values()):
            if node.id not in alive and node.state in (State.STARTING, State.READY):
                node.losses = RESTARTS
                self._lose(node, "it has left the cluster", schedule)
            elif (
                node.state is State.STARTING and not node.reported_slow and now - node.since > SLOW
            ):
                node.reported_slow = True
                self._tell(
                    f"Node {node.name} is not ready yet: it starts, or something else uses its CPUs"
                )

    def _open(self, node: Node) -> None:
        node.state, node.held = State.STARTING, 0
        node.call = self._fleet.start(node.id, node.workers, self._settings)
        node.method, node.since = "open", time.monotonic()

    def _opened(self, node: Node, about: About) -> None:
        """A node is ready, unless something speaks against it."""
        node.about = about
        lacking = "" if self._unsafe else missing(about.layers)
        if about.wrong or lacking:
            self._refuse(node, about.wrong or lacking)
        elif other := difference(about.fingerprint, self._fingerprint):
            self._refuse(node, f"its results could differ: {other}")
        else:
            node.state, node.why = State.READY, ""
            without = [name for name, holds in about.layers.items() if not holds]
            but = f", without {', '.join(without)}" if without else ""
            self._tell(f"Node {node.name} takes programs: {node.workers} workers{but}")

    def _refuse(self, node: Node, why: str) -> None:
        node.state, node.why = State.REFUSED, why
        if node.workers:
            self._fleet.drop(node.id)
        self._tell(f"Node {node.name} takes no programs: {why}")

    def _lose(self, node: Node, why: str, schedule: Schedule[Work] | None) -> None:
        """A node is gone; its jobs go to others."""
        node.state, node.why, node.call = State.LOST, why, None
        node.losses += 1
        self._fleet.drop(node.id)
        again = ""
        if schedule is not None and node.id in schedule.nodes:
            count = schedule.out(node.id)
            again = f"; its {count} job{'s are' if count != 1 else ' is'} done again elsewhere"
            for work in schedule.leave(node.id):
                lost = f"{LOSSES} nodes were lost with it"
                verdict = ChildReport(0, Status.HOST_FAULT, lost, 0.0)
                self._unsettled.append((work, Ended([], verdict)))
        self._tell(f"Node {node.name} is lost: {why}{again}")

    # --- instances --------------------------------------------------------------------------------

    def _shelve(self, instances: Sequence[Instance]) -> None:
        """Offer instances to the nodes, each once; forget others where they take much memory."""
        wanted = {instance.digest: instance for instance in instances}
        held = sum(size for size, _ in self._shelf.values())
        if held + sum(each.nbytes for each in wanted.values()) > LIMIT:
            self._shelf = {d: each for d, each in self._shelf.items() if d in wanted}
        for digest, instance in wanted.items():
            if digest not in self._shelf:
                self._shelf[digest] = (instance.nbytes, self._fleet.put(instance))
