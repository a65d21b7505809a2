"""Pairs of other frameworks: scores, hostile pairs, processes, and the folders to start from."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import spo_jax
from spo_jax import Scorer
from spo_jax.cli import main as spo
from spo_jax.constants import FRAMEWORKS, TASK_SETTINGS
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError, SandboxUnavailable
from spo_jax.frameworks import shinka
from spo_jax.frameworks.brief import system_message
from spo_jax.frameworks.folder import END, KINDS, START, evolvable, write_task
from spo_jax.frameworks.openevolve import Evaluation
from spo_jax.frameworks.scoring import scorer_of
from spo_jax.program import load_pair
from spo_jax.program.pairfile import parse_pair

TSP = get_problem("tsp")
SIMPLE = Path(TSP.simple).read_text()
FIRST = "    n = len(current_tour)\n"
SMALL = {"preset": "smoke", "size": 10, "instances": 2, "rollouts": 2, "steps": 10, "workers": 1}


def begins(line: str) -> str:
    """The simple pair, whose destroy begins with a line."""
    assert SIMPLE.count(FIRST) == 1
    return SIMPLE.replace(FIRST, f"    {line}\n{FIRST}")


@pytest.fixture(scope="module")
def scorer():
    with Scorer("tsp", **SMALL, cpu_seconds=25.0) as made:  # half a second for ten steps
        yield made


# --- scores ---------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_pair_is_worth_what_it_is_worth_in_a_discovery(tmp_path):
    given = SMALL | {"rounds": 1, "finalists": 0, "select": "utility", "seed": 3}
    run = spo_jax.discover("tsp", generator="grammar", path=tmp_path / "run", **given)
    assert run.best is not None
    with Scorer(of=run.config) as own, Scorer("tsp", **SMALL, seed=4) as other:
        assert own.pair(run.best.pair).value == run.best.utility
        assert other.pair(run.best.pair).value != run.best.utility


def test_a_score_is_the_mean_of_those_of_the_instances(scorer):
    score = scorer.text(SIMPLE)
    assert score == scorer.pair(load_pair(TSP.simple)) == scorer.file(TSP.simple)
    assert (score.ok, score.status, score.reason, score.role) == (True, "ok", "", "")
    assert [*score.instances] == [each.name for each in scorer.instances]
    assert score.value == pytest.approx(sum(score.instances.values()) / 2, abs=1e-15)
    assert 0 <= score.value < 1
    first = scorer.text(SIMPLE, first=True)
    assert [*first.instances] == [scorer.instances[0].name]
    assert first.value == first.instances[scorer.instances[0].name]
    # The start's cost and the end's, from rollouts of an evaluation of ours.
    rollouts = scorer._evaluator.run([load_pair(TSP.simple)], scorer.instances, (0, 1), 10)
    cost = rollouts.best_cost[0]
    share = (cost[..., 0] - cost[..., -1]) / cost[..., 0]
    assert list(score.instances.values()) == pytest.approx(share.mean(axis=1), abs=1e-15)


def test_markers_are_comments(scorer):
    pair = load_pair(TSP.simple)
    text = evolvable(TSP, pair)
    assert parse_pair(text, "text").digest == pair.digest
    assert scorer.text(text) == scorer.text(SIMPLE)
    outside = re.sub(f"{START}.*{END}", "", text, flags=re.DOTALL)
    assert re.fullmatch(r'""".*"""\s*', outside)


def test_markers_are_not_nested():
    text = evolvable(TSP, load_pair(TSP.simple)).replace(f"{START}\n\n", f"{START}\n")
    again = evolvable(TSP, parse_pair(text, "text"))
    assert again == evolvable(TSP, load_pair(TSP.simple))
    assert again.count("EVOLVE-BLOCK") == 2


def test_wrong_settings():
    with pytest.raises(InputError, match="rounds"):
        Scorer("tsp", round=3)
    with pytest.raises(InputError, match="must be finite"):
        Scorer("tsp", failed=float("nan"))
    with pytest.raises(InputError, match="leave out the problem"):
        Scorer("tsp", of=spo_jax.settings("tsp"))
    with pytest.raises(InputError, match=r"nowhere\.toml"):
        Scorer(preset="nowhere.toml")
    scorer = Scorer("tsp", **SMALL)
    for function in (scorer.text, scorer.pair, scorer.file):
        with pytest.raises(InputError, match=r"it must be|a path"):
            function(3)


def below(rollouts, instances):
    return rollouts.status * 0.0 - 2.0


def test_a_score_that_failed_pairs_could_have_is_refused():
    ours = f"{__name__}:below"
    complaint = "gave J -2, which is not above the -1 of failed pairs"
    with Scorer("tsp", **SMALL, utility=ours) as scorer, pytest.raises(InputError, match=complaint):
        scorer.text(SIMPLE)
    with Scorer("tsp", **SMALL, utility=ours, failed=-3.0) as scorer:
        assert scorer.text(SIMPLE).value == -2.0
        assert scorer.text("").value == -3.0


def test_the_longest_evaluation(scorer):
    assert scorer.seconds == 2 * 2 * 25.0 * 10 / 500 + 2 * 5.0


# --- hostile and broken ones ----------------------------------------------------------------------

REPAIR = SIMPLE[SIMPLE.index("def repair") :]
BROKEN = {
    "loop": (begins("while len(current_tour): pass"), "timeout", ""),
    "exit": (begins("exit()"), "rejected", r"destroy: at `exit\(\)`: name 'exit' is not"),
    "os": (begins("import os; os._exit(0)"), "rejected", "`import os; os._exit.*'os' is not avail"),
    "fork": ("import os\nos.fork()\n" + SIMPLE, "rejected", r"`import os`|`os\.fork\(\)`"),
    "import": ("import os\n" + begins("os.fork()"), "rejected", "at `import os`: module 'os' is"),
    "file": (begins("open('/etc/passwd')"), "rejected", "name 'open' is not"),
    "dunder": (begins("().__class__.__bases__"), "rejected", "__"),
    "memory": (begins("x = [0] * 10**10"), "memory", ""),
    "raises": (begins("n = current_tour[0][0]"), "crash", r"TypeError.*at `n = current_tour\[0\]"),
    "lines": (begins("raise ValueError('one\\ntwo')"), "crash", "ValueError at `raise"),
    "line": (begins("raise ValueError('line 9999')"), "crash", "`raise ValueError\\('line 9999'"),
    "not a tour": (SIMPLE.replace("return tour", "return tour[1:]"), "invalid", "repair: .*tour"),
    "no repair": (
        SIMPLE.replace("def repair", "def repairs"),
        "rejected",
        "no function named repair",
    ),
    "no destroy": (REPAIR, "rejected", r"no function named destroy \(found: repair\)"),
    "neither": ("x = 1\n", "rejected", r"no function named destroy \(found: none\)"),
    "empty": ("", "rejected", "no function named destroy"),
    "twice": (SIMPLE + REPAIR, "rejected", "more than one function named repair"),
    "syntax": (SIMPLE.replace("n = len(", "n = len(("), "rejected", "syntax error in line"),
    "null": (SIMPLE + "\0", "rejected", "null"),
    "arguments": (SIMPLE.replace("dist, current_tour, ", ""), "rejected", "destroy"),
}


LEAKS = {
    "message": "raise ValueError(str(dist))",
    "key": "{}[dist[0][-1]]",
    "text": "float(repr(dist[0][-1])[::-1] + 'x')",
    "assertion": "assert not dist[0][-1], dist[0][-1]",
    "cause": "raise ValueError(dist[0][-1]) from KeyError(dist[-1][0])",
    "context": """try:
        raise KeyError(dist[0][-1])
    except KeyError as error:
        raise RuntimeError(error)""",
    "arguments": "raise Exception(dist[0][-1], dist)",
    "place": "raise ValueError('at line ' + str(int(dist[0][-1] * len(str(dist)))))",
    "long": "raise ValueError(str(dist[0][-1]) * len(str(dist)))",
    "colon": "raise ValueError(': ' + str(dist[0][-1]))",
    "base": "raise BaseException(dist[0][-1])",
    "unicode": "str(dist[0][-1]).zfill(len(str(dist)))[sum].lower()",
    "index": "list(dist)[int(dist[0][-1] * len(str(dist)) + len(str(dist)))]",
    "too many": "return [], current_tour",
    "node": "return [int(dist[0][-1] * len(str(dist)))] * len(dist), current_tour[:len(dist[:1])]",
    "words": "return [str(dist)], [str(dist)]",
    "module": "raise StopIteration(dist[0][-1])",
}


@pytest.mark.parametrize("name", LEAKS)
def test_no_number_of_an_instance_is_in_what_a_model_reads(scorer, name, tmp_path):
    """A model that reads distances, one failure after another, could memorise a tour."""
    score = scorer.text(begins(LEAKS[name]))
    assert score.status in ("crash", "invalid")
    assert score.role == "destroy"
    assert not re.search(r"\d", re.sub(r"`[^`]*`", "", score.reason)), score.reason
    rows = scorer.instances[0].dist.ravel().tolist()
    assert not any(f"{each:.3f}"[:5] in score.reason for each in rows if each)
    shinka.write(score, tmp_path)
    written = json.loads((tmp_path / "metrics.json").read_text())
    assert written["text_feedback"] == score.reason


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_pair_scores_worst_and_says_why(scorer, name):
    text, status, reason = BROKEN[name]
    score = scorer.text(text)
    assert (score.value, score.status, score.instances) == (-1.0, status, {})
    assert not score.ok
    assert re.search(reason, score.reason), score.reason
    assert "\n" not in score.reason
    assert 0 < len(score.reason) < 1000
    assert score.role in ("", "destroy", "repair")


def test_nothing_runs_in_this_process(scorer, tmp_path):
    here, mark = tmp_path / "here", tmp_path / "pair.py"
    mark.write_text(f"import os\nopen({str(here)!r}, 'w')\nos._exit(9)\n{SIMPLE}")
    assert scorer.file(mark).status == "rejected"
    assert not here.exists()
    assert not [*tmp_path.rglob("*.pyc")]


def test_files_that_are_no_text(scorer, tmp_path):
    path = tmp_path / "pair.py"
    path.write_bytes(b"\xff\xfe\x00")
    score = scorer.file(path)
    assert (score.status, score.reason) == ("rejected", "not UTF-8 text (byte 0)")
    path.write_text("#" * 10**6)
    assert "larger than a pair file may be" in scorer.file(path).reason
    for other in (tmp_path / "none.py", tmp_path):
        with pytest.raises(InputError, match="no such file"):
            scorer.file(other)


def test_a_fault_of_our_own_is_no_score(monkeypatch):
    with Scorer("tsp", **SMALL) as scorer:
        scorer.text(SIMPLE)
        run, asked = scorer._evaluator.run, []

        def faulty(*args):
            found = run(*args)
            asked.append(found)
            found.status[:], found.reason[:] = spo_jax.Status.HOST_FAULT, "no memory"
            return found

        monkeypatch.setattr(scorer._evaluator, "run", faulty)
        with pytest.raises(SandboxUnavailable, match="could not be run 2 times: no memory"):
            scorer.text(SIMPLE)
        assert len(asked) == 2


# --- processes ------------------------------------------------------------------------------------


def zygotes(scorer):
    return [worker._zygote.process.pid for worker in scorer._evaluator._pool.workers]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(true, seconds=20):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_workers_stay_and_threads_take_turns(scorer):
    expected, before = scorer.text(SIMPLE), zygotes(scorer)
    found = []
    threads = [threading.Thread(target=lambda: found.append(scorer.text(SIMPLE))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4
    assert zygotes(scorer) == before


def test_close_ends_them_and_another_pair_starts_them():
    scorer = Scorer("tsp", **SMALL)
    scorer.close()
    expected = scorer.text(SIMPLE)
    [pid] = zygotes(scorer)
    scorer.close()
    assert not alive(pid)
    assert scorer.text(SIMPLE) == expected
    [pid] = zygotes(scorer)
    del scorer
    wait_until(lambda: not alive(pid))


FORKS = """
import os, sys
from spo_jax import Scorer
scorer = Scorer("tsp", preset="smoke", size=10, instances=1, steps=5, workers=1)
text = open(sys.argv[1]).read()
pids = lambda: [worker._zygote.process.pid for worker in scorer._evaluator._pool.workers]
first, before = scorer.text(text).value, pids()
read, write = os.pipe()
child = os.fork()
if not child:
    os.write(write, repr((scorer.text(text).value, pids())).encode())
    sys.exit(0)
os.close(write)
value, own = eval(os.read(read, 1 << 12))
assert os.waitpid(child, 0)[1] == 0
assert value == first and own != before
assert scorer.text(text).value == first and pids() == before
print(*before, *own)
"""


@pytest.mark.long
def test_a_forked_process_has_workers_of_its_own():
    command = [sys.executable, "-c", FORKS, TSP.simple]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    wait_until(lambda: not any(map(alive, map(int, done.stdout.split()))))


KILLED = """
import sys, threading, time
from spo_jax import Scorer
scorer = Scorer("tsp", preset="smoke", cpu_seconds=1000.0, steps=500, workers=1)
scorer.text(open(sys.argv[1]).read())
worker = scorer._evaluator._pool.workers[0]
before = worker._pid
threading.Thread(target=scorer.text, args=(sys.argv[2],)).start()
while worker._pid in (None, before) or not worker._judged:
    time.sleep(0.02)
print(worker._zygote.process.pid, worker._pid, flush=True)
time.sleep(1000)
"""


@pytest.mark.long
def test_nothing_is_left_of_a_process_that_is_killed():
    command = [sys.executable, "-c", KILLED, TSP.simple, BROKEN["loop"][0]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            pids = [int(each) for each in process.stdout.readline().split()]
            running = [*map(alive, pids)]
        finally:
            process.kill()
    assert running == [True, True]
    wait_until(lambda: not any(map(alive, pids)))


# --- OpenEvolve -----------------------------------------------------------------------------------


@dataclass
class EvaluationResult:
    """As OpenEvolve's."""

    metrics: dict
    artifacts: dict = field(default_factory=dict)


@pytest.fixture
def theirs(monkeypatch):
    package, module = ModuleType("openevolve"), ModuleType("openevolve.evaluation_result")
    module.EvaluationResult = EvaluationResult
    monkeypatch.setitem(sys.modules, "openevolve", package)
    monkeypatch.setitem(sys.modules, "openevolve.evaluation_result", module)


def test_openevolve_gets_metrics_and_artifacts(scorer, theirs, tmp_path):
    evaluation, path = Evaluation(scorer), tmp_path / "pair.py"
    path.write_text(SIMPLE)
    value = scorer.text(SIMPLE).value
    for found in (evaluation.evaluate(str(path)), evaluation.evaluate_stage2(str(path))):
        assert found.metrics == {"combined_score": value, "valid": 1.0}
        assert [line.split(": ")[0] for line in found.artifacts["scores"].splitlines()] == [
            each.name for each in scorer.instances
        ]
    first = evaluation.evaluate_stage1(str(path))
    assert first.metrics["combined_score"] == scorer.text(SIMPLE, first=True).value
    path.write_text(BROKEN["no repair"][0])
    for function in (evaluation.evaluate, evaluation.evaluate_stage1):
        found = function(str(path))
        assert found.metrics == {"combined_score": -1.0, "valid": 0.0}
        assert found.artifacts["status"] == "rejected"
        assert found.artifacts["failure"].startswith("not a pair file: no function named repair")


def test_a_second_stage_that_cannot_be_run_keeps_no_score_of_the_first(theirs):
    def file(path):
        raise SandboxUnavailable("no seccomp")

    evaluation = Evaluation(Scorer("tsp", **SMALL))
    evaluation.scorer = SimpleNamespace(file=file, failed=-1.0)
    found = evaluation.evaluate_stage2("pair.py")
    assert found.metrics == {"combined_score": -1.0, "valid": 0.0}
    assert found.artifacts == {"status": "host_fault", "failure": "no seccomp"}
    with pytest.raises(SandboxUnavailable):
        evaluation.evaluate("pair.py")


def test_without_openevolve(scorer, monkeypatch):
    monkeypatch.setitem(sys.modules, "openevolve", None)
    monkeypatch.setitem(sys.modules, "openevolve.evaluation_result", None)
    with pytest.raises(InputError, match="pip install openevolve"):
        Evaluation(scorer).evaluate(TSP.simple)


# --- ShinkaEvolve ---------------------------------------------------------------------------------


@pytest.fixture
def task(tmp_path):
    write_task("shinka", "tsp", out=tmp_path / "task", **SMALL)
    return tmp_path / "task"


@pytest.mark.long
def test_shinka_gets_two_files(task, tmp_path, capsys):
    results = tmp_path / "gen_0" / "results"

    def evaluated(text):
        (tmp_path / "main.py").write_text(text)
        given = ["--program_path", str(tmp_path / "main.py"), "--results_dir", str(results)]
        assert shinka.main(task / "task.toml", given) == 0
        return [
            json.loads((results / name).read_text()) for name in ("metrics.json", "correct.json")
        ]

    metrics, correct = evaluated(SIMPLE)
    with Scorer("tsp", **SMALL) as own:
        score = own.text(SIMPLE)
    assert metrics["combined_score"] == score.value
    assert metrics["public"] == score.instances
    assert metrics["text_feedback"] == ""
    assert correct == {"correct": True, "error": None}
    metrics, correct = evaluated(BROKEN["import"][0])
    assert (metrics["combined_score"], metrics["public"]) == (-1.0, {})
    assert metrics["private"] == {"status": "rejected", "role": "destroy"}
    assert "module 'os' is not available" in metrics["text_feedback"]
    assert correct == {"correct": False, "error": metrics["text_feedback"]}
    output = capsys.readouterr().out.splitlines()
    assert output[0] == f"J {score.value:.6f}"
    assert output[1].startswith("rejected: destroy: at `import os`")


@pytest.mark.long
def test_shinka_without_a_score(task, tmp_path, capsys):
    results = tmp_path / "results"
    given = ["--program_path", str(tmp_path / "none.py"), "--results_dir", str(results)]
    assert shinka.main(task / "task.toml", given) == 2
    assert shinka.main(tmp_path / "none.toml", given) == 2
    assert not results.exists()
    given[1] = TSP.simple
    results.write_text("a file")
    assert shinka.main(task / "task.toml", given) == 2
    errors = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[0] for line in errors] == ["spo"] * 3
    assert "none.py: no such file" in errors[0]


# --- folders --------------------------------------------------------------------------------------


def test_every_framework_has_its_files():
    assert tuple(KINDS) == FRAMEWORKS


@pytest.mark.long
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_folder_to_start_from(framework, tmp_path, capsys):
    yaml = pytest.importorskip("yaml")
    folder = tmp_path / "made" / "right here"
    given = ["--size", "10", "--instances", "1", "--steps", "5", "--workers", "1", "--seed", "7"]
    assert spo(["task", framework, "cvrp", "--preset", "smoke", "--out", str(folder), *given]) == 0
    assert f" '{folder}'" in capsys.readouterr().out  # quoted for the shell
    assert {each.name for each in folder.iterdir()} == {
        "task.toml", "config.yaml", KINDS[framework].first, *KINDS[framework].files
    }  # fmt: skip
    config = yaml.safe_load((folder / "config.yaml").read_text())
    own = Scorer("cvrp", preset="smoke", size=10, instances=1, steps=5, workers=1, seed=7)
    with scorer_of(folder / "task.toml") as scorer:
        assert scorer.config.problem == "cvrp"
        for name in TASK_SETTINGS:
            assert scorer.config.flat()[name] == own.config.flat()[name]
        assert [i.digest for i in scorer.instances] == [i.digest for i in own.instances]
        assert scorer.file(folder / KINDS[framework].first).ok
        message = system_message(scorer)
    if framework == "openevolve":
        assert config["prompt"]["system_message"] == message
        assert config["evaluator"]["timeout"] > scorer.seconds
        assert config["random_seed"] == config["database"]["random_seed"] == 7
    else:
        assert config["evo"]["task_sys_msg"] == message
        assert re.fullmatch(r"\d\d:\d\d:\d\d", config["job"]["time"])


@pytest.mark.long
def test_the_evaluator_file_of_openevolve(theirs, tmp_path):
    write_task("openevolve", "tsp", out=tmp_path / "task", **SMALL)
    found = []
    for _ in range(2):  # a cascade loads it for each candidate
        spec = importlib.util.spec_from_file_location("evaluator", tmp_path / "task/evaluator.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found.append(module)
    one, two = found
    assert one.evaluation.scorer is two.evaluation.scorer
    with one.evaluation.scorer:
        path = str(tmp_path / "task/initial_program.py")
        assert one.evaluate_stage1(path).metrics["valid"] == 1.0
        assert two.evaluate(path) == two.evaluate_stage2(path)


@pytest.mark.long
def test_the_evaluation_file_of_shinka_may_be_copied(task, tmp_path):
    copy = tmp_path / "elsewhere" / "evaluate.py"
    copy.parent.mkdir()
    copy.write_text((task / "evaluate.py").read_text())
    given = ["--program_path", str(task / "initial.py"), "--results_dir", str(tmp_path / "r")]
    env = os.environ | {"PYTHONPATH": str(Path(spo_jax.__file__).parents[1])}
    done = subprocess.run([sys.executable, copy, *given], env=env, cwd="/", timeout=120)
    assert done.returncode == 0
    assert json.loads((tmp_path / "r/correct.json").read_text())["correct"]


def test_the_message_is_made_of_the_contracts():
    plain = system_message(Scorer("tsp", **SMALL, kit="none", state=False))
    for role in ("destroy", "repair"):
        assert f"    {role}(dist, " in plain
    assert "import lns" not in plain
    assert "it is always 0" in plain or "always 0" in plain
    assert "a mean over 2 instances with 2 rollout(s) of 10 steps each" in plain
    assert "scores -1" in plain
    assert "$" not in plain
    own = system_message(Scorer("tsp", **SMALL, utility=f"{__name__}:below", failed=-9.0))
    assert "import lns" in own
    assert f"what the utility {__name__}:below makes of a pair's rollouts" in own
    assert "scores -9" in own


def test_folders_that_cannot_be_written(tmp_path, capsys, monkeypatch):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    for out, message in (("full", "not an empty folder"), ("full/file", "not an empty folder"),
                         ("full/file/x", "cannot be made: Not a directory")):  # fmt: skip
        with pytest.raises(InputError, match=message):
            write_task("shinka", "tsp", out=tmp_path / out)
    with monkeypatch.context() as patch:
        patch.setattr(type(get_problem("vrptw")), "simple", "")
        with pytest.raises(InputError, match="vrptw brings no trivial pair: give one with --start"):
            write_task("shinka", "vrptw", out=tmp_path / "new")
    with pytest.raises(InputError, match="unknown framework 'eoh': use openevolve, shinka"):
        write_task("eoh", "tsp", out=tmp_path / "new")
    with pytest.raises(InputError, match="nowhere"):
        write_task("shinka", "tsp", out=tmp_path / "new", prompts="nowhere")
    assert spo(["task", "eoh", "tsp", "--out", str(tmp_path / "new")]) == 2
    assert spo(["task", "shinka", "tsp"]) == 2
    assert capsys.readouterr().err.count("\n") == 2
    assert not (tmp_path / "new").exists()


def test_a_pair_to_begin_with(tmp_path):
    pair = get_problem("vrptw").pair
    write_task("openevolve", "vrptw", out=tmp_path / "task", start=pair)
    text = (tmp_path / "task/initial_program.py").read_text()
    assert parse_pair(text, "text").digest == load_pair(pair).digest
