"""MLflow: a run there for a run here, with its settings and its pair as artifacts.

Where it is kept is MLflow's own setting (MLFLOW_TRACKING_URI, by default mlflow.db here); so is the
experiment (MLFLOW_EXPERIMENT_NAME).
"""

import logging
import os
import re
import time
from collections.abc import Mapping

from spo_jax.errors import MissingExtra
from spo_jax.runs.folders import BEST
from spo_jax.runs.run import Run
from spo_jax.runs.tracking import Track, Tracker
from spo_jax.runs.tracking.numbers import settings

try:
    from mlflow.entities import Metric, Param
    from mlflow.tracking import MlflowClient
except ImportError:
    raise MissingExtra("mlflow-skinny", "mlflow") from None

EXPERIMENT = "spo-jax"
TAG = "spo_jax.track"
_LONGEST = 6000  # characters of a parameter
_FORBIDDEN = re.compile(r"[^\w\-. /]")  # in the name of a metric


class Recorder(Tracker):
    """The run at MLflow has the track's id as a tag, by which a run that goes on finds it."""

    def __init__(self, track: Track):
        for name in ("mlflow", "alembic"):
            logging.getLogger(name).setLevel(logging.WARNING)  # no lines between those of the run
        self._client = MlflowClient()
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", EXPERIMENT)
        known = self._client.get_experiment_by_name(name)
        experiment = self._client.create_experiment(name) if known is None else known.experiment_id
        found = self._client.search_runs([experiment], f"tags.`{TAG}` = '{track.id}'")
        if found:
            self._id = found[0].info.run_id
            self._client.update_run(self._id, status="RUNNING")
            there = self._client.get_metric_history(self._id, "round")
            self._last = max((each.step for each in there), default=0)
        else:
            made = self._client.create_run(
                experiment, tags={TAG: track.id}, run_name=track.run.path.name
            )
            self._id, self._last = made.info.run_id, 0
            params = [Param(n, str(v)[:_LONGEST]) for n, v in settings(track.run).items()]
            self._client.log_batch(self._id, params=params)
            self._client.log_dict(self._id, settings(track.run), "settings.json")
        self._finished = False

    def log(self, number: int, metrics: Mapping[str, float]) -> None:
        if number > self._last:  # MLflow would keep a second value of a step
            self._metrics(metrics, number)

    def finish(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._metrics(metrics, run.rounds)
        pair = run.path / BEST
        if pair.exists():
            self._client.log_artifact(self._id, str(pair))
        self._finished = True

    def close(self) -> None:
        self._client.set_terminated(self._id, "FINISHED" if self._finished else "KILLED")

    def _metrics(self, metrics: Mapping[str, float], step: int) -> None:
        now = int(time.time() * 1000)
        logged = [Metric(_FORBIDDEN.sub("_", n), v, now, step) for n, v in metrics.items()]
        self._client.log_batch(self._id, metrics=logged)
