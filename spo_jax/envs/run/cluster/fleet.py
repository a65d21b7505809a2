"""What an evaluation asks of the machines that it is spread over, whoever connects them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from spo_jax.envs.problem import Instance

Call = Any  # stands for an answer to come; hashable


class HostLost(Exception):
    """A node gives no answer any more; the message says why."""


@dataclass(frozen=True)
class Machine:
    """A node. name: unique, for people. cpus: those that it offers."""

    name: str
    address: str
    cpus: int


@dataclass(frozen=True)
class HostSettings:
    """What each `Host` is made with; see there."""

    problem: str
    kit: bool
    path: Sequence[str]


class Fleet(Protocol):
    """Machines by their identity, each with at most one `Host`."""

    def open(self) -> None:
        """Raises SpoError where there is no such fleet."""
        ...

    def machines(self) -> Mapping[str, Machine]:
        """Those that are alive. Raises SpoError once the fleet as a whole is gone."""
        ...

    def start(self, node: str, workers: int, settings: HostSettings) -> Call:
        """Make the host of a node, and call its `open`."""
        ...

    def put(self, instance: Instance) -> Any:
        """What stands for an instance; a host fetches it when it needs it."""
        ...

    def call(self, node: str, method: str, *arguments: Any) -> Call:
        """Call a host. Does not wait."""
        ...

    def wait(self, calls: Sequence[Call], seconds: float) -> Sequence[Call]:
        """Those that are answered, or never will be; waits for the first as long as that."""
        ...

    def answer(self, call: Call) -> bytes:
        """What a call that `wait` returned has for an answer. Raises HostLost."""
        ...

    def drop(self, node: str) -> None:
        """End the host of a node, dead or alive. Does not wait."""
        ...

    def close(self) -> None:
        """End what was opened."""
        ...
