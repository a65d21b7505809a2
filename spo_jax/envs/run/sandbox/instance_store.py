"""The memory file with the instances: all workers can read it, only the parent can write it."""

import pickle
from collections.abc import Iterable
from dataclasses import replace

from spo_jax.envs.problem import Instance
from spo_jax.envs.run.sandbox.jobs import Place
from spo_jax.envs.run.sandbox.process.starting import MemoryFile
from spo_jax.envs.shared_arrays import LEAST_BYTES, descriptor_of, shared

LIMIT = 256 << 20  # bytes; above it, instances that the run does not need are dropped
START = 1 << 12  # so that every offset takes the same memory in a child


class InstanceStore:
    """Instances by digest. `hold` and `share` may only be called while no job runs.

    file: an empty one, which it closes; by default its own.
    """

    def __init__(self, file: MemoryFile | None = None) -> None:
        self.file = MemoryFile("spo-instances") if file is None else file
        self.places: dict[str, Place] = {}
        self._end = START

    def hold(self, instances: Iterable[Instance]) -> None:
        """Make room for the instances of a run, and write the missing ones."""
        self._hold({instance.digest: instance for instance in instances})

    def share(self, instance: Instance) -> tuple[Place, int | None]:
        """Where an instance is, and the file with its distances, which children map.

        None where these are small: then they lie in the store, too.
        """
        if instance.dist is None or instance.dist.nbytes < LEAST_BYTES:
            self.hold([instance])
            return self.places[instance.digest], None
        self._shared = shared(instance.dist)
        name = f"{instance.digest} without distances"
        self._hold({name: replace(instance, dist=None)})  # type: ignore[arg-type]
        return self.places[name], descriptor_of(self._shared)

    def _hold(self, wanted: dict[str, Instance]) -> None:
        fresh = {d: pickle.dumps(i.seen()) for d, i in wanted.items() if d not in self.places}
        if self._end + sum(map(len, fresh.values())) > LIMIT and self.places.keys() - wanted:
            self.file.truncate(0)
            self.places.clear()
            self._end = START
            fresh = {digest: pickle.dumps(instance.seen()) for digest, instance in wanted.items()}
        for digest, data in fresh.items():
            self.file.write(data, self._end)
            self.places[digest] = (self._end, len(data))
            self._end += len(data)

    def close(self) -> None:
        self.file.close()
