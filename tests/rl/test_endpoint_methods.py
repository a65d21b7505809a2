"""Methods over an endpoint: a server that answers in each method's own format."""

import re
from itertools import count

import numpy as np
import pytest

import spo_jax
from spo_jax.program import Prompt
from spo_jax.rl.endpoint.request_log import requests
from tests.rl.chat_server import config, opened, serving

pytestmark = pytest.mark.usefixtures("chat_key")

DESTROY = """def {name}(dist, current_tour, steps_since_improvement, rng):
    removed_nodes = rng.sample(current_tour, max(1, len(current_tour) // {n}))
    gone = set(removed_nodes)
    return [node for node in current_tour if node not in gone], removed_nodes
"""
REPAIR = """def {name}(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    for node in removed_nodes:
        tour.insert(rng.randrange(len(tour) + 1) % {n}, node)
    return tour
"""


class Script:
    """Answers as the models of the published methods do, each time with another program."""

    def __init__(self):
        self.numbers = count(4)
        self.asked = []

    def __call__(self, body, _):
        self.asked.append(body)
        text = body["messages"][-1]["content"]
        system = body["messages"][0]["content"] if len(body["messages"]) > 1 else ""
        if "You review code" in system:  # HSEvo
            return "1: 2 to 9"
        if "You analyse designs" in system:
            return f"**Analysis:** local ones.\n**Experience:** stay local {next(self.numbers)}."
        if "You give hints" in system:
            return f"Hint {next(self.numbers)}: stay local."
        if "Describe the operator anew" in text:  # MCTS-AHD
            return f"It stays local, in way {next(self.numbers)}."
        name = re.search(r"Name the function (\w+)", text)[1]
        role = name.split("_")[0]
        code = (DESTROY if role == "destroy" else REPAIR).format(name=name, n=next(self.numbers))
        if "one sentence into braces" in text:  # EoH, MCTS-AHD
            return f"{{A heuristic that does thing {next(self.numbers)}.}}\n```python\n{code}```"
        if "All that you answer is Python code" in system:  # ReEvo, HSEvo
            return f"```python\nimport math\n\n{code}```"
        assert re.search(rf"code of {name} alone", text)  # FunSearch
        return code


def discover(method, folder, **settings):
    script = Script()
    with serving(script) as server:
        run = spo_jax.discover(
            "tsp", preset="smoke", path=folder, generator="openai", base_url=server.url(),
            model="fake", method=method, method_settings=settings, pairs=20, size=8, instances=1,
            steps=4, finalists=0, select="utility", population_size=4, workers=1, concurrency=1,
            temperature=1.0, retries=0, verbose=False, prompts_style="paper", mend=0,
        )  # fmt: skip
    return run, script.asked


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("eoh", {}),
        ("eoh", {"version": "v0.1"}),
        ("eoh", {"version": "v0.2"}),
        ("funsearch", {"islands": 2, "prompts": 1, "samples": 2}),
        ("reevo", {"initial": 6}),
        ("mcts-ahd", {}),
        ("hsevo", {"initial": 6}),
    ],
)
def test_a_faithful_run_by_one_command(method, settings, tmp_path):
    run, asked = discover(method, tmp_path / "run", **settings)
    unread = [failure for failure in run.failures if failure.status == "unparsable"]
    assert not unread
    assert run.best is not None
    own = [program for program in run.programs if program.form not in ("start", "harmony")]
    assert {program.form.split("-")[0] for program in own} == {method.split("-")[0]}
    assert all(f"def {program.role}(" in program.source for program in own)
    assert "asks in its own language" in run.manifest["variant"]
    systems = {body["messages"][0]["content"] for body in asked if len(body["messages"]) == 2}
    warm = {body["temperature"] for body in asked}
    if method == "reevo":
        assert len(systems) == 2  # of the writer and of the reflector
        assert warm == {1.0, 1.3}
        first = [body for body in asked if body["temperature"] == 1.3]
        assert len(first) == 2 * 6  # a destroy and a repair of each of the first pairs
        assert all("trivial" in body["messages"][1]["content"] for body in first)
        assert np.nansum(run.metrics["reflections"]) == 13
        # What was sent is what the run keeps.
        kept = {prompt.text for prompt in run.prompts}
        assert {
            "\n\n".join(f"[{m['role']}]\n{m['content']}" for m in body["messages"])
            for body in first
        } <= kept
    elif method == "hsevo":
        assert len(systems) == 3  # of the writer, the reflector and the reviewer
        assert warm == {1.0, 1.3}
    else:
        assert (systems, warm) == (set(), {0.0, 1.0} if method == "mcts-ahd" else {1.0})
    if method == "funsearch":
        later = [body["messages"][0]["content"] for body in asked]
        assert any("def destroy_v0(" in text and "def destroy_v1(" in text for text in later)
        # 20 pairs: resets after the 4th, 8th, 12th and 16th.
        assert sum(run.metrics["resets"]) == 4


def test_a_request_is_known_by_its_system_message_and_its_temperature(tmp_path):
    plain = Prompt("tsp", "destroy", "x", "text")
    others = [
        Prompt("tsp", "destroy", "x", "text", system="Be brief."),
        Prompt("tsp", "destroy", "x", "text", warmer=0.3),
        Prompt("tsp", "destroy", "x", "text", system="Be brief.", warmer=0.3),
    ]
    keys = [request.key for request in requests([plain, *others, plain], 1, 7)]
    assert len(set(keys)) == 5
    assert [r.sample for r in requests([plain, *others, plain], 1, 7)] == [0, 0, 0, 0, 1]
    assert keys[0] == requests([plain], 1, 7)[0].key
    with serving(lambda body, _: str(body["temperature"])) as server:
        endpoint, _ = opened(server, tmp_path, temperature=0.5)
        found = endpoint.generate([plain, *others], 1, 7)
    assert [group[0].text for group in found] == ["0.5", "0.5", "0.8", "0.8"]
    assert config("http://x", temperature=0.5).generator.temperature == 0.5
