"""Trackers: where the numbers of a run go besides its folder, as TensorBoard, W&B or MLflow.

A tracker is named by `--track`: one of `KNOWN`, or the user's own as "package.module:NAME". It is
told what the tables of the run say, so a run that went on untracked is told in full later.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spo_jax.errors import InputError
from spo_jax.registry import Registry, require_members, require_parameters
from spo_jax.runs.discovery.objects import called
from spo_jax.runs.run import Run

# The modules beside this one, each with a class `Recorder`.
KNOWN = ("tensorboard", "wandb", "mlflow")


@dataclass(frozen=True)
class Track:
    """What a tracker goes on with when it is opened.

    Attributes:
        run: As it is now.
        id: 32 hexadecimal digits, the same after a resume, others once the run has gone back to an
            earlier round.
        first: The round that the tracker is told first, from 1.
    """

    run: Run
    id: str
    first: int


class Tracker:
    """Records a run; this one does nothing. A subclass or a function makes one of a `Track`.

    It is called in a thread of its own, so it may wait for a network. What it raises ends the
    tracking by it, with a remark, and never the run. It is opened with the first round that is
    over.

    Args:
        track: The run, and where to begin.
    """

    @staticmethod
    def check() -> None:
        """Called before a run begins.

        Raises:
            InputError: For what the user can mend, as a key.
        """

    def __init__(self, track: Track):
        """Opened with the first round that is over."""

    def log(self, number: int, metrics: Mapping[str, float]) -> None:
        """A round is over. Each is told once, in order.

        Args:
            number: Of the round, from 1.
            metrics: Finite numbers by name.
        """

    def finish(self, run: Run, metrics: Mapping[str, float]) -> None:
        """The run is over.

        Args:
            run: As it is now. `run.path` / "best.py" is its pair.
            metrics: Of its validation.
        """

    def close(self) -> None:
        """The session is over, be it finished or stopped. The last call."""


Factory = Callable[[Track], Tracker]


TRACKERS: Registry[Factory] = Registry(
    "tracker",
    {name: f"{__name__}.{name}:Recorder" for name in KNOWN},
    lambda name, found: found,
    call=False,
)


def get_factories(wanted: str | Factory | Sequence[str | Factory] | None) -> dict[str, Factory]:
    """Find trackers by name.

    Args:
        wanted: Names with commas between them, factories, or several of these; None for none.

    Returns:
        The factory of each tracker by its name.

    Raises:
        InputError: A name leads nowhere, or what it names cannot be called with a Track.
        MissingExtra: The package of a tracker is not installed.
    """
    if wanted is None:
        return {}
    several = [wanted] if isinstance(wanted, str) or callable(wanted) else wanted
    if not isinstance(several, Sequence):
        raise InputError(f"--track is {wanted!r:.80}; it must be names or functions of a Track")
    found: dict[str, Factory] = {}
    for each in several:
        names = [n.strip() for n in each.split(",")] if isinstance(each, str) else [each]
        for name in names:
            if isinstance(name, str):
                found[name] = _checked(f"tracker {name!r}", TRACKERS[name])
            else:
                found[called(name)] = _checked(f"tracker {name!r:.80}", name)
    return found


def _checked(what: str, found: Any) -> Factory:
    if not callable(found):
        raise InputError(f"{what} is of type {type(found).__name__}, not a function of a Track")
    require_parameters(what, found, _factory)
    if isinstance(found, type) and issubclass(found, Tracker):
        found.check()

    def made(track: Track) -> Tracker:
        tracker = found(track)
        require_members(f"what {what} returned", tracker, Tracker)
        return tracker

    return made


def _factory(track: Track) -> Tracker:  # the signature
    raise NotImplementedError
