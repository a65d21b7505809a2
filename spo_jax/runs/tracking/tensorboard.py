"""TensorBoard: event files in the run's folder, written without TensorFlow and PyTorch.

`tensorboard --logdir runs` shows all runs of a folder.
"""

import json
import textwrap
import time
from collections.abc import Mapping

from spo_jax.errors import MissingExtra
from spo_jax.runs.folders import BEST
from spo_jax.runs.run import Run
from spo_jax.runs.tracking import Track, Tracker
from spo_jax.runs.tracking.numbers import settings

try:
    from tensorboard.compat.proto.event_pb2 import Event, SessionLog
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.text.summary_v2 import text_pb
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
except ImportError:
    raise MissingExtra("tensorboard", "tensorboard") from None

FOLDER = "tensorboard"


class Recorder(Tracker):
    """A session is one file of events.

    It begins with a mark at its first step, at which TensorBoard forgets what other files have of
    that step and later ones.
    """

    def __init__(self, track: Track):
        self._writer = EventFileWriter(str(track.run.path / FOLDER))
        self._step = track.first
        self._write(session_log=SessionLog(status=SessionLog.START))
        if track.first == 1:
            text = json.dumps(settings(track.run), indent=2)
            self._write(summary=text_pb("settings", _code(text)))

    def log(self, number: int, metrics: Mapping[str, float]) -> None:
        self._step = number
        self._scalars(metrics)

    def finish(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._step = max(1, run.rounds)
        self._scalars(metrics)
        pair = run.path / BEST
        if pair.exists():
            text = _code(pair.read_text("utf-8"))
            self._write(summary=text_pb("best pair", text))

    def close(self) -> None:
        self._writer.close()

    def _scalars(self, metrics: Mapping[str, float]) -> None:
        values = [Summary.Value(tag=name, simple_value=each) for name, each in metrics.items()]
        self._write(summary=Summary(value=values))

    def _write(self, **what: object) -> None:
        self._writer.add_event(Event(wall_time=time.time(), step=self._step, **what))
        self._writer.flush()


def _code(text: str) -> str:
    """Markdown of a text as it is, whatever is in it."""
    return textwrap.indent(text, "    ", lambda line: True)
