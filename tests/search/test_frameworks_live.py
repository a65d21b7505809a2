"""OpenEvolve and ShinkaEvolve themselves, with a scripted endpoint as their model.

Their commands are looked for on PATH: they may be of another environment, which can import ours.
"""

import json
import os
import re
import shutil
import subprocess
import threading
from itertools import count
from pathlib import Path

import pytest

import spo_jax
from spo_jax.frameworks.folder import END, START, write_task
from spo_jax.frameworks.scoring import Scorer
from tests.rl.chat_server import serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SMALL = {"preset": "smoke", "size": 20, "instances": 2, "steps": 20, "workers": 1}
CODE = '''def destroy(dist, current_tour, steps_since_improvement, rng):
    """Remove a segment of {size} nodes in twenty."""
{first}    n = len(current_tour)
    size = max(1, n * {size} // 20)
    start = rng.randrange(n)
    removed_nodes = [current_tour[(start + k) % n] for k in range(size)]
    gone = set(removed_nodes)
    return [node for node in current_tour if node not in gone], removed_nodes


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    """Insert nodes in random order where they cost least."""
    order = rng.sample(removed_nodes, len(removed_nodes))
    return lns.ordered_insertion(dist, partial_tour, order)[0]
'''


class Script:
    """Answers in both frameworks' formats: a number of the parent changed, or the whole file.

    Every third program is hostile: it loops, or writes the file `here`.
    """

    def __init__(self, here):
        self.number, self.lock, self.texts = count(1), threading.Lock(), []
        self.hostile = [
            "    while True:\n        pass\n",
            f"    import os\n    os.mknod('{here}')\n",
        ]

    def __call__(self, body, _):
        with self.lock:
            k = next(self.number)
            text = "\n".join(each["content"] for each in body["messages"])
            self.texts.append(text)
        named = f"<NAME>\nedit_{k}\n</NAME>\n<DESCRIPTION>\nStep {k}.\n</DESCRIPTION>\n"
        shinka = "<NAME>" in text
        parent = re.search(r"# Current [Pp]rogram.*?```python\n(.*?)```", text, re.DOTALL)
        line = re.search(r"^ +(?:size|removed_nodes) = .*max\(1, n.*$", parent[1], re.MULTILINE)
        if "<<<<<<< SEARCH" in text and line and k % 3:
            new = re.sub(r"n // \d+|n \* \d+ // 20", f"n // {3 + k}", line[0])
            diff = f"<<<<<<< SEARCH\n{line[0]}\n=======\n{new}\n>>>>>>> REPLACE"
            return f"{named}<DIFF>\n{diff}\n</DIFF>" if shinka else f"Another number.\n{diff}"
        first = "" if k % 3 else self.hostile[k // 3 % 2]
        code = "import lns\n\n\n" + CODE.format(size=1 + k % 6, first=first)
        if "<<<<<<< SEARCH" in text:
            old = parent[1].split(f"{START}\n")[1].split(f"{END}")[0]
            diff = f"<<<<<<< SEARCH\n{old}=======\n{code}>>>>>>> REPLACE"
            return f"{named}<DIFF>\n{diff}\n</DIFF>" if shinka else diff
        code = f"{START}\n{code}{END}\n"
        return (
            f"{named}<CODE>\n```python\n{code}```\n</CODE>" if shinka else f"```python\n{code}```"
        )


def command(name):
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not on PATH")
    return found


def run(arguments, folder):
    env = os.environ | {
        "OPENAI_API_KEY": "none",
        "PYTHONPATH": str(Path(spo_jax.__file__).parents[1]),
        "OPENBLAS_NUM_THREADS": "1",
    }
    done = subprocess.run(
        arguments, env=env, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def test_openevolve(tmp_path):
    openevolve, task = command("openevolve-run"), tmp_path / "task"
    write_task("openevolve", "tsp", out=task, **SMALL)
    script = Script(tmp_path / "here")
    config = (task / "config.yaml").read_text()
    config = config.replace("parallel_evaluations: 1", "parallel_evaluations: 2")
    (task / "config.yaml").write_text(
        config.replace("cascade_evaluation: false", "cascade_evaluation: true")
    )
    with serving(script) as server:
        output = run(
            [openevolve, "task/initial_program.py", "task/evaluator.py", "--iterations", "9",
             "--config", "task/config.yaml", "--api-base", server.url(),
             "--primary-model", "scripted", "--output", "out"],
            tmp_path,
        )  # fmt: skip
    best = tmp_path / "out/best/best_program.py"
    found = json.loads((tmp_path / "out/best/best_program_info.json").read_text())["metrics"]
    with Scorer(preset=task / "task.toml") as scorer:
        assert scorer.file(best).value == found["combined_score"]
        assert found["combined_score"] > scorer.file(task / "initial_program.py").value
    assert "combined_score=-1.0000, valid=0.0000" in output
    assert not (tmp_path / "here").exists()
    assert all("Task: both operators in one file" in text for text in script.texts)
    spo_jax.evaluate(best, "tsp", ["uniform:10x1"], steps=5, seeds=1, references="none", workers=1)


def test_shinka(tmp_path):
    shinka, task = command("shinka_run"), tmp_path / "task"
    write_task("shinka", "tsp", out=task, **SMALL)
    script = Script(tmp_path / "here")
    with serving(script) as server:
        run(
            [shinka, "--task-dir", "task", "--config-fname", "config.yaml", "--results_dir", "out",
             "--num_generations", "8", "--set",
             f'evo.llm_models=["local/scripted@{server.url()}"]'],
            tmp_path,
        )  # fmt: skip
    found = {}
    for folder in sorted((tmp_path / "out").glob("gen_*")):
        metrics = json.loads((folder / "results/metrics.json").read_text())
        correct = json.loads((folder / "results/correct.json").read_text())
        assert correct["correct"] == (metrics["combined_score"] >= 0) == (correct["error"] is None)
        found[folder.name] = metrics["combined_score"]
    assert len(found) == 8
    assert -1.0 in found.values()
    best = tmp_path / "out/best/main.py"
    with Scorer(preset=task / "task.toml") as scorer:
        assert scorer.file(best).value == max(found.values()) > found["gen_0"]
    assert not (tmp_path / "here").exists()
    assert sum("Task: both operators in one file" in text for text in script.texts) >= 7
    spo_jax.evaluate(best, "tsp", ["uniform:10x1"], steps=5, seeds=1, references="none", workers=1)
