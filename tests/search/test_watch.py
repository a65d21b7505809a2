"""Runs in a browser while they go on: what is answered, to whom, and what is drawn."""

import http.client
import json
import math
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hostile_runs import BAD, made

from spo_jax import InputError
from spo_jax.cli import main
from spo_jax.program import DESTROY_REPAIR
from spo_jax.runs.database.store import Store
from spo_jax.runs.folders import DATABASE, LOG
from spo_jax.runs.probes import ProbeRecord
from spo_jax.runs.report import compare
from spo_jax.runs.run import Run
from spo_jax.runs.watch import server
from spo_jax.runs.watch import watched as watched_module
from spo_jax.runs.watch.watched import UNPLAYED, Watched, found, last_line
from spo_jax.search.rounds import Counts


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return made(tmp_path_factory.mktemp("watch") / "a <b>run-seed0")


@pytest.fixture
def serve() -> Iterator[Any]:
    """Serves runs on a free port until the test is over."""
    begun = []

    def start(*runs: Watched, **more: Any) -> server.Server:
        made = server.Server(runs, **more)
        threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
        begun.append(made)
        return made

    yield start
    for each in begun:
        each.shutdown()
        each.server_close()


def get(
    served: server.Server, path: str, method: str = "GET", **headers: str
) -> tuple[int, str, Any]:
    port = served.server_address[1]
    to = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    sent = {"Host": f"127.0.0.1:{port}"} | headers
    to.putrequest(method, path, skip_host=True)
    for name, value in sent.items():
        to.putheader(name, value)
    to.endheaders()
    answer = to.getresponse()
    return answer.status, answer.read().decode(), answer.headers


# --- a run ----------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_page_is_made_anew_when_a_round_has_landed(tmp_path: Path) -> None:
    from spo_jax.runs.report import write

    first = made(tmp_path / "run", rounds=1)
    watched = Watched(first.path)
    before, page = watched.state(), watched.page()
    assert (before["rounds"], before["status"]) == (1, "finished")
    assert page == write.html(first, UNPLAYED)
    assert watched.page() is page
    assert watched.state()["version"] == before["version"]

    shutil.copy(made(tmp_path / "later", rounds=2).path / DATABASE, tmp_path / "new")
    manifest = (tmp_path / "later/manifest.json").read_text()
    (first.path / "manifest.json").write_text(manifest)
    (tmp_path / "new").replace(first.path / DATABASE)
    assert watched.state()["rounds"] == 2
    assert watched.state()["version"] != before["version"]
    assert watched.page() != page

    shutil.rmtree(first.path)
    assert "no longer there" in watched.state()["error"]
    with pytest.raises(InputError, match="no longer there"):
        watched.page()


@pytest.mark.long
def test_a_slow_run_stalls_no_page_of_another(
    run: Run, tmp_path: Path, serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one run is read, and while its page is made, all other requests are answered."""
    slow = tmp_path / "slow"
    shutil.copytree(run.path, slow)
    watched, reached, go_on = Watched(slow), threading.Event(), threading.Event()

    def held(function: Any) -> Any:
        def stand_still(of: Any, *more: Any) -> Any:
            if getattr(of, "path", of) == slow:
                reached.set()
                assert go_on.wait(60)
            return function(of, *more)

        return stand_still

    served = serve(watched, Watched(run.path))
    asked: list[Any] = []
    for name in ("load_run", "html"):
        reached.clear()
        go_on.clear()
        with monkeypatch.context() as patch:
            patch.setattr(watched_module, name, held(getattr(watched_module, name)))
            patch.setattr(server, "PATIENCE", 0.05)
            (slow / DATABASE).touch()
            thread = threading.Thread(target=lambda: asked.append(get(served, "/run/0")))
            thread.start()
            assert reached.wait(60)
            assert get(served, "/run/1")[0] == 200
            states = json.loads(get(served, "/state")[1])
            assert [each["rounds"] for each in states] == [run.rounds] * 2
            assert get(served, "/")[0] == 200
            if name == "html":
                assert get(served, "/compare")[0] == 200
            assert not asked
            go_on.set()
            thread.join(60)
        assert asked.pop()[0] == 200


@pytest.mark.long
def test_what_a_round_in_progress_does(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "run"
    shutil.copytree(run.path, path)
    (path / LOG).write_bytes(b"x" * 9000 + b"\nround 2 writing destroys 30\nround 2 half a li")
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["rounds"] = 9
    (path / "manifest.json").write_text(json.dumps(manifest))
    watched = Watched(path)
    assert watched.state()["status"] == "interrupted"
    assert watched.state()["stage"] == ""
    holder = subprocess.Popen(
        [sys.executable, "-c", "import sys; from spo_jax.runs.database.store import Store\n"
         "with Store.reopen(sys.argv[1]): print('held', flush=True); sys.stdin.read()", str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    state = watched.state()
    holder.communicate()
    assert (state["status"], state["rounds"], state["planned"]) == ("running", run.rounds, 9)
    assert state["stage"] == "round 2 writing destroys 30"


@pytest.mark.parametrize(
    ("text", "line"), [(b"", ""), (b"a", ""), (b"a\n", "a"), (b"a\nb\xff\n", "b\ufffd")]
)
def test_the_last_whole_line(tmp_path: Path, text: bytes, line: str) -> None:
    (tmp_path / "log").write_bytes(text)
    assert last_line(tmp_path / "log") == line
    assert last_line(tmp_path / "none") == ""


@pytest.mark.long
def test_watching_changes_nothing_in_a_run(run: Run, serve: Any) -> None:
    def contents() -> dict[str, bytes]:
        return {each.name: each.read_bytes() for each in run.path.iterdir() if each.is_file()}

    before = contents()
    served = serve(Watched(run.path))
    for path in ("/", "/state", "/run/0", "/compare"):
        assert get(served, path)[0] == 200
    assert contents() == before
    with Store.reopen(run.path):  # a run that goes on finds no lock
        assert get(served, "/run/0")[0] == 200


def test_a_folder_of_runs_and_what_is_none(run: Run, tmp_path: Path) -> None:
    assert [each.path for each in found([str(run.path), str(run.path.parent)])] == [run.path]
    with pytest.raises(InputError, match="none"):
        found([str(tmp_path / "none")])
    with pytest.raises(InputError, match=tmp_path.name):
        found([str(tmp_path)])


# --- the server -----------------------------------------------------------------------------------


@pytest.mark.long
def test_what_a_model_wrote_is_text_everywhere(run: Run, serve: Any) -> None:
    served = serve(Watched(run.path), Watched(run.path))
    for path in ("/", "/run/0", "/run/1", "/compare"):
        code, text, headers = get(served, path)
        assert code == 200
        assert BAD not in text
        assert "a <b>run" not in text
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
    policy = get(served, "/")[2]["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    states = json.loads(get(served, "/state")[1])
    assert [each["rounds"] for each in states] == [run.rounds] * 2


@pytest.mark.parametrize(
    "path", ["/run/2", "/run/-1", "/run/", "/run/1e3", "/run/%D9%A3", "/run/0/..", "/../etc/passwd",
             "/frame.html", "/server.py", "/run/99999999999999999999"],
)  # fmt: skip
def test_there_is_nothing_else(run: Run, serve: Any, path: str) -> None:
    served = serve(Watched(run.path))
    assert get(served, path)[0] == 404


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:PORT", "127.0.0.1", "", "localhost:1"]
)
def test_names_of_elsewhere_learn_nothing(run: Run, serve: Any, host: str) -> None:
    served = serve(Watched(run.path))
    port = str(served.server_address[1])
    for path in ("/", "/state", "/run/0", "/frame.js"):
        code, text, _ = get(served, path, Host=host.replace("PORT", port))
        assert (code, "127.0.0.1 and localhost only" in text) == (403, True)
    assert get(served, "/", Host=f"LocalHost:{port}")[0] == 200
    assert get(served, "/", method="HEAD")[:2] == (200, "")
    assert get(served, "/", method="POST")[0] == 501


def test_another_address_wants_the_token(run: Run, serve: Any) -> None:
    served = serve(Watched(run.path), host="0.0.0.0")
    token = served.link.partition("?token=")[2]
    assert len(token) >= 20
    for more in ("", "?token=", "?token=wrong", f"?token={token[:-1]}"):
        assert get(served, "/" + more)[0] == 401
    assert get(served, "/state", Cookie="spo-watch=; x")[0] == 401
    code, _, headers = get(served, f"/?token={token}", Host="a.machine:1")
    assert (code, headers["Location"]) == (303, "/")
    cookie = headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert get(served, "/state", Cookie=cookie.partition(";")[0])[0] == 200
    own = serve(Watched(run.path), token="mine-1234")
    assert own.link.endswith("/?token=mine-1234")
    assert get(own, "/state")[0] == 401
    for bad in ("", "short", "with space", "line\nbreak", "x" * 65):
        with pytest.raises(InputError, match="--token"):
            server.Server([], token=bad)


def test_only_addresses_of_this_machine_are_local() -> None:
    assert all(map(server.is_loopback, ("127.0.0.1", "127.3.2.1", "::1", "localhost")))
    assert not any(map(server.is_loopback, ("0.0.0.0", "::", "10.0.0.1", "localhost.evil", "")))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none"], "none"),
        (["RUN", "--port", "70000"], "from 0 to 65535"),
        (["RUN", "--port", "-1"], "from 0 to 65535"),
        (["RUN", "--host", "256.1.1.1", "--port", "0"], "cannot listen on 256.1.1.1"),
        (["RUN", "--token", "a b"], "--token must have"),
    ],
)
def test_mistakes(
    run: Run,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("os.nice", lambda by: by)
    assert main(["watch", *(str(run.path) if each == "RUN" else each for each in arguments)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


@pytest.mark.long
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_it_is_stopped(run: Run, stop: signal.Signals) -> None:
    command = [sys.executable, "-m", "spo_jax", "watch", str(run.path), "--port", "0"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal.signal, stop, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        port = int(line.partition("127.0.0.1:")[2].partition("/")[0])
        to = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        to.request("GET", "/state")
        assert json.loads(to.getresponse().read())[0]["rounds"] == run.rounds
        with pytest.raises(InputError, match=f"127.0.0.1:{port}: .* give another --port"):
            server.Server([], port=port)
        process.send_signal(stop)
        assert process.wait(60) == 0


# --- the comparison -------------------------------------------------------------------------------


class Drawn(SimpleNamespace):
    __hash__ = object.__hash__  # type: ignore[assignment]


def drawn(name: str, seed: int, values: list[float], **own: Any) -> Any:
    """A run as `compare` reads it."""
    flat = {"seed": seed, "workers": seed, "credit": "stackelberg"} | own
    column = SimpleNamespace(column=lambda field: np.array(values))
    return Drawn(
        path=Path(name), rounds=len(values), progress=f"{len(values)} of 9", status="running",
        gaps=column, config=SimpleNamespace(flat=lambda: flat, seed=seed, problem="tsp"),
        counts=[Counts(6, 5, 4, 10, 9, 4, 9, 0, None, None)] * len(values), probes=(),
        game=DESTROY_REPAIR,
    )  # fmt: skip


def test_arms_are_what_settings_but_the_seed_set_apart() -> None:
    runs = [
        drawn("a-seed0", 0, [3.0, 2.0]), drawn("b-seed0", 0, [3.0], credit="shared"),
        drawn("a-seed1", 1, [5.0]), drawn("a-seed9", 2, [4.0], credit="gap"),
    ]  # fmt: skip
    found = compare.arms(runs)
    assert [(arm.name, len(arm.runs)) for arm in found] == [("a", 2), ("b", 1), ("a-seed9", 1)]
    assert [arm.settings for arm in found] == [
        {"credit": "stackelberg"}, {"credit": "shared"}, {"credit": "gap"},
    ]  # fmt: skip
    page = compare.page(runs)
    assert page["rows"][1] == ["a", "a-seed1", "1", "1 of 9", "running", "5", "5", "50"]
    assert page["settings"] == [["a", "stackelberg"], ["b", "shared"], ["a-seed9", "gap"]]
    text = compare.html(page, ["one <b> is gone"])
    assert "one &lt;b&gt; is gone" in text
    assert ">a (2)<" in text


def test_probes_are_compared_where_there_are_any() -> None:
    runs = [drawn("a-seed0", 0, [3.0, 2.0]), drawn("b-seed0", 0, [3.0, 1.0], credit="shared")]
    runs[1].probes = [
        ProbeRecord(2, role, 30, 20, 0.0, worth, 0.001, worth, 0.5)
        for role, worth in (("destroy", 0.83), ("repair", 0.79))
    ]
    page = compare.page(runs)
    assert page["heads"][-2:] == (
        "J of the policy's destroys (probe)", "J of the policy's repairs (probe)"
    )  # fmt: skip
    assert [row[-2:] for row in page["rows"]] == [["-", "-"], ["0.83", "0.79"]]


@pytest.mark.long
def test_folders_of_one_name_are_told_apart() -> None:
    runs = [drawn("x/run", 0, [3.0]), drawn("y/run", 0, [2.0], credit="gap"), drawn("z", 0, [])]
    page = compare.page(runs)
    assert [row[:2] for row in page["rows"]] == [["x/run", "x/run"], ["y/run", "y/run"]]
    assert page["left"] == ["z has no round that is over."]
    assert "z has no round that is over." in compare.html(page)
    assert compare.page([drawn("a", 0, [1.0, math.nan]), drawn("b", 1, [1.0])])["rows"][0][5] == "-"


def test_what_does_not_compare() -> None:
    other = drawn("c", 0, [1.0])
    other.config.problem = "cvrp"
    assert "do not compare" in compare.page([drawn("a", 0, [1.0]), other])["missing"]
    assert "No run has a round" in compare.page([drawn("a", 0, [])])["missing"]


@pytest.mark.slow
def test_a_browser_follows_a_run(run: Run, serve: Any, tmp_path: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no Chromium is installed")
    served = serve(Watched(run.path), Watched(run.path))
    done = subprocess.run(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
         "--disable-background-networking", "--enable-logging=stderr", "--dump-dom",
         "--virtual-time-budget=5000", f"--user-data-dir={tmp_path}/profile", served.link],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr, done.stderr
    assert f"Round {run.rounds} of {run.planned}, finished" in done.stdout
    assert "Compare all" in done.stdout
