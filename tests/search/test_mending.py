"""Answers that are nearly right go back: a scripted endpoint, and the real sandbox."""

import _thread
import json
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from spo_fakes import Evaluator, small

import spo_jax
from spo_jax import presets
from spo_jax.config import Settings
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.generator import Generator
from spo_jax.program import Completion, Program, Prompt, Usage
from spo_jax.rl.endpoint.request_log import REQUESTS
from spo_jax.runs.database.store import dump
from spo_jax.runs.display.lines import bill
from spo_jax.runs.manifest import parse
from spo_jax.runs.report.progress import page
from spo_jax.search.parts import Parts
from spo_jax.search.plugins import require_parts, writer_and_learner
from spo_jax.search.sampling.mending import MOST_SHOWN, Wrong, quoted, sent_back
from spo_jax.search.sampling.mends import COPY
from spo_jax.search.sampling.sample import sample, written
from spo_jax.search.writing.prompts import Templates
from tests.rl.chat_server import KEY, serving

SECRET = "se-cret"  # what a program that runs says, and its text does not
HEADS = {
    "destroy": "def destroy(dist, current_tour, steps_since_improvement, rng):",
    "repair": "def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):",
}
BODIES = {
    "destroy": """
    # number {n}
    removed = rng.sample(current_tour, 1 + {n} % 2)
    chosen = {n}
    return [node for node in current_tour if node not in removed], removed
""",
    "repair": """
    chosen = {n}
    return partial_tour + sorted(removed_nodes, key=lambda node: node * {n} % 1009)
""",
}
WRONG = ("unparsable", "rejected", "crash")


@pytest.fixture(autouse=True)
def chat_key(monkeypatch):
    monkeypatch.setenv("SPO_API_KEY", KEY)


def fenced(code):
    return f"STRATEGY: Take some nodes.\nCODE:\n```python\n{code}```"


def right(role, n):
    return fenced(HEADS[role] + BODIES[role].format(n=n))


def wrong(kind, role, n):
    """An answer that fails in one of the ways; the number keeps its program apart."""
    if kind == "unparsable":
        return f"I would take out node {n}."
    body = BODIES[role].format(n=n)
    if kind == "rejected":
        return fenced(f"import os\n{HEADS[role]}{body}")
    line = f"    raise KeyError('-'.join(['se', 'cret']), dist[0][1], {n})\n"
    return fenced(HEADS[role] + "\n" + line + body.lstrip("\n"))


def role_of(body):
    text = next(m["content"] for m in body["messages"] if m["role"] == "user")
    return re.search(r"(?:exactly one Python|complete) function,? (\w+)", text)[1]


def turns(body):
    return sum(message["role"] == "assistant" for message in body["messages"])


class Script:
    """The first answer is right or wrong in one of three ways, by its seed; `then` gives others."""

    def __init__(self, then):
        self.then, self.stop = then, None

    def __call__(self, body, _):
        n, role = body["seed"], role_of(body)
        if self.stop is not None and self.stop(body):
            self.stop = None
            _thread.interrupt_main()
        if turns(body):
            return self.then(body, role, n)
        kind = ("right", *WRONG)[n % 4]
        return right(role, n) if kind == "right" else wrong(kind, role, n)


def mended(body, role, n):
    return right(role, n)


def still_wrong(body, role, n):
    return wrong(WRONG[n % 3], role, n)


def discover(server, path, **given):
    settings = {
        "preset": "smoke", "generator": "openai", "base_url": server.url(), "model": "fake",
        "rounds": 1, "mutation_groups": 1, "crossover_groups": 1, "responses": 4,
        "repairs_per_destroy": 4, "size": 10, "instances": 2, "rollouts": 1, "steps": 8,
        "finalists": 0, "select": "utility", "workers": 1, "concurrency": 4, "retries": 0,
        "prompt_price": 2.0, "completion_price": 8.0, "sample_rows": 8, "verbose": False,
    } | given  # fmt: skip
    return spo_jax.discover("tsp", path=path, **settings)


def bodies(server):
    return [body for _, body in server.asked]


# --- whole runs -----------------------------------------------------------------------------------


@pytest.mark.long
def test_what_fails_goes_back_with_the_reason_and_takes_its_place(tmp_path):
    with serving(Script(mended)) as server:
        run = discover(server, tmp_path / "run")
    first = [body for body in bodies(server) if not turns(body)]
    again = [body for body in bodies(server) if turns(body)]
    kinds = Counter(("right", *WRONG)[body["seed"] % 4] for body in first)
    assert min(kinds.values()) > 3  # each kind, for this seed of the run
    assert len(again) == sum(kinds[kind] for kind in WRONG) == len(run.mends)
    assert Counter(each.wrong for each in run.mends) == {kind: kinds[kind] for kind in WRONG}
    assert {each.status for each in run.mends} == {"ok"}
    # Each first failure is in the record with its own status, and no pair was spent on it.
    failed = Counter(each.status for each in run.failures)
    assert failed == {kind: kinds[kind] for kind in WRONG}
    assert all(each.status == "ok" for each in run.pairs)
    assert not any(each.reason.startswith("answer") for each in run.failures)
    [counts] = run.counts
    assert counts.valid_destroys == counts.destroy_answers == 8
    assert counts.valid_repairs == counts.repair_answers == 32
    assert all(SECRET in each.reason for each in run.failures if each.status == "crash")
    # The conversation: the prompt, the answer, what was wrong.
    for body in again:
        assert [m["role"] for m in body["messages"]] == ["user", "assistant", "user"]
        message = body["messages"][2]["content"]
        assert "Write the whole answer again" in message
        assert f"{role_of(body)}(dist, " in message
        assert SECRET not in message
        assert "$" not in message
    messages = {kind: [m.message for m in run.mends if m.wrong == kind] for kind in WRONG}
    assert all("no program could be read" in text for text in messages["unparsable"])
    for text in messages["rejected"]:
        assert "module 'os' is not available" in text
        assert "\nLine 1 of the program is `import os`.\n" in text
    for text in messages["crash"]:
        assert re.search(r"\((destroy|repair): KeyError at line 2\)\.\n", text)
    sent = {body["messages"][2]["content"] for body in again}
    assert sent == {text for some in messages.values() for text in some}


@pytest.mark.long
def test_a_line_of_a_program_that_ran_is_quoted_as_it_was_written(tmp_path):
    """The line is the model's own text, so what it says there is no news to it."""

    def plain(body, count):
        if turns(body):
            return right(role_of(body), body["seed"])
        head = HEADS[role_of(body)]
        return fenced(f"{head}\n    nothing = {{}}\n    return nothing[dist[0][1]]\n")

    with serving(plain) as server:
        run = discover(server, tmp_path / "run", crossover_groups=0)
    assert len(run.mends) == 4 + 4 * 4
    assert all(
        "KeyError at line 3).\nLine 3 of the program is `return nothing[dist[0][1]]`.\n"
        in each.message
        for each in run.mends
    )


@pytest.mark.long
def test_programs_of_mended_answers_are_marked_and_take_part(tmp_path):
    with serving(Script(mended)) as server:
        run = discover(server, tmp_path / "run", rounds=2)
    marked = {each.name: each.mended for each in run.programs if each.mended}
    assert set(marked.values()) == set(WRONG)
    assert len(marked) == len({each.program for each in run.mends})
    assert {each.form for each in run.programs if each.mended} > {"initialization"}
    names = {each.destroy for each in run.pairs} | {each.repair for each in run.pairs}
    assert marked.keys() <= names
    members = {m.name for each in run.populations.values() for m in each}
    assert members & marked.keys()
    sampled = {(s.round, s.role, s.prompt, s.place): s for s in run.samples}
    for each in run.mends:
        own = sampled[each.round, each.role, each.prompt, each.place]
        assert own.program == each.program in marked
        assert np.isnan(own.credit)


def test_a_second_answer_that_fails_is_one_failure_more(tmp_path):
    with serving(Script(still_wrong)) as server:
        run = discover(server, tmp_path / "run")
    first = [body for body in bodies(server) if not turns(body)]
    again = [body for body in bodies(server) if turns(body)]
    assert len(again) == sum(body["seed"] % 4 > 0 for body in first) > 0
    assert all(turns(body) == 1 for body in again)
    second = [each for each in run.failures if each.reason.startswith("answer 2: ")]
    assert Counter(each.status for each in second) == Counter(
        WRONG[body["seed"] % 3] for body in again
    )
    assert len(run.failures) == 2 * len(again)
    assert {each.status for each in run.mends} == set(WRONG)
    assert not any(each.mended for each in run.programs)
    [counts] = run.counts
    assert counts.valid_destroys == sum(
        role_of(body) == "destroy" and body["seed"] % 4 == 0 for body in first
    )
    assert SECRET not in "".join(each.message for each in run.mends)


@pytest.mark.long
def test_an_answer_goes_back_as_often_as_it_may(tmp_path):
    def late(body, role, n):
        return right(role, n) if turns(body) == 2 else wrong("rejected", role, n)

    with serving(Script(late)) as server:
        run = discover(server, tmp_path / "run", mend=3)
    again = Counter(turns(body) for body in bodies(server))
    assert again[1] == again[2] > 0
    assert again[3] == 0
    assert [each.status for each in run.mends if each.number == 1] == ["rejected"] * again[1]
    assert [each.status for each in run.mends if each.number == 2] == ["ok"] * again[1]
    assert sum(each.reason.startswith("answer 2: ") for each in run.failures) == again[1]


@pytest.mark.long
def test_what_a_mend_costs_is_counted_apart(tmp_path):
    with serving(Script(mended)) as server:
        run = discover(server, tmp_path / "run")
        log = [json.loads(line) for line in (run.path / REQUESTS).read_text().splitlines()]
    again = [body for body in bodies(server) if turns(body)]
    totals = {name: float(np.nansum(values)) for name, values in run.metrics.items()}

    def total(name):
        return totals[f"destroy/{name}"] + totals[f"repair/{name}"]

    assert total("mend_asked") == total("mended") == len(again)
    assert total("mend_lost") == total("mend_unfit") == total("copies") == 0
    assert total("tokens") + total("mend_tokens") == sum(e["completion_tokens"] for e in log)
    prompts = total("prompt_tokens"), total("mend_prompt_tokens")
    assert sum(prompts) == sum(entry["prompt_tokens"] for entry in log)
    assert prompts[1] == sum(len(body["messages"][0]["content"]) for body in again)
    for kind in ("", "mend_"):
        cost = 2 * total(f"{kind}prompt_tokens") + 8 * total(f"{kind}tokens")
        assert total(f"{kind}cost") == pytest.approx(cost / 1e6)
    summary = bill(totals)
    assert f"{sum(prompts):,.0f} prompt tokens" in summary
    assert f"to mend {len(again)} of {len(again)} answers" in summary
    text = (run.path / "log.txt").read_text()
    assert f"   mended {len(again)}/{len(again)}   " in text
    assert summary in text
    assert re.search(r"round 1 took: .*trial \d.*mending \d", text)

    class Nothing:
        def lines(self, *_, **__):
            return ""

        bars = lines

    [sentence] = page(run, Nothing())["mends"]
    counted = Counter(each.wrong for each in run.mends)
    assert f"rejected {counted['rejected']} of {counted['rejected']}" in sentence


@pytest.mark.slow
def test_neither_workers_nor_a_stop_change_the_end_and_nothing_is_asked_twice(tmp_path):
    with serving(Script(mended)) as server:
        whole = discover(server, tmp_path / "whole", rounds=2)
        wanted = Counter(body["seed"] for body in bodies(server))
        assert set(wanted.values()) == {1}
        server.asked.clear()
        discover(server, tmp_path / "two", rounds=2, workers=2)
        assert Counter(body["seed"] for body in bodies(server)) == wanted
        assert dump(tmp_path / "two") == dump(whole.path)

        for stop in (3, 10):  # among the mends of destroys, and of repairs
            path = tmp_path / f"stopped {stop}"
            server.asked.clear()
            server.reply.stop = lambda body, stop=stop: (
                turns(body) and sum(map(turns, bodies(server))) == stop
            )
            with pytest.raises(KeyboardInterrupt):
                discover(server, path, rounds=2)
            kept = {json.loads(line)["key"] for line in (path / REQUESTS).read_text().splitlines()}
            assert 0 < len(kept) < len(wanted)
            server.asked.clear()
            again = spo_jax.discover(path=path, resume=True)
            assert again.status == "finished"
            assert len(bodies(server)) == len(wanted) - len(kept)
            assert {body["seed"] for body in bodies(server)} < wanted.keys()
            assert dump(path) == dump(whole.path)


def test_without_mending_nothing_goes_back(tmp_path):
    with serving(Script(mended)) as server:
        run = discover(server, tmp_path / "run", mend=0)
    assert not any(map(turns, bodies(server)))
    assert len(run.mends) == 0
    assert not any("mend" in name for name in run.metrics)
    # What crashes is a pair then, which costs evaluations.
    assert {each.status for each in run.failures if each.subject == "pair"} == {"crash"}
    text = (run.path / "log.txt").read_text()
    assert "mended" not in text
    assert not re.search(r"took: .*(mending|trial)", text)


@pytest.mark.long
def test_other_methods_mend_too(tmp_path):
    with serving(Script(mended)) as server:
        run = discover(server, tmp_path / "run", method="best-of-n", pairs=12, rounds=3)
    assert len(run.mends) == sum(turns(body) for body in bodies(server)) > 4
    assert {each.status for each in run.mends} == {"ok"}
    assert all(np.isfinite(pair.utility) for pair in run.pairs)
    assert len(run.pairs) == 12  # no pair was lost to a failure


@pytest.mark.long
def test_a_mend_that_cannot_be_had_leaves_the_original_as_it_was(tmp_path):
    with serving(Script(lambda body, role, n: (500, "busy", {}))) as server:
        run = discover(server, tmp_path / "run")
    asked = sum(turns(body) for body in bodies(server))
    totals = {name: float(np.nansum(values)) for name, values in run.metrics.items()}
    assert totals["destroy/mend_lost"] + totals["repair/mend_lost"] == asked > 0
    assert run.status == "finished"
    assert not any(each.mended for each in run.programs)


# --- a role's answers -----------------------------------------------------------------------------


class Writer(Generator):
    """First answers as given, then `again` of (prompt); keeps what it was asked."""

    writes_prose = True

    def __init__(self, first, again, most=10**9):
        self.first, self.again, self.most, self.asked = first, again, most, []

    def generate(self, prompts, n, seed):
        self.asked.append((list(prompts), n, seed))
        if prompts[0].turns:
            assert n == 1
            return [(self.again(prompt),) for prompt in prompts]
        return [tuple(self.first)] * len(prompts)

    def fits(self, text):
        return len(text) <= self.most


def program(n, role="destroy"):
    return Program(role, HEADS[role] + BODIES[role].format(n=n), f"number {n}")


def sampled(first, again, parents=(), evaluator=None, most=10**9, **given):
    """(answers to one prompt, failures, the writer)."""
    writer = Writer([Completion(text) for text in first], again, most)
    config = small(generator="x:Y", mend=1, responses=len(first), **given)
    problem = get_problem("tsp")
    evaluator = evaluator or Evaluator(refuse=lambda n: False, verdict=lambda p: (Status.OK, 0.5))
    parts = Parts(config, problem, evaluator, writer)
    prompt = Prompt("tsp", "destroy", "mechanism-replacement", "Write one.", parents)
    [trial] = problem.sample(6, 1, 0)
    [answers], failures = sample(parts, 1, [prompt], trial=trial)
    return answers, failures, writer


RENAMED = right("destroy", 7).replace("removed", "gone").replace("# number 7", "# my own idea")


def test_a_parent_again_goes_back_once_and_another_takes_its_place():
    parents = (program(7), program(8))
    answers, failures, writer = sampled(
        [RENAMED, right("destroy", 9)], lambda p: Completion(right("destroy", 5)), parents
    )
    assert failures == []
    copy, other = answers.mended
    assert other is None
    assert copy.status == COPY
    assert copy.program.source == program(5).source == answers.programs[0].source
    assert copy.program.parents == (parents[0].digest, parents[1].digest)
    assert copy.program.form == "mechanism-replacement"
    (_, ([prompt], _, seed)) = writer.asked
    assert prompt.turns[0][0] == RENAMED
    assert "repeats one that you were shown" in prompt.turns[0][1]
    assert "A different operator is wanted" in prompt.turns[0][1]
    assert seed != writer.asked[0][2]
    assert written([answers], Settings())["destroy/copies"] == 1


@pytest.mark.parametrize(
    "again", [RENAMED, right("destroy", 8), "no idea", wrong("crash", "destroy", 5)]
)
@pytest.mark.parametrize("mend", [1, 2])
def test_a_parent_again_stands_where_the_second_answer_is_no_better(again, mend):
    def verdict(pair):
        return (Status.CRASH, None) if "raise" in pair.destroy.source else (Status.OK, 0.5)

    evaluator = Evaluator(refuse=lambda n: False, verdict=verdict)
    config = small(generator="x:Y", mend=mend, responses=1)
    writer = Writer([Completion(RENAMED)], lambda prompt: Completion(again))
    parts = Parts(config, get_problem("tsp"), evaluator, writer)
    prompt = Prompt("tsp", "destroy", "x", "Write one.", (program(7), program(8)))
    [trial] = parts.problem.sample(6, 1, 0)
    [answers], failures = sample(parts, 1, [prompt], trial=trial)
    assert len(writer.asked) == 2  # once, however often failures may go back
    [found] = answers.mended
    assert (found.status, found.program) == (COPY, None)
    assert "gone" in answers.programs[0].source  # the copy, which is a valid program
    known = again in (RENAMED, right("destroy", 8))
    assert found.attempts[0].status == (COPY if known else failures[0].status)
    assert len(failures) == (0 if known else 1)


def test_a_conversation_that_does_not_fit_is_not_sent():
    first = ["no idea", right("destroy", 3)]
    answers, failures, writer = sampled(first, None, most=200)
    assert len(writer.asked) == 1
    assert [each.status for each in failures] == ["unparsable"]
    assert answers.mended[0].attempts == ()
    assert written([answers], Settings()) == {
        "destroy/mend_asked": 0, "destroy/mended": 0, "destroy/copies": 0, "destroy/mend_unfit": 1,
    }  # fmt: skip


def test_whose_fault_a_trial_is(monkeypatch):
    """A plain repair that fails, and a fault of ours, do not make a destroy fail."""
    evaluator = Evaluator(refuse=lambda n: False, verdict=lambda pair: (Status.CRASH, None))
    run = evaluator.run
    for role, status, fails in (
        ("destroy", Status.CRASH, True), ("", Status.TIMEOUT, True),
        ("repair", Status.CRASH, False), ("destroy", Status.HOST_FAULT, False),
    ):  # fmt: skip

        def marked(*args, role=role, status=status, **more):
            assert more["seeds"] == (0,)
            assert more["steps"] == 3  # no more than those of the run
            found = run(*args, **more)
            found.status[...] = status
            return replace(found, role=np.full(found.role.shape, role, object))

        monkeypatch.setattr(evaluator, "run", marked)
        answers, failures, _ = sampled(
            [right("destroy", 3)], lambda p: Completion("no idea"), evaluator=evaluator
        )
        assert (answers.programs == (None,)) is fails
        assert [each.status for each in failures] == [status.label, "unparsable"] * fails


def test_the_reason_of_an_answer_that_was_cut_off_says_so():
    writer = Writer([Completion("so", usage=Usage(cut=True))], lambda p: Completion("no"))
    config = small(generator="x:Y", mend=1, responses=1)
    parts = Parts(config, get_problem("tsp"), Evaluator(), writer)
    sample(parts, 1, [Prompt("tsp", "repair", "x", "Write one.")])
    [prompt] = writer.asked[1][0]
    assert "it was cut off after 1200 tokens, so write a shorter one" in prompt.turns[0][1]
    # A contract of the user's that says no head: that of the problem's interface.
    assert "repair(dist, rest, removed, steps, rng) -> the complete solution" in prompt.turns[0][1]


def test_an_answer_that_was_lost_does_not_go_back():
    writer = Writer([Completion("", usage=Usage(lost=True))], None)
    parts = Parts(small(generator="x:Y", mend=1), get_problem("tsp"), Evaluator(), writer)
    [answers], failures = sample(parts, 1, [Prompt("tsp", "destroy", "x", "t")], n=1)
    assert len(writer.asked) == 1
    assert answers.mended == ()
    assert [each.status for each in failures] == ["unparsable"]


def test_calls_have_seeds_of_their_own():
    def seeds(**stream):
        writer = Writer([Completion("no idea")], lambda p: Completion("neither"))
        parts = Parts(small(generator="x:Y", mend=2), get_problem("tsp"), Evaluator(), writer)
        for role in ("destroy", "repair"):
            sample(parts, 1, [Prompt("tsp", role, "x", "t")] * 2, n=1, **stream)
        return [seed for _, _, seed in writer.asked]

    assert len(set(seeds())) == 6
    assert not set(seeds()) & set(seeds(stream=("again",)))
    assert seeds() == seeds()


# --- texts ----------------------------------------------------------------------------------------


def test_an_answer_as_it_goes_back():
    assert sent_back("<think>long</think> Here.") == "Here."
    assert sent_back("<think>never ends") == "<think>never ends"
    assert sent_back("  ") == "(nothing)"
    assert sent_back("a\ud800b\0c") == "a?bc"
    assert sent_back("x" * 2 * MOST_SHOWN) == "x" * MOST_SHOWN + "\n[...]"


def test_the_line_that_a_reason_names():
    own = Program("destroy", "first\n\n    second = {}\n" + "x" * 500)
    assert quoted(Wrong("crash", "KeyError at line 3", own)) == (
        "Line 3 of the program is `second = {}`."
    )
    assert len(quoted(Wrong("crash", "at line 4", own))) < 250
    for text in ("line 2", "line 9", "line 0", "no line"):
        assert quoted(Wrong("crash", text, own)) == ""
    assert quoted(Wrong("unparsable", "line 1")) == ""


def test_a_template_of_the_users_own(tmp_path):
    (tmp_path / "mend.txt").write_text("Costs $$5: $reason\n$line\nWanted: $interface\n")
    own = Templates.read(tmp_path)
    assert own.mending("a $b", "", "f()") == "Costs $5: a $b\nWanted: f()"
    assert own.mending("a", "Line $x.", "f()") == "Costs $5: a\nLine $x.\nWanted: f()"
    assert own.digest != Templates.read(None).digest
    (tmp_path / "mend.txt").write_text("$reason")
    with pytest.raises(InputError, match=r"mend\.txt lacks placeholder \$interface, \$line"):
        Templates.read(tmp_path)


# --- settings -------------------------------------------------------------------------------------


def test_who_mends_by_default():
    endpoint = {"generator": "openai", "base_url": "http://x/v1", "model": "m"}
    vllm = {"generator": "vllm", "vllm_url": "http://x", "model": "folder"}
    assert Settings.make(**endpoint).generator.mend == 1
    assert Settings.make(**vllm).generator.mend == 1
    assert Settings.make(model="folder").generator.mend == 1
    assert Settings.make(**endpoint, mend=3).generator.mend == 3
    for others in (
        {}, {"generator": "grammar"}, {**vllm, "model": "embedded"},
        {"generator": "x:Y"}, {**endpoint, "mend": 0},
    ):  # fmt: skip
        assert Settings.make(**others).generator.mend == 0
    with pytest.raises(InputError, match="mend is 11; it must be a whole number from 0 to 10 or n"):
        Settings.make(mend=11)
    for preset, problem in (("paper-tsp", "tsp"), ("paper-cvrp", "cvrp")):
        assert presets.read_preset(preset, problem)["mend"] == 0
        assert presets.settings(problem, preset, **endpoint).generator.mend == 0
    assert presets.settings("tsp", "smoke", **endpoint).generator.mend == 1


def test_a_writer_that_reads_no_reasons_is_refused():
    for given, who in (
        ({"generator": "grammar"}, "generator is grammar"),
        ({"model": "embedded"}, "model is embedded"),
        ({"model": "novice"}, "model is novice"),
    ):
        config = Settings.make(mend=1, **given)
        for function in (writer_and_learner, require_parts):
            with pytest.raises(InputError, match=f"mend is 1, and {who}, which reads no reasons"):
                function(config)


def test_pairs_of_answers_are_to_one_prompt():
    with pytest.raises(InputError, match="mended is sample, and update is evotune, which compares"):
        Settings.make(update="evotune", mended="sample", model="folder")


def test_a_run_from_before_there_was_mending_goes_on_without():
    config = Settings.make(generator="openai", base_url="http://x/v1", model="m").flat()
    assert config.pop("mend") == 1
    assert parse(json.dumps({"config": config}).encode())["config"]["mend"] == 0
