"""Trackers: where the numbers of a run go besides its folder, as TensorBoard, W&B or MLflow.

A tracker is named by `--track`: one of `KNOWN`, or the user's own as "package.module:NAME". It is
told what the tables of the run say, so a run that went on untracked is told in full later.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from spo_jax.errors import InputError
from spo_jax.named import imported, require_members, require_parameters
from spo_jax.search.runs.passed import called
from spo_jax.search.runs.run import Run

# The modules beside this one, each with a class `Recorder`.
KNOWN = ("tensorboard", "wandb", "mlflow")


@dataclass(frozen=True)
class Track:
    """What a tracker goes on with when it is opened.

    run: as it is now. id: 32 hexadecimal digits, the same after a resume, others once the run has
    gone back to an earlier round. first: the round that the tracker is told first, from 1.
    """

    run: Run
    id: str
    first: int


class Tracker:
    """Records a run; this one does nothing. A subclass or a function makes one of a `Track`.

    It is called in a thread of its own, so it may wait for a network. What it raises ends the
    tracking by it, with a remark, and never the run.
    """

    @staticmethod
    def check() -> None:
        """Called before a run begins. Raises InputError for what the user can mend, as a key."""

    def __init__(self, track: Track):
        """Opened with the first round that is over."""

    def log(self, number: int, metrics: Mapping[str, float]) -> None:
        """Round `number` is over. metrics: finite numbers by name. Each round once, in order."""

    def finish(self, run: Run, metrics: Mapping[str, float]) -> None:
        """The run is over. metrics: of its validation. `run.path` / "best.py" is its pair."""

    def close(self) -> None:
        """The session is over, be it finished or stopped. The last call."""


Factory = Callable[[Track], Tracker]


def get_factories(wanted: str | Factory | Sequence[str | Factory] | None) -> dict[str, Factory]:
    """Trackers by name. wanted: names with commas between them, factories, or several of these.

    Raises InputError for a name that leads nowhere and for what cannot be called with a Track, and
    MissingExtra for a tracker whose package is not installed.
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
                found[name] = _named(name)
            else:
                found[called(name)] = _checked(f"tracker {name!r:.80}", name)
    return found


def _named(name: str) -> Factory:
    if name in KNOWN:
        return _checked(f"tracker {name!r}", import_module(f"{__name__}.{name}").Recorder)
    found = imported("tracker", name, ", ".join(KNOWN), call=False)
    return _checked(f"tracker {name!r}", found)


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
