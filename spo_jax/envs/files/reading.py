"""How instance files are read: the options that a reader may take, and what it remarks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spo_jax.envs.problem import Instance, Problem
from spo_jax.errors import InputError

DISTANCES = ("file", "exact", "round", "ceil", "dimacs")


@dataclass(frozen=True)
class Reading:
    """The options of `Problem.read`, of which a problem lists those that it takes as `reading`.

    Attributes:
        distances: "file" for the convention of the file, "exact" for no rounding, "round" to the
            nearest whole number, "ceil" to the next one, "dimacs" cut to one decimal.
        capacity: Of vehicles, for a file without one.
        vehicles: The most routes, in place of what the file says.

    Raises:
        InputError: `distances` is none of these.
    """

    distances: str = "file"
    capacity: float | None = None
    vehicles: int | None = None

    def __post_init__(self) -> None:
        if self.distances not in DISTANCES:
            known = ", ".join(DISTANCES)
            raise InputError(f"--distances is {self.distances!r:.80}; it must be one of {known}")

    @property
    def given(self) -> dict[str, Any]:
        """The options that are not the default, by name."""
        named = {
            "distances": self.distances,
            "capacity": self.capacity,
            "vehicles": self.vehicles,
        }
        return {name: value for name, value in named.items() if value not in ("file", None)}

    def options_for(self, problem: Problem) -> dict[str, Any]:
        """The given options for `Problem.read`.

        Raises:
            InputError: The problem does not take one.
        """
        for name in self.given:
            if name not in problem.reading:
                raise InputError(f"the files of the problem {problem.name} take no --{name}")
        return self.given


AS_STATED = Reading()


def remarks_of(instance: Instance) -> tuple[str, ...]:
    """What the reader of the instance's file remarked: whole sentences that name the instance."""
    return tuple(f"{instance.name}: {each}" for each in instance.file.get("remarks", ()))


_MOST = 3  # instances of a group whose remarks are reported


def remarks_on_files(instances: Sequence[Instance]) -> list[str]:
    """The remarks on a group's instances: the first few, and of how many more there are some."""
    found = [remarks for instance in instances if (remarks := remarks_of(instance))]
    lines = [line for remarks in found[:_MOST] for line in remarks]
    if len(found) > _MOST:
        lines.append(f"and remarks like these on {len(found) - _MOST} more instances")
    return lines
