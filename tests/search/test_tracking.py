"""Trackers: what they are told, that none is told a round twice, and that none can harm a run."""

import json
import math
import re
import shutil
import sqlite3
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

import numpy as np
import pytest
from hostile_runs import Hostile, made
from spo_fakes import Evaluator, small

from spo_jax import InputError
from spo_jax.cli import main
from spo_jax.envs.problems import get_problem
from spo_jax.errors import MissingExtra
from spo_jax.runs.database.store import Store, dump
from spo_jax.runs.discovery.loop import discover
from spo_jax.runs.folders import DATABASE
from spo_jax.runs.run import Run, load_run
from spo_jax.runs.tracking import KNOWN, Track, Tracker, get_factories, sending
from spo_jax.runs.tracking.numbers import finals, numbers, settings
from spo_jax.runs.tracking.sending import FILE, Marks, Tracking
from spo_jax.search.parts import Parts
from spo_jax.search.rounds import Round

ROUNDS = 4


class Killed(Exception):
    pass


class Noting(Tracker):
    """Notes what it is told, in `calls` of the class."""

    calls: ClassVar[list[Any]]

    def __init__(self, track: Track):
        self.calls.append(("open", track.id, track.first))

    def log(self, number: int, metrics: Mapping[str, float]) -> None:
        self.calls.append((number, dict(metrics)))
        dict.clear(metrics)  # type: ignore[arg-type]

    def finish(self, run: Run, metrics: Mapping[str, float]) -> None:
        self.calls.append(("finish", run.rounds))

    def close(self) -> None:
        self.calls.append("close")


@pytest.fixture
def noting() -> type[Noting]:
    return type("Noted", (Noting,), {"calls": []})


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two rounds that nobody tracked, with its pair."""
    run = made(tmp_path_factory.mktemp("tracking") / "run", rounds=2)
    with Store.reopen(run.path) as store:
        store.export_best(store.best())
    return run.path


@pytest.fixture
def finished(over: Path, tmp_path: Path) -> Run:
    return load_run(shutil.copytree(over, tmp_path / "run"))


def session(
    path: Path,
    trackers: Mapping[str, Any],
    remark: Callable[[str], None] = lambda line: None,
    until: int = ROUNDS,
    rewind: int | None = None,
) -> None:
    """A session of a run of fakes, killed once round `until` is over unless that is the last."""
    config = small(rounds=ROUNDS)
    if not path.exists():
        Store.create(path, {"config": config.flat(), "preset": "smoke"}).__exit__()
    with Store.reopen(path) as store, Tracking(trackers, path, remark) as tracking:
        if rewind is not None:
            store.rewind(rewind)
            Marks(path).rewind(rewind)

        def commit(done: Round) -> None:
            if done.number > until:
                raise Killed
            store.commit(done)

        own = {"evaluator": Evaluator(), "generator": Hostile(broken=0.2), "observer": tracking}
        discover(Parts(config, get_problem("tsp"), **own), store.state(), commit)
        tracking.over(load_run(path))


def killed(path: Path, trackers: Mapping[str, Any], until: int, **more: Any) -> None:
    with pytest.raises(Killed):
        session(path, trackers, until=until, **more)


# --- what is told ---------------------------------------------------------------------------------


def test_numbers_are_those_of_the_tables(finished: Run) -> None:
    run = finished
    with sqlite3.connect(run.path / DATABASE) as db:
        rows = db.execute("SELECT round, utility FROM pairs WHERE kind = 'response'").fetchall()
        failed = db.execute("SELECT round, status FROM failures").fetchall()
        best = db.execute("SELECT best_utility FROM rounds ORDER BY round").fetchall()
    metrics = numbers(run)
    assert [each["round"] for each in metrics] == [1, 2]
    for k, each in enumerate(metrics, 1):
        mine = [utility for number, utility in rows if number == k and utility is not None]
        assert each["utility/median"] == pytest.approx(median(mine))
        assert each["utility/decile"] == pytest.approx(float(np.quantile(mine, 0.9)))
        assert each["utility/top"] == max(mine)
        assert each["utility/best"] == best[k - 1][0]
        assert each["failures/all"] == sum(number == k for number, _ in failed)
        assert each["failures/crash"] == failed.count((k, "crash"))
        assert 0 < each["valid/all"] < 1
        assert all(math.isfinite(value) for value in each.values())
    assert metrics[1]["total/pairs"] == sum(each["count/pairs"] for each in metrics)
    assert finals(run)["final/utility"] == metrics[1]["utility/best"]
    assert settings(run)["rounds"] == 2
    json.dumps(settings(run))


def test_each_round_is_reported_once_whatever_kills_the_run(
    tmp_path: Path, noting: type[Noting]
) -> None:
    path = tmp_path / "run"
    killed(path, {"mine": noting}, until=1)
    killed(path, {}, until=2)  # without a tracker
    killed(path, {"mine": noting}, until=3)
    session(path, {"mine": noting})
    rounds = [each[0] for each in noting.calls if isinstance(each[0], int)]
    assert rounds == [1, 2, 3, 4]
    opened = [each for each in noting.calls if each[0] == "open"]
    assert [first for _, _, first in opened] == [1, 2, 4]
    assert len({identity for _, identity, _ in opened}) == 1
    assert noting.calls[-2:] == [("finish", 4), "close"]
    assert noting.calls.count("close") == 3
    uninterrupted = numbers(load_run(path))
    logged = [each[1] for each in noting.calls if isinstance(each[0], int)]
    assert logged == uninterrupted


@pytest.mark.long
def test_a_run_that_goes_back_begins_another_track(tmp_path: Path, noting: type[Noting]) -> None:
    path = tmp_path / "run"
    killed(path, {"mine": noting}, until=3)
    killed(path, {"mine": noting}, until=3, rewind=3)  # nothing that was told is forgotten
    session(path, {"mine": noting}, rewind=2)
    opened = [each for each in noting.calls if each[0] == "open"]
    assert [first for _, _, first in opened] == [1, 1]
    assert opened[0][1] != opened[1][1]


def test_a_finished_run_is_reported_later(finished: Run, noting: type[Noting]) -> None:
    for _ in range(2):  # the second time there is nothing to tell
        with Tracking({"mine": noting}, finished.path, lambda line: None) as tracking:
            tracking.over(finished)
    assert [each[0] for each in noting.calls] == ["open", 1, 2, "finish", "c"]


# --- trackers that fail ---------------------------------------------------------------------------


@pytest.mark.long
def test_a_tracker_that_fails_is_reported_once_and_changes_nothing(
    tmp_path: Path, noting: type[Noting]
) -> None:
    class Full(Noting):
        calls: ClassVar[list[Any]] = []

        def log(self, number: int, metrics: Mapping[str, float]) -> None:
            super().log(number, metrics)
            if number == 2:
                raise OSError(28, "No space left\non device")

    def closed(track: Track) -> Tracker:
        sys.exit("no network")

    remarks: list[str] = []
    session(tmp_path / "bare", {})
    trackers = {"mine": noting, "full": Full, "closed": closed}
    session(tmp_path / "run", trackers, remarks.append)
    assert dump(tmp_path / "run") == dump(tmp_path / "bare")
    assert [each[0] for each in noting.calls if isinstance(each[0], int)] == [1, 2, 3, 4]
    assert [each[0] for each in Full.calls] == ["open", 1, 2, "c"]  # closed, and told no more
    assert sorted(remarks) == [
        "tracking by closed ends, because of a SystemExit: no network",
        "tracking by full ends, because of a OSError: [Errno 28] No space left on device",
    ]
    marks = json.loads((tmp_path / "run" / FILE).read_text())
    assert {name: each["rounds"] for name, each in marks.items()} == {"full": 1, "mine": 4}


@pytest.mark.long
def test_a_tracker_that_hangs_holds_nothing_up(
    tmp_path: Path, noting: type[Noting], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = threading.Event()

    class Hanging(Tracker):
        def log(self, number: int, metrics: Mapping[str, float]) -> None:
            gone.wait()

    monkeypatch.setattr(sending, "PATIENCE", 1.0)
    monkeypatch.setattr(sending, "HASTE", 1.0)
    remarks: list[str] = []
    try:
        killed(tmp_path / "run", {"slow": Hanging}, until=2, remark=remarks.append)
        session(tmp_path / "run", {"slow": Hanging, "mine": noting}, remarks.append)
    finally:
        gone.set()
    assert load_run(tmp_path / "run").rounds == ROUNDS
    assert remarks == ["tracking by slow is not over after 1 s; left it"] * 2
    assert noting.calls[-1] == "close"


def test_tables_that_cannot_be_read_end_no_run(
    tmp_path: Path, noting: type[Noting], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(folder: Path) -> Run:
        raise InputError("the run database cannot be used")

    remarks: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(sending, "load_run", broken)
        session(tmp_path / "run", {"mine": noting}, remarks.append)
    assert len(remarks) == ROUNDS
    assert "the run database cannot be used" in remarks[0]
    assert [each[0] for each in noting.calls if isinstance(each[0], int)] == [1, 2, 3, 4]


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"mine": 3}', '{"mine": {"rounds": 1}}'])
def test_marks_that_were_edited_count_as_none(
    finished: Run, noting: type[Noting], text: str
) -> None:
    (finished.path / FILE).write_text(text)
    with Tracking({"mine": noting}, finished.path, lambda line: None) as tracking:
        tracking.over(finished)
    assert [each[0] for each in noting.calls] == ["open", 1, 2, "finish", "c"]


# --- names ----------------------------------------------------------------------------------------


def not_of_a_track() -> Tracker:
    raise NotImplementedError


NUMBER = 3


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ("tensorbord", "unknown tracker 'tensorbord': use tensorboard, wandb, mlflow, .* did you"),
        ("", "unknown tracker ''"),
        (f"{__name__}:nothing", "cannot import tracker"),
        (f"{__name__}:NUMBER", "is of type int, not a function of a Track"),
        (f"{__name__}:not_of_a_track", r"must take \(track\); it takes \(\)"),
        ([3], "is of type int, not a function of a Track"),
        (3, "must be names or functions of a Track"),
    ],
)
def test_what_is_no_tracker_is_refused(wanted: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        get_factories(wanted)


def test_trackers_by_name_and_as_objects(noting: type[Noting]) -> None:
    sys.modules[__name__].Noted = noting  # type: ignore[attr-defined]
    assert list(get_factories(f"{__name__}:Noted, {__name__}:Noting")) == [
        f"{__name__}:Noted",
        f"{__name__}:Noting",
    ]
    assert list(get_factories([Noting])) == [f"{__name__}:Noting"]
    assert get_factories(None) == {}


def test_the_tracker_of_the_docs(
    finished: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (Path(__file__).parents[2] / "docs" / "tracking.md").read_text("utf-8")
    [example] = re.findall(r"```python\n(# my_tracker.py\n.*?)```", text, re.DOTALL)
    (finished.path / "my_tracker.py").write_text(example)
    monkeypatch.syspath_prepend(finished.path)
    factories = get_factories("my_tracker:Lines")
    with Tracking(factories, finished.path, lambda line: None) as tracking:
        tracking.over(finished)
    lines = (finished.path / "rounds.jsonl").read_text().splitlines()
    assert [json.loads(line)["round"] for line in lines] == [1, 2]
    assert capsys.readouterr().out == f"{finished.path}: {finals(finished)}\n"


def test_what_is_returned_must_be_a_tracker(finished: Run) -> None:
    run = finished
    remarks: list[str] = []
    with Tracking(get_factories(lambda track: object()), run.path, remarks.append) as tracking:
        tracking.over(run)
    assert len(remarks) == 1
    assert "has no method log" in remarks[0]


def without(package: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where a package is not installed."""
    loaded = (each for each in sys.modules if f"{each}.".startswith(f"{package}."))
    for each in {package, *loaded}:
        monkeypatch.setitem(sys.modules, each, None)
    monkeypatch.delitem(sys.modules, f"spo_jax.runs.tracking.{name}", raising=False)


@pytest.mark.parametrize("name", KNOWN)
def test_a_tracker_whose_package_is_missing_names_its_extra(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    without(name, name, monkeypatch)
    with pytest.raises(MissingExtra, match=rf"pip install 'spo-jax\[{name}\]'"):
        get_factories(name)
    run = tmp_path / "run"
    assert main(["discover", "tsp", "--preset", "smoke", "--out", str(run), "--track", name]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not run.exists()


# --- TensorBoard ----------------------------------------------------------------------------------


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard itself reads."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    read = accumulator.EventAccumulator(str(folder), size_guidance={"scalars": 0})
    read.Reload()
    return {
        name: [(event.step, event.value) for event in read.Scalars(name)]
        for name in read.Tags()["scalars"]
    }


@pytest.mark.long
def test_tensorboard_reads_what_was_tracked(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed (the extra test)")
    path, trackers = tmp_path / "run", get_factories("tensorboard")
    killed(path, trackers, until=2)
    marks = Marks(path)
    mark = marks.read()["tensorboard"]
    marks.keep("tensorboard", replace(mark, rounds=1))  # as if killed before the mark was written
    session(path, trackers)
    found, metrics = scalars(path / "tensorboard"), numbers(load_run(path))
    for name in ("utility/best", "utility/median", "valid/all", "count/pairs"):
        steps, values = zip(*found[name], strict=True)
        assert steps == (1, 2, 3, 4)
        assert values == pytest.approx([each[name] for each in metrics], rel=1e-6)
    assert found["final/utility"] == [(4, pytest.approx(metrics[3]["utility/best"], rel=1e-6))]
    session(path, trackers, rewind=1)
    assert [step for step, _ in scalars(path / "tensorboard")["utility/best"]] == [1, 2, 3, 4]


def test_tensorboard_shows_the_settings_and_the_pair_as_text(finished: Run) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run = finished
    with Tracking(get_factories("tensorboard"), run.path, lambda line: None) as tracking:
        tracking.over(run)
    read = accumulator.EventAccumulator(str(run.path / "tensorboard"))
    read.Reload()
    texts = {
        name: read.Tensors(name)[0].tensor_proto.string_val[0].decode()
        for name in ("settings", "best pair")
    }
    assert json.loads(texts["settings"]) == json.loads(json.dumps(settings(run)))
    lines = (run.path / "best.py").read_text().splitlines()
    assert texts["best pair"].splitlines() == [f"    {line}" for line in lines]


def test_a_folder_that_cannot_be_written_ends_no_run(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed (the extra test)")
    path = tmp_path / "run"
    killed(path, {}, until=1)
    (path / "tensorboard").write_text("a file in its place")
    remarks: list[str] = []
    session(path, get_factories("tensorboard"), remarks.append)
    assert len(remarks) == 1
    assert remarks[0].startswith("tracking by tensorboard ends, because of a ")
    assert load_run(path).rounds == ROUNDS


# --- Weights & Biases -----------------------------------------------------------------------------


def records(path: Path) -> list[Any]:
    """The records in a file of an offline run.

    It is a LevelDB log behind seven bytes of W&B's own: blocks of 32 KiB with records of a checksum
    (4 bytes), a length (2), a kind (1: whole, 2: first, 3: middle, 4: last) and the data.
    """
    proto = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    raw, place, parts, found = path.read_bytes(), 7, b"", []
    assert raw[:4] == b":W&B"
    while place + 7 <= len(raw):  # the file may end within a record that is being written
        if 32768 - place % 32768 < 7:
            place += 32768 - place % 32768
            continue
        length, kind = struct.unpack("<HB", raw[place + 4 : place + 7])
        parts += raw[place + 7 : place + 7 + length]
        place += 7 + length
        if place > len(raw):
            break
        if kind in (1, 4):
            record = proto.Record()
            record.ParseFromString(parts)
            found.append(record)
            parts = b""
    return found


def written(path: Path) -> list[Any]:
    """The records of an offline run that is over: W&B's own process writes them, a little later."""
    until = time.monotonic() + 60
    while not (found := records(path)) or not any(each.HasField("exit") for each in found):
        assert time.monotonic() < until, "W&B did not write the end of the run"
        time.sleep(0.05)
    return found


def history(record: Any) -> dict[str, Any]:
    items = record.history.item
    return {each.key or "/".join(each.nested_key): json.loads(each.value_json) for each in items}


@pytest.mark.long
def test_wandb_records_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed (the extra test)")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.delenv("WANDB_DIR", raising=False)
    path, trackers = tmp_path / "run", get_factories("wandb")
    killed(path, trackers, until=2)
    session(path, trackers)
    with Store.reopen(path) as store:
        store.export_best(store.best())
    files = sorted((path / "wandb").glob("offline-run-*/*.wandb"))
    assert len(files) == 2  # one of each session
    sessions = [written(each) for each in files]
    identity = Marks(path).read()["wandb"].id
    begun = [next(r.run for r in each if r.HasField("run")) for each in sessions]
    assert {(each.run_id, each.display_name, each.project) for each in begun} == {
        (identity, "run", "spo-jax")
    }
    config = {each.key: json.loads(each.value_json) for each in begun[0].config.update}
    assert config["rounds"] == ROUNDS
    assert config["problem"] == "tsp"
    metrics = numbers(load_run(path))
    steps = [
        [(r.history.step.num, history(r)) for r in each if r.HasField("history")]
        for each in sessions
    ]
    assert [[step for step, _ in each] for each in steps] == [[1, 2], [3, 4]]
    for step, row in (*steps[0], *steps[1]):
        assert {name: row[name] for name in metrics[step - 1]} == metrics[step - 1]


@pytest.mark.long
def test_wandb_keeps_the_pair_as_an_artifact(
    finished: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed (the extra test)")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    run = finished
    with Tracking(get_factories("wandb"), run.path, lambda line: None) as tracking:
        tracking.over(run)
    [file] = (tmp_path / "wandb").glob("offline-run-*/*.wandb")
    [artifact] = [each.artifact for each in written(file) if each.HasField("artifact")]
    assert artifact.type == "pair"
    [entry] = artifact.manifest.contents
    assert entry.path == "best.py"
    assert Path(entry.local_path).read_bytes() == (run.path / "best.py").read_bytes()


def test_wandb_without_a_key_is_refused_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = pytest.importorskip("wandb", reason="wandb is not installed (the extra test)")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    wandb.teardown()
    try:
        with pytest.raises(InputError, match="wandb has no API key: run `wandb login` first"):
            get_factories("wandb")
    finally:
        wandb.teardown()


# --- MLflow ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_mlflow_records_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow", reason="mlflow-skinny is not installed (the extra test)")
    pytest.importorskip("sqlalchemy", reason="sqlalchemy is not installed (the extra test)")
    from mlflow.tracking import MlflowClient

    monkeypatch.chdir(tmp_path)  # where MLflow keeps artifacts
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setattr(sending, "HASTE", 60.0)  # MLflow makes its database first
    path, trackers, remarks = tmp_path / "run", get_factories("mlflow"), list[str]()
    killed(path, trackers, until=2, remark=remarks.append)
    client = MlflowClient()
    experiment = client.get_experiment_by_name("spo-jax")
    assert experiment is not None
    [stopped] = client.search_runs([experiment.experiment_id])
    assert stopped.info.status == "KILLED"
    marks = Marks(path)
    mark = marks.read()["mlflow"]
    marks.keep("mlflow", replace(mark, rounds=1))  # as if killed before the mark was written
    with Store.reopen(path) as store:
        store.export_best(store.best())
    session(path, trackers, remarks.append)
    assert remarks == []
    [found] = client.search_runs([experiment.experiment_id])
    assert found.info.run_id == stopped.info.run_id
    assert (found.info.status, found.info.run_name) == ("FINISHED", "run")
    assert (found.data.params["rounds"], found.data.params["problem"]) == (str(ROUNDS), "tsp")
    metrics = numbers(load_run(path))
    for name in ("utility/best", "valid/all", "failures/crash"):
        there = client.get_metric_history(found.info.run_id, name)
        assert [(each.step, each.value) for each in there] == [
            (k, each[name]) for k, each in enumerate(metrics, 1)
        ]
    kept = {each.path for each in client.list_artifacts(found.info.run_id)}
    assert kept == {"best.py", "settings.json"}


# --- a real run -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_tracked_discovery_is_the_same_discovery(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed (the extra test)")
    asked = ["discover", "tsp", "--preset", "smoke", "--generator", "grammar", "--workers", "1"]
    assert main([*asked, "--out", str(tmp_path / "bare")]) == 0
    assert main([*asked, "--out", str(tmp_path / "run"), "--track", "tensorboard"]) == 0
    assert dump(tmp_path / "run") == dump(tmp_path / "bare")
    found = scalars(tmp_path / "run" / "tensorboard")
    assert [step for step, _ in found["gap/best"]] == [1, 2]
    assert set(found) >= {"seconds/all", "seconds/sampling", "final/validated_gap"}
    again = ["discover", "--resume", str(tmp_path / "run"), "--track", "tensorboard"]
    assert main(again) == 0
    assert scalars(tmp_path / "run" / "tensorboard") == found
    assert capsys.readouterr().err == ""
