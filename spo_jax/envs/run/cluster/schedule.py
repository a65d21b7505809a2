"""Which node does which job. No clock, no network: only what it is told.

A node gets as many jobs as keep its workers busy for a while, by the measured time of a job, and
never more than its share of what is left. Every job is dealt under a fresh ticket. When a node is
lost its tickets are void and their jobs go back, so each job is done exactly once, whatever comes
back, from whom and in which order.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")

AHEAD = 1.0  # seconds of work that a node has beyond what it runs: more than a round trip
MOST_AHEAD = 256  # jobs per worker beyond what it runs, however short they are
LOSSES = 8  # nodes that may be lost with a job before it counts as the job's fault
WEIGHT = 0.1  # of the newest job in the mean time of a job


@dataclass
class _Entry(Generic[T]):
    """A job on its way. losses: nodes that were lost with it."""

    job: T
    losses: int = 0


@dataclass
class _Holding(Generic[T]):
    """What a node has: its jobs that are out, by ticket, in the order in which they were dealt."""

    workers: int
    out: dict[int, _Entry[T]] = field(default_factory=dict)


class Schedule(Generic[T]):
    """The jobs of one evaluation and the nodes that do them."""

    def __init__(self, jobs: Iterable[T] = (), ahead: float = AHEAD):
        self._queue: deque[_Entry[T]] = deque(_Entry(job) for job in jobs)
        self._nodes: dict[str, _Holding[T]] = {}
        self._ahead = ahead
        self._mean = 0.0  # seconds of a job; 0 before the first
        self._ticket = 0

    @property
    def left(self) -> int:
        """Jobs that are not done."""
        return len(self._queue) + sum(len(node.out) for node in self._nodes.values())

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(self._nodes)

    def out(self, node: str) -> int:
        """Jobs that a node has."""
        return len(self._nodes[node].out)

    def add(self, jobs: Iterable[T]) -> None:
        """More jobs, before all others: they are what is left of one that was begun."""
        self._queue.extendleft(reversed([_Entry(job) for job in jobs]))

    def join(self, node: str, workers: int) -> None:
        """A node that takes jobs from now on."""
        self._nodes[node] = _Holding(workers)

    def leave(self, node: str) -> list[T]:
        """A node is lost. Its jobs go to the others, before all that were never dealt.

        Returns those that were lost `LOSSES` times: nobody does them again.
        """
        given_up: list[_Entry[T]] = []
        again: list[_Entry[T]] = []
        for entry in self._nodes.pop(node).out.values():
            entry.losses += 1
            (again if entry.losses < LOSSES else given_up).append(entry)
        self._queue.extendleft(reversed(again))
        return [entry.job for entry in given_up]

    def deal(self, node: str, wanted: Callable[[T], bool]) -> list[tuple[int, T]]:
        """Jobs for a node, each with its ticket. wanted: whether a job is still worth starting;
        one that is not is dropped.
        """
        holding = self._nodes[node]
        room = self._room(holding)
        dealt: list[tuple[int, T]] = []
        while self._queue and len(dealt) < room:
            entry = self._queue.popleft()
            if wanted(entry.job):
                self._ticket += 1
                holding.out[self._ticket] = entry
                dealt.append((self._ticket, entry.job))
        return dealt

    def job(self, node: str, ticket: int) -> T | None:
        """The job that a node has under a ticket."""
        entry = self._nodes[node].out.get(ticket) if node in self._nodes else None
        return None if entry is None else entry.job

    def done(self, node: str, ticket: int, seconds: float) -> T | None:
        """A job is done; None if this node has no such ticket, or has it no longer.

        seconds: that it took on its worker.
        """
        holding = self._nodes.get(node)
        entry = None if holding is None else holding.out.pop(ticket, None)
        if entry is None:
            return None
        if math.isfinite(seconds) and seconds >= 0.0:
            weight = WEIGHT if self._mean else 1.0
            self._mean += weight * (seconds - self._mean)
        return entry.job

    def _room(self, holding: _Holding[T]) -> int:
        """How many more jobs a node may have."""
        ahead = min(self._ahead / self._mean, MOST_AHEAD) if self._mean else 1.0
        most = math.ceil(holding.workers * (1.0 + ahead))
        everyone = sum(node.workers for node in self._nodes.values())
        share = math.ceil(self.left * holding.workers / everyone)
        return max(0, min(most, share) - len(holding.out))
