"""The nodes of an evaluation on several machines: their state, and what the record says of them."""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from spo_jax import jsontext
from spo_jax.envs.run.cluster.compatibility import WHAT
from spo_jax.envs.run.cluster.encoding import Malformed
from spo_jax.envs.run.cluster.fleet import Call, Machine

RESTARTS = 3  # of a node's host that was lost while the node is alive
MOST_NAMED = 4  # nodes whose shares are listed one by one


class State(enum.Enum):
    """Where a node stands."""

    STARTING = "starting"
    READY = "ready"
    REFUSED = "refused"  # it takes no programs
    LOST = "lost"


@dataclass(frozen=True)
class About:
    """What a host says of its machine. wrong: why it cannot work, or empty."""

    fingerprint: Mapping[str, str]
    layers: Mapping[str, bool]
    cpu: str
    system: str
    wrong: str

    @staticmethod
    def read(data: bytes) -> "About":
        """Raises Malformed for what no host of ours says."""
        try:
            found = jsontext.parse(data)
            fingerprint, layers = found["fingerprint"], found["layers"]
            texts = [found["cpu"], found["system"], found["wrong"], *(fingerprint[n] for n in WHAT)]
            lawful = all(type(each) is str and len(each) <= 2000 for each in texts)
            lawful = lawful and len(layers) < 100 and all(type(v) is bool for v in layers.values())
        except (ValueError, KeyError, TypeError, AttributeError):
            lawful = False
        if not lawful:
            raise Malformed("what it says of itself is malformed")
        known = {name: fingerprint[name] for name in WHAT}
        return About(known, dict(layers), found["cpu"], found["system"], found["wrong"])


@dataclass(eq=False)
class Node:
    """A machine with a host, or with a reason why not.

    call: what it has still to answer, called `method` at the time `since`. held: the number of the
    evaluation whose instances it has. losses: of its hosts. jobs, rollouts, seconds: what it did.
    """

    id: str
    machine: Machine
    state: State
    why: str = ""
    about: About | None = None
    call: Call = None
    method: str = ""
    since: float = 0.0
    reported_slow: bool = False
    held: int = 0
    losses: int = 0
    jobs: int = 0
    rollouts: int = 0
    seconds: float = 0.0

    @property
    def name(self) -> str:
        return self.machine.name

    @property
    def workers(self) -> int:
        return self.machine.cpus

    @property
    def may_come(self) -> bool:
        """Whether it may take programs later, although it takes none now."""
        restarts = self.state is State.LOST and self.losses < RESTARTS
        return restarts or self.state is State.STARTING

    def record(self) -> dict[str, Any]:
        """For a manifest. A node that is lost stays so until it is back."""
        gone = self.state is State.STARTING and self.losses > 0
        found: dict[str, Any] = {
            "id": self.id,
            "name": self.name,
            "address": self.machine.address,
            "workers": self.workers,
            "state": (State.LOST if gone else self.state).value,
        }
        if self.why:
            found["why"] = self.why
        if self.about is not None:
            found |= {"cpu": self.about.cpu, "kernel": self.about.system}
            found |= {"versions": dict(self.about.fingerprint), "sandbox": dict(self.about.layers)}
        done = {"jobs": self.jobs, "rollouts": self.rollouts, "seconds": round(self.seconds, 1)}
        return found | done


def shares(nodes: Iterable[Node]) -> str:
    """Which node did how much of the rollouts, in a few words."""
    active = [node for node in nodes if node.state is State.READY or node.rollouts]
    total = sum(node.rollouts for node in active)
    parts = [node.rollouts / total if total else 0.0 for node in active]
    if len(active) > MOST_NAMED:
        return f"{len(active)} nodes, {min(parts):.0%} to {max(parts):.0%} each"
    named = (f"{node.name} {part:.0%}" for node, part in zip(active, parts, strict=True))
    return ", ".join(named)


def common_layers(nodes: Iterable[Node]) -> dict[str, bool]:
    """Which layers hold on all nodes that take programs."""
    found: dict[str, bool] = {}
    for node in nodes:
        if node.state is State.READY and node.about is not None:
            for name, holds in node.about.layers.items():
                found[name] = found.get(name, True) and holds
    return found
