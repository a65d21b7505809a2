"""A fleet that Ray connects: one actor per node, which answers in bytes."""

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from spo_jax.envs.problem import Instance
from spo_jax.envs.run.cluster.fleet import Call, HostLost, HostSettings, Machine
from spo_jax.envs.run.cluster.host import Host
from spo_jax.errors import InputError, MissingExtra, SpoError

HEAD_PORT = 6379
PATIENCE = 5.0  # seconds for a connection to the head
MISSES = 3  # looks at a head in a row without an answer, after which it counts as dead
STORE_BYTES = 100_000_000  # of the object store, where Ray is started for a run


class ClusterLost(SpoError, RuntimeError):
    """The head of a cluster is gone."""


class RayFleet:
    """The nodes of a Ray cluster, as a `Fleet`.

    address: of its head, as HOST:PORT; "auto" for the cluster that runs on this machine, "local"
    for one of this machine alone that is started and ended with the run. By default $RAY_ADDRESS,
    or else "auto".

    Raises MissingExtra where Ray is not installed, and on `open` InputError where there is no such
    cluster.
    """

    host: type[Host] = Host  # what each node runs

    def __init__(self, address: str | None = None):
        try:
            import ray
        except ImportError as error:
            raise MissingExtra("ray", "ray") from error
        self._ray = ray
        self._address = address or os.environ.get("RAY_ADDRESS") or "auto"
        if "://" in self._address:
            raise InputError(
                f"ray-address is {self._address}; Ray's client is not supported: run spo on a "
                "machine of the cluster, and give the address of its head as HOST:PORT"
            )
        self._ours = False
        self._hosts: dict[str, Any] = {}
        self._misses = 0
        self._known: dict[str, Machine] = {}

    def open(self) -> None:
        """Join the cluster."""
        ray = self._ray
        if self._address not in ("auto", "local"):
            _require_head(self._address)
        self._ours = not ray.is_initialized()
        if self._ours:
            own: dict[str, Any] = {}
            if self._address == "local":
                own = {"include_dashboard": False, "object_store_memory": STORE_BYTES}
            try:
                with _own_signals():
                    ray.init(
                        address=self._address,
                        log_to_driver=False,
                        logging_level=logging.ERROR,
                        **own,
                    )
            except (ConnectionError, RuntimeError, ValueError) as error:
                lines = str(error).strip().splitlines() or [type(error).__name__]
                raise InputError(
                    f"there is no Ray cluster to join at {self._address} ({lines[0]:.200}): start "
                    "one with ray start --head, and name it with --ray-address HOST:PORT"
                ) from error
        self._head = ray.get_runtime_context().gcs_address
        self._misses = 0

    def machines(self) -> Mapping[str, Machine]:
        """Those that are alive. Raises ClusterLost."""
        if not _answers(self._head):  # then Ray itself would wait for long
            self._misses += 1
            if self._misses >= MISSES:
                raise ClusterLost(
                    f"the head of the Ray cluster, {self._head}, does not answer any more; "
                    "what is committed is kept: start the cluster again and resume the run"
                )
            return self._known
        self._misses = 0
        self._known = {
            each["NodeID"]: Machine(
                f"{each['NodeManagerHostname']}-{each['NodeID'][:6]}",
                each["NodeManagerAddress"],
                int(each["Resources"].get("CPU", 0)),
            )
            for each in self._ray.nodes()
            if each["Alive"]
        }
        return self._known

    def start(self, node: str, workers: int, settings: HostSettings) -> Call:
        """An actor that takes all CPUs of the node, and dies with this process."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        actor = self._ray.remote(self.host).options(
            num_cpus=workers,
            max_restarts=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        )
        self._hosts[node] = actor.remote(
            settings.problem, workers, settings.kit, settings.path, _fetch, settings.parts
        )
        return self.call(node, "open")

    def put(self, instance: Instance) -> Any:
        return self._ray.put(instance)

    def call(self, node: str, method: str, *arguments: Any) -> Call:
        return getattr(self._hosts[node], method).remote(*arguments)

    def wait(self, calls: Sequence[Call], seconds: float) -> Sequence[Call]:
        ready, _ = self._ray.wait(list(calls), num_returns=1, timeout=seconds)
        if ready and len(calls) > 1:
            ready, _ = self._ray.wait(list(calls), num_returns=len(calls), timeout=0)
        return ready

    def answer(self, call: Call) -> bytes:
        try:
            found: Any = self._ray.get(call)
            return found  # bytes, which `encoding` checks
        except self._ray.exceptions.RayError as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise HostLost(f"{lines[0]:.300}") from None

    def drop(self, node: str) -> None:
        host = self._hosts.pop(node, None)
        if host is not None:
            with suppress(Exception):  # it is dead, or its node is
                self._ray.kill(host)

    def close(self) -> None:
        self._hosts.clear()
        if self._ours and self._ray.is_initialized():
            # Without a head Ray waits for it; the process need not.
            thread = threading.Thread(target=self._ray.shutdown, daemon=True)
            thread.start()
            thread.join(30.0)


def _fetch(reference: Any) -> Instance:
    """An instance of the object store, on a node."""
    import ray

    instance: Instance = ray.get(reference)
    return instance


def _require_head(address: str) -> None:
    """Raises InputError where nothing answers."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise InputError(
            f"ray-address is {address}; it must be HOST:PORT (the port of a head is usually "
            f"{HEAD_PORT}), auto or local"
        )
    if not _answers(address):
        raise InputError(
            f"nothing answers at {address}: give the address of a Ray cluster's head, which "
            "ray start --head prints"
        )


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
    except OSError:
        return False
    return True


@contextmanager
def _own_signals() -> Iterator[None]:
    """Ray sets a handler of SIGTERM; this keeps ours."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
