"""Prompts of other methods in their own languages, and what a run asks in them."""

import re
from dataclasses import replace

import pytest
from method_fakes import Writer, by_numbers, individual, run
from spo_fakes import Evaluator
from spo_fakes import number as number_of

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.peers.eoh import OPERATORS
from spo_jax.program import ROLES, Program
from spo_jax.search.writing.languages import LANGUAGES
from spo_jax.search.writing.prompts import Templates, built_in, templates_of

HEAD = "(dist, current_tour, steps_since_improvement, rng)"
PARENTS = tuple(
    Program("destroy", f"def destroy{HEAD}:\n    return {n}\n", f"Take {n}.") for n in range(5)
)


def asked(form, count, **more):
    return templates_of("tsp").render("tsp", "destroy", form, PARENTS[:count], **more)


def test_every_language_has_its_files():
    texts, forms = built_in().texts, built_in().forms
    for name, language in LANGUAGES.items():
        assert forms[language.first].language == name
        assert forms[language.first].parents[0] == 0
        assert {language.file("output.txt"), language.file("parent.txt")} <= texts.keys()
    assert {f.language for f in forms.values()} == LANGUAGES.keys()
    assert {name for name in forms if name.startswith("eoh-")} == {
        f"eoh-{operator}" for operator in ("i1", *OPERATORS)
    }


@pytest.mark.parametrize("form", [f for f in built_in().forms if built_in().forms[f].language])
@pytest.mark.parametrize("role", ROLES)
def test_the_contract_and_the_rules_are_the_same_everywhere(form, role):
    count = built_in().form(form).parents[0]
    head = HEAD if role == "destroy" else "(dist, partial_tour, removed_nodes, steps, rng)"
    parents = [Program(role, f"def {role}{head}:\n    return {n}\n", "x") for n in range(count)]
    paired = PARENTS[0] if role == "repair" else None
    texts = templates_of("tsp")
    shown = paired if LANGUAGES[built_in().form(form).language].paired else None
    own = texts.render("tsp", role, form, parents, shown, reflection="Stay local.")
    plain = texts.render("tsp", role, "initialization", (), paired)
    if shown != paired:  # G-LNS writes a repair to no destroy
        paired_text = re.search(r"(?s)Paired destroy: .*?(?=\n\nPolicy)", plain.text)[0]
        several = re.search(r"Destroy: every step .*", own.text)[0]
        plain = replace(plain, text=plain.text.replace(paired_text, several))
    name = re.search(rf"Name the function ({role}\w*)", own.text)[1]
    start = own.text.partition("Task")[0]
    assert (
        start.replace(f"function {name} and", f"function {role} and")
        == (plain.text.partition("Task")[0])
    )
    assert "STRATEGY" not in own.text
    assert (plain.answer, plain.system, plain.whole) == ("labels", "", plain.text)
    assert own.answer == LANGUAGES[built_in().form(form).language].answer


def test_eoh_speaks_of_thoughts_in_braces():
    for operator, words in {
        "i1": "a new destroy heuristic", "e1": "nothing in common", "e2": "the backbone",
        "m1": "modified version", "m2": "parameters", "m3": "overfitted to the instances",
    }.items():  # fmt: skip
        count = {"i1": 0, "e1": 5, "e2": 5}.get(operator, 1)
        prompt = asked(f"eoh-{operator}", count)
        assert words in prompt.text
        assert "one sentence into braces" in prompt.text
        assert (prompt.answer, prompt.system) == ("braces", "")
        for number, parent in enumerate(prompt.parents, 1):
            assert f"Heuristic {number}: {{{parent.strategy}}}" in prompt.text
            assert parent.source in prompt.text
    # M3: first the components, then which are overfitted, then these are simplified.
    m3 = asked("eoh-m3", 1).text
    order = [m3.index(word) for word in ("main components", "may be overfitted", "Simplify")]
    assert order == sorted(order)


def test_funsearch_shows_versions_by_score_and_the_next_head():
    text = asked("funsearch-version", 2).text
    code = text.split("```python\n")[1].split("```")[0]
    assert re.findall(r"def (\w+)\(", code) == ["destroy_v0", "destroy_v1", "destroy_v2"]
    assert "return 0" in code.split("def destroy_v1")[0]
    assert code.count("Improved version of `destroy_v0`") == 1
    assert code.rstrip().endswith('"""Improved version of `destroy_v1`."""')
    assert "code of destroy_v2 alone" in text
    one = asked("funsearch-version", 1).text
    assert re.findall(r"def (\w+)\(", one) == ["destroy_v0", "destroy_v1"]
    assert "Write destroy_v0" in asked("funsearch-first", 0).text


def test_reevo_asks_for_the_second_version():
    crossover = asked("reevo-crossover", 2, reflection="Look at the ends.")
    assert re.findall(r"def (\w+)\(", crossover.text) == ["destroy_v0", "destroy_v1"]
    assert "Look at the ends." in crossover.text
    mutation = asked("reevo-mutation", 1, reflection="Stay local.")
    assert re.findall(r"def (\w+)\(", mutation.text) == ["destroy_v1"]
    seeded = asked("reevo-seeded", 1)
    assert "design is a trivial one" in seeded.text
    for prompt in (crossover, mutation, seeded, asked("reevo-first", 0)):
        assert "Write destroy_v2" in prompt.text or "write destroy_v2" in prompt.text
        assert "new ones that solve them effectively" in prompt.system
        assert prompt.whole == f"[system]\n{prompt.system}\n\n[user]\n{prompt.text}"
    hint = built_in().short_reflection("tsp", *(individual(n, 0.5).pair for n in (1, 2)), 20)
    assert "You give hints" in hint.system
    assert "You give hints" in built_in().long_reflection("tsp", "", ["a"], 50).system


def test_mcts_ahd_shows_thoughts_and_utilities():
    for operator, count, words in (
        ("i1", 0, "of your own"), ("e1", 3, "differs from all"), ("e2", 2, "similar in form to"),
        ("m1", 1, "mechanisms"), ("m2", 1, "main parameters"), ("s1", 4, "the weakest first"),
    ):  # fmt: skip
        prompt = asked(f"mcts-{operator}", count, reflection="Utility: heuristic 1 0.5.")
        assert words in prompt.text
        assert ("Utility: heuristic 1 0.5." in prompt.text) == (count > 1)
        assert (prompt.answer, prompt.system) == ("braces", "")
        for number, parent in enumerate(prompt.parents, 1):
            assert f"Heuristic {number}: {{{parent.strategy}}}" in prompt.text
            assert parent.source in prompt.text
    e2 = asked("mcts-e2", 2, reflection="x").text
    assert "similar in form to heuristic 2" in e2
    assert "inspiration from heuristic 1" in e2
    thought = built_in().aligned_thought("tsp", PARENTS[3])
    assert "Take 3." in thought.text
    assert "return 3" in thought.text
    assert "fewer than 3 sentences" in thought.text


def test_hsevo_asks_for_the_second_version():
    crossover = asked("hsevo-crossover", 2, reflection="Look at the ends.")
    assert re.findall(r"def (\w+)\(", crossover.text) == ["destroy_v0", "destroy_v1"]
    mutation = asked("hsevo-mutation", 1, reflection="Look at the ends.")
    assert re.findall(r"def (\w+)\(", mutation.text) == ["destroy_v1"]
    seeded = asked("hsevo-seeded", 1, reflection="Look at the ends.")
    for prompt in (crossover, mutation, seeded, asked("hsevo-first", 0, reflection="Look at")):
        assert "rite destroy_v2" in prompt.text
        assert "Look at" in prompt.text
        assert "in fewer than 50 words" in prompt.text
        assert "solve optimization problems effectively" in prompt.system


def test_a_folder_changes_a_language_too(tmp_path):
    (tmp_path / "eoh-m3.txt").write_text("Cut this $role down: $parents")
    (tmp_path / "reevo-system.txt").write_text("Be brief.")
    (tmp_path / "mine.txt").write_text("#form kind=other parents=1 language=eoh\n$name $parents")
    texts = Templates.read(tmp_path, get_problem("tsp"))
    assert (
        "Cut this destroy down: Heuristic 1"
        in texts.render("tsp", "destroy", "eoh-m3", PARENTS[:1]).text
    )
    assert texts.render("tsp", "destroy", "reevo-first").system == "Be brief."
    assert texts.render("tsp", "destroy", "mine", PARENTS[:1]).answer == "braces"
    (tmp_path / "mine.txt").write_text("#form kind=other parents=1 language=latin\n$parents")
    with pytest.raises(InputError, match=r"mine\.txt begins with"):
        Templates.read(tmp_path, get_problem("tsp"))


# --- in runs --------------------------------------------------------------------------------------


def fair(method, **settings):
    writer = Writer(numbers=100_000, broken=0)
    evaluator = Evaluator(by_numbers, refuse=lambda n: False)
    rounds, end, _ = run(
        method, generator=writer, evaluator=evaluator, rounds=2, method_settings=settings
    )
    return rounds, end, [(prompts, n) for prompts, n, _ in writer.calls]


@pytest.mark.parametrize("method", ["eoh", "funsearch", "reevo", "mcts-ahd", "hsevo"])
def test_every_answer_in_its_language_is_read(method):
    rounds, _, calls = fair(method, **({"initial": 6} if method in ("reevo", "hsevo") else {}))
    assert not [failure for done in rounds for failure in done.failures if failure.text]
    forms = {prompt.form for prompts, _ in calls for prompt in prompts}
    assert all(form.startswith(method.split("-")[0]) or "reflection" in form for form in forms)
    written = [p for done in rounds for p in done.programs if p.form not in ("start", "harmony")]
    assert written
    for program in written:
        assert f"def {program.role}(" in program.source  # under the name of the role again
        assert "_v" not in program.source
        assert (program.strategy != "") == (method in ("eoh", "mcts-ahd"))
    # A repair prompt shows its destroy, by its code where it has no sentence.
    pairs = [p for prompts, _ in calls for p in prompts if p.form != "mcts-thought"]
    for prompt in (p for p in pairs if p.role == "repair"):
        thought = method in ("eoh", "mcts-ahd")
        shown = prompt.destroy.strategy if thought else prompt.destroy.source.strip()
        assert shown in prompt.text


def test_the_first_draw_of_reevo_is_warmer():
    _, _, calls = fair("reevo", initial=6)
    first = [prompt for prompts, _ in calls[:2] for prompt in prompts]
    assert {(p.form, p.warmer) for p in first} == {("reevo-seeded", 0.3)}
    assert {p.warmer for prompts, _ in calls[2:] for p in prompts} == {0}
    _, _, plain = fair("reevo", initial=6, seed="none", warmer=0.5)
    assert {(p.form, p.warmer) for p in plain[0][0]} == {("reevo-first", 0.5)}


def test_the_seed_of_reevo_is_the_first_elitist_and_no_member():
    rounds, end, _ = fair("reevo", initial=6)
    [seed] = [each for each in end.individuals if each.operator == "seed"]
    assert seed in rounds[0].individuals
    assert seed.pair.destroy not in [member.program for member in rounds[0].destroys]
    parents = {p for each in end.individuals if each.round == 1 for p in each.pair.destroy.parents}
    assert parents == {seed.pair.destroy.digest}  # every first prompt showed it


@pytest.mark.parametrize("method", ["reevo", "hsevo"])
def test_a_seed_that_nothing_beats_is_the_elitist(method):
    """It is drawn as a parent, and every mutant is its child; yet it is in no population."""
    writer = Writer(numbers=100_000, broken=0)

    def verdict(pair):
        trivial = "Remove a tenth" in pair.destroy.strategy
        return Status.OK, 0.75 if trivial else round(512 * number_of(pair.digest)) / 1024

    rounds, end, _ = run(
        method, generator=writer, evaluator=Evaluator(verdict, refuse=lambda n: False), pairs=40,
        method_settings={"initial": 8}, population_size=4,
    )  # fmt: skip
    [seed] = [each for each in end.individuals if each.operator == "seed"]
    born = [each for each in end.individuals if each.round > 1]
    mutants = [each for each in born if each.operator == "mutation"]
    assert mutants
    assert {each.pair.destroy.parents for each in mutants} == {(seed.pair.destroy.digest,)}
    crossed = [each.pair.destroy.parents for each in born if each.operator == "crossover"]
    assert any(seed.pair.destroy.digest in parents for parents in crossed)
    assert not any(m.program == seed.pair.destroy for done in rounds for m in done.destroys)
    assert {p.warmer for prompts, _, _ in writer.calls[2:] for p in prompts} == {0}


def test_glns_crosses_the_second_with_the_ideas_of_the_first():
    text = asked("glns-crossover", 2).text
    assert "similar in form to operator 2" in text
    assert "inspiration from operator 1" in text
    assert text.index("Operator 1\n") < text.index("Operator 2\n")
