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
    """A node.

    Attributes:
        name: Unique, for people.
        address: Of the node in its network.
        cpus: Those that it offers.
    """

    name: str
    address: str
    cpus: int


@dataclass(frozen=True)
class HostSettings:
    """What each `Host` is made with.

    Attributes:
        problem: A `get_problem` name.
        kit: Whether programs may import its kit.
        path: Where the machine of the run imports from.
        parts: The functions of the user's that jobs name.
    """

    problem: str
    kit: bool
    path: Sequence[str]
    parts: Sequence[str] = ()


class Fleet(Protocol):
    """Machines by their identity, each with at most one `Host`."""

    def open(self) -> None:
        """Connect to the fleet.

        Raises:
            SpoError: There is no such fleet.
        """
        ...

    def machines(self) -> Mapping[str, Machine]:
        """The machines that are alive, by their identity.

        Raises:
            SpoError: The fleet as a whole is gone.
        """
        ...

    def start(self, node: str, workers: int, settings: HostSettings) -> Call:
        """Make the host of a node, and call its `open`.

        Args:
            node: The identity of a machine.
            workers: Processes of the host.
            settings: The rest of what it is made with.

        Returns:
            The call of `open`.
        """
        ...

    def put(self, instance: Instance) -> Any:
        """What stands for an instance; a host fetches it when it needs it."""
        ...

    def call(self, node: str, method: str, *arguments: Any) -> Call:
        """Call a host. Does not wait.

        Args:
            node: The identity of its machine.
            method: Of the host.
            *arguments: Of the method.

        Returns:
            What stands for the answer to come.
        """
        ...

    def wait(self, calls: Sequence[Call], seconds: float) -> Sequence[Call]:
        """Wait for the first answer to some calls.

        Args:
            calls: What `start` and `call` returned.
            seconds: To wait at the longest.

        Returns:
            The calls that are answered, or never will be.
        """
        ...

    def answer(self, call: Call) -> bytes:
        """The answer to a call that `wait` returned.

        Raises:
            HostLost: It will never be answered.
        """
        ...

    def drop(self, node: str) -> None:
        """End the host of a node, dead or alive. Does not wait."""
        ...

    def close(self) -> None:
        """End what was opened."""
        ...
