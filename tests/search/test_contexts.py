"""What a long prompt leaves out, what is recorded of a model, and whose fault a failure is."""

import math
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from spo_fakes import Generator, member, number_in, play, small

from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError
from spo_jax.program import Completion, Program, Prompt
from spo_jax.program.grammar.base import MUTATIONS
from spo_jax.search.credit import Credits
from spo_jax.search.groups import follower_groups, leader_groups
from spo_jax.search.plugins import GENERATORS
from spo_jax.search.rounds import Observer, Played
from spo_jax.search.sampling.sample import Answers, written
from spo_jax.search.writing.contexts import PromptMaker
from spo_jax.search.writing.prompts import INITIALIZATION, Templates, built_in, templates_of

# --- prompts that are too long --------------------------------------------------------------------


class Short(Generator):
    """A generator whose prompts may have so many characters."""

    def __init__(self, most, **options):
        super().__init__(broken=0, **options)
        self.most = most

    def fits(self, text):
        return len(text) <= self.most


def length(prompts, **show):
    """The longest of these prompts, if it showed of its programs what `show` says."""
    return max(
        len(
            templates_of(p.problem)
            .render(p.problem, p.role, p.form, p.parents, p.destroy, state=p.state, **show)
            .text
        )
        for p in prompts
    )


def test_a_long_prompt_drops_sources_before_strategies_and_parents_last():
    config = small(rounds=2, show_destroy="both", kit="none")
    _, _, parts = play(config, generator=Short(10**9))
    destroys, repairs = (parts.generator.calls[k][0] for k in (2, 3))
    assert {p.shortened for p in destroys + repairs} == {""}

    remarks = []

    class Watch(Observer):
        def remark(self, line):
            remarks.append(line)

    most = length([p for p in destroys if p.form in MUTATIONS])  # two sources are too many
    rounds, _, parts = play(config, generator=Short(most), observer=Watch())
    prompts = parts.generator.calls[2][0]
    assert [p.shortened for p in prompts] == ["", "", "", "sources", "sources"]
    for p, whole in zip(prompts, destroys, strict=True):
        assert (p.form, p.parents) == (whole.form, whole.parents)
        shown = "both" if not p.shortened else "strategy"
        assert (
            p.text
            == templates_of("tsp")
            .render("tsp", "destroy", p.form, p.parents, show_parents=shown)
            .text
        )
        assert all(parent.strategy in p.text for parent in p.parents)
    assert remarks[0] == (
        "round 2: 2 of 5 destroy prompts are too long for the context: 2 show their parents' "
        "strategies alone"
    )
    fresh = [p for p in rounds[1].programs if p.role == "destroy" and len(p.parents) == 2]
    assert fresh  # the strategies of both were in the prompt

    # Where not even strategies fit there are no parents, and then the destroy's source goes.
    bare = parts.generator.calls[1][0]
    most = (
        len(templates_of("tsp").render("tsp", "repair", INITIALIZATION, (), bare[0].destroy).text)
        + 40
    )
    remarks.clear()
    _, _, parts = play(config, generator=Short(most), observer=Watch())
    later = parts.generator.calls[3][0]
    assert {p.shortened for p in later} == {"all"}
    assert all(p.form == INITIALIZATION and not p.parents for p in later)
    assert all("Strategy: " in p.text and "def repair" not in p.text for p in later)
    assert "no parents and only the strategy of their destroy" in remarks[-1]


def test_a_model_run_records_what_was_written():
    class Tokens(Short):
        def sample(self, prompt, rng):
            text = super().sample(prompt, rng).text
            return Completion(text, np.zeros(7, np.int32), np.zeros(7, np.float32))

    rounds, _, _ = play(small(rounds=2, max_new_tokens=7), generator=Tokens(1))
    for done in rounds:
        counts = done.counts
        assert done.metrics["destroy/tokens"] == 7 * counts.destroy_answers
        assert done.metrics["repair/tokens"] == 7 * counts.repair_answers
        assert done.metrics["repair/cut"] == counts.repair_answers
    assert [done.metrics["destroy/shortened"] for done in rounds] == [0.0, 5.0]
    assert play(small(rounds=1))[0][0].metrics == {}


def test_an_answer_whose_last_token_ends_it_is_not_cut():
    tokens = np.zeros(7, np.int32)
    completions = tuple(
        Completion("", tokens[:n], finished=finished)
        for n, finished in ((7, True), (7, False), (6, None), (7, None))
    )
    answers = Answers(Prompt("tsp", "repair", INITIALIZATION, ""), completions, (None,) * 4)
    assert written([answers], small(max_new_tokens=7))["repair/cut"] == 2


# --- whose fault it is ----------------------------------------------------------------------------


def test_a_failure_is_the_fault_of_who_is_named():
    verdicts = {
        0: Played("d", "r", "response", "ok", 0.5),
        1: Played("d", "r", "response", "crash", math.nan, "destroy: KeyError", "destroy"),
        2: Played("d", "r", "response", "crash", math.nan, "repair: KeyError", "repair"),
        3: Played("d", "r", "response", "timeout", math.nan, "used up 2 s of CPU time"),
        4: Played("d", "r", "response", "host_fault", math.nan, "the sandbox process died"),
    }
    destroys = [member(n, 0.0, role="destroy").program for n in range(6)]
    repairs = [member(n, 0.0).program for n in range(5)]

    class Table:
        def verdict(self, destroy, repair):
            return verdicts[number_in(repair)]

    prompt = Prompt("tsp", "repair", INITIALIZATION, "", destroy=destroys[0])
    completions = tuple(Completion("") for _ in range(6))
    row = [Answers(prompt, completions, (*repairs, None))]
    nothing = Credits(np.full(1, np.nan), np.array([[0.5, *[np.nan] * 4]]))
    [group] = follower_groups([row], destroys[:1], [repairs], nothing, Table())
    assert group.failed.tolist() == [False, False, True, False, False, True]
    assert group.credits[0] == 0.5

    # A destroy has failed where every pair did, and one of them by its fault.
    rows = [[0, 1], [1, 2], [2, 2], [2, 3], [1, 4], []]
    expected = [False, True, False, False, False, False]
    asked = Answers(replace(prompt, role="destroy", destroy=None), completions, tuple(destroys))
    responses = [[repairs[k] for k in row] for row in rows]
    nothing = Credits(np.full(6, np.nan), np.full((6, 2), np.nan))
    [group] = leader_groups([asked], destroys, responses, nothing, Table())
    assert group.failed.tolist() == expected


def test_a_parents_program_earns_its_credit_or_is_left_out():
    source = "def {0}(dist, tour, steps, rng):\n    {1}return tour, []\n"
    for role, groups_of in (("destroy", leader_groups), ("repair", follower_groups)):
        parent = Program(role, source.format(role, ""))
        copy = Program(role, source.format(role, "# As before.\n    "))
        other = Program(role, source.format(role, "tour = tour[1:]\n    "))
        leader = Program("destroy", "its destroy")
        prompt = Prompt("tsp", role, "x", "", parents=(parent,), destroy=leader)
        answers = Answers(prompt, tuple(map(Completion, "abc")), (copy, other, parent))
        credits = Credits(np.array([3.0, 2.0, 4.0]), np.array([[3.0, 2.0, 4.0]]))
        programs = [copy, other, parent]
        if role == "destroy":
            played = ([answers], programs, [()] * 3, credits, None)
        else:
            played = ([[answers]], [leader], [programs], credits, None)
        [paid], [unpaid] = groups_of(*played), groups_of(*played, copies="unpaid")
        np.testing.assert_array_equal(paid.credits, [3, 2, 4])
        np.testing.assert_array_equal(unpaid.credits, [np.nan, 2, np.nan])
        assert not unpaid.failed.any()  # so that no failure_penalty is paid for them


# --- forms ----------------------------------------------------------------------------------------


def test_forms_of_the_users_own_take_turns_with_the_papers(tmp_path):
    """Every form is asked equally often in as many rounds as there are forms of its kind."""
    population = tuple(member(n, n / 10, role="destroy") for n in range(4))
    ours = built_in().in_turn("mutation", "destroy")
    crossovers = built_in().in_turn("crossover", "destroy")

    def asked(texts, k, config):
        make = PromptMaker(config, "tsp", texts)
        prompts = make.contexts(
            "destroy", population, random.Random(k), k=k, groups=config.search.group_forms
        )
        return [prompt.form for prompt in prompts]

    for groups in (2, 3, 4):  # with the package's forms alone every round is the same
        config = small(mutation_groups=groups)
        for k in (1, 2, 3):
            assert asked(templates_of("tsp"), k, config) == [*(ours * 2)[:groups], *crossovers]

    (tmp_path / "analogy.txt").write_text("#form kind=mutation parents=1\n$parents\n")
    (tmp_path / "trio.txt").write_text("#form kind=crossover parents=3 role=repair\n$parents\n")
    texts = Templates.read(tmp_path, get_problem("tsp"))
    rounds = [asked(texts, k, small()) for k in range(1, 5)]
    due = {**dict.fromkeys([*ours, "analogy"], 3), **dict.fromkeys(crossovers, 4)}
    assert Counter(form for forms in rounds for form in forms) == due
    assert rounds[0] == [*ours, *crossovers]
    assert rounds[1][0] == "analogy"


def test_a_run_asks_a_form_of_the_users_own(tmp_path):
    (tmp_path / "trio.txt").write_text("#form kind=crossover parents=3 role=repair\n$parents\n")
    rounds, _, parts = play(small(prompts=str(tmp_path)), generator=Generator(broken=0))
    asked = [prompt for call in parts.generator.calls for prompt in call[0]]
    assert {prompt.role for prompt in asked if prompt.form == "trio"} == {"repair"}
    assert {len(prompt.parents) for prompt in asked if prompt.form == "trio"} == {3}
    assert any(program.form == "trio" for done in rounds for program in done.programs)
    grammar = GENERATORS["grammar"]
    with pytest.raises(InputError, match="unknown prompt form 'trio': the grammar knows only"):
        grammar.generate([prompt for prompt in asked if prompt.form == "trio"], 1, 0)


# --- the user's templates -------------------------------------------------------------------------


class Editor(Generator):
    """Edits the templates after each call, as somebody may who plans the next run."""

    def __init__(self, folder):
        super().__init__(broken=0)
        self.folder, self.texts = folder, []

    def generate(self, prompts, n, seed):
        self.texts += [prompt.text for prompt in prompts]
        (self.folder / "rules.txt").write_text(f"Rules of call {len(self.calls) + 1} for $role.")
        return super().generate(prompts, n, seed)


def test_templates_are_read_once_when_the_run_is_opened(tmp_path):
    (tmp_path / "rules.txt").write_text("Rules of the beginning for $role.")
    writer = Editor(tmp_path)
    play(small(prompts=str(tmp_path)), generator=writer)
    assert len(writer.calls) == 8  # destroys and repairs of four rounds
    for text in writer.texts:
        assert "Rules of the beginning for" in text
        assert "Rules of call" not in text
