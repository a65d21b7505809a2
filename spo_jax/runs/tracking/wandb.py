"""Weights & Biases: a run there for a run here, with its pair as an artifact.

Project, entity and mode are those of W&B's own settings (WANDB_PROJECT, WANDB_ENTITY, WANDB_MODE).
"""

import os
from collections.abc import Mapping
from typing import Any

from spo_jax.errors import InputError, MissingExtra
from spo_jax.runs.folders import BEST
from spo_jax.runs.run import Run
from spo_jax.runs.tracking import Track, Tracker
from spo_jax.runs.tracking.numbers import settings

try:
    import wandb
except ImportError:
    raise MissingExtra("wandb", "wandb") from None

PROJECT = "spo-jax"


def _quiet() -> Any:
    """Settings with which W&B neither prints nor catches what is printed."""
    return wandb.Settings(silent=True, console="off")


class Recorder(Tracker):
    """The id at W&B is the track's, so a run that goes on continues there. Steps are rounds."""

    @staticmethod
    def check() -> None:
        """Raises InputError where W&B would ask for a key while the run goes on."""
        online = wandb.setup(_quiet()).settings.mode not in ("offline", "disabled", "dryrun")
        if online and not wandb.login(prompt=False):
            raise InputError(
                "wandb has no API key: run `wandb login` first, or set WANDB_MODE=offline and run "
                "`wandb sync` later"
            )

    def __init__(self, track: Track):
        run, config = track.run, settings(track.run)
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            dir=os.environ.get("WANDB_DIR", str(run.path)),
            id=track.id,
            name=run.path.name,
            tags=[config["problem"], config["method"]],
            config=config,
            resume="allow",
            reinit="create_new",  # beside a run of the caller's own
            settings=_quiet(),
        )
        self._finished = False

    def log(self, number: int, metrics: Mapping[str, float]) -> None:
        self._run.log(dict(metrics), step=number)

    def finish(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._run.summary.update(dict(metrics))
        pair = run.path / BEST
        if pair.exists():
            artifact = wandb.Artifact(f"pair-{self._run.id}", "pair", metadata=dict(metrics))
            artifact.add_file(str(pair))
            self._run.log_artifact(artifact)
        self._finished = True

    def close(self) -> None:
        self._run.finish(exit_code=0 if self._finished else 1)
