"""The style "frame": short prompts with a frame of the function, which a plain policy completes."""

import re

import pytest

from spo_jax.envs.problem import Problem
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.program import ROLES, Pair, Program, parse_answer
from spo_jax.search.writing.languages import LANGUAGES
from spo_jax.search.writing.prompts import INITIALIZATION, Templates, built_in, templates_of

POLICIES = {
    ("tsp", "destroy"): "removed_nodes = rng.sample(current_tour, limit)",
    ("tsp", "repair"): "rng.shuffle(order)",
    ("cvrp", "destroy"): "removed_customers = rng.sample(customers, limit)",
    ("cvrp", "repair"): "rng.shuffle(order)",
    ("vrptw", "destroy"): "removed_customers = rng.sample(customers, limit)",
    ("vrptw", "repair"): "rng.shuffle(order)",
}
PROBLEMS = ("tsp", "cvrp", "vrptw")
OPENING = {"tsp": (5, 12, 40), "cvrp": (3, 12, 40), "vrptw": (3, 12, 40)}


def ask(problem, role, form=INITIALIZATION, style="frame", kit=False, state=True):
    templates = templates_of(problem, kit, style)
    parents = [completed(problem, role, p) for p in range(templates.form(form).parents[0])]
    paired = LANGUAGES[templates.form(form).language].paired and role == "repair"
    destroy = completed(problem, "destroy") if paired else None
    return templates.render(problem, role, form, parents, destroy, state=state)


def completed(problem, role, number=0):
    """The program that a plain policy makes of a frame."""
    frame = templates_of(problem, style="frame").texts[f"frame-{role}.txt"]
    source = re.search(r"```python\n(.*)```", frame, re.DOTALL)[1]
    source = source.replace('"""..."""', f'"""Plain policy {number}."""')
    assert source.count("    ...\n") == 1
    source = source.replace("score = ...", "score = added")
    return parse_answer("labels", role, source.replace("...\n", POLICIES[problem, role] + "\n"))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_frame_with_a_plain_policy_is_a_valid_program(problem):
    with LocalEvaluator(get_problem(problem), 1, seed=0) as evaluator:
        pair = Pair(*(completed(problem, role) for role in ROLES))
        assert pair.destroy.strategy == pair.repair.strategy == "Plain policy 0."
        assert evaluator.check([pair.destroy, pair.repair]) == [None, None]
        for size in OPENING[problem]:
            instances = get_problem(problem).sample(size, 2, seed=size)
            found = evaluator.run([pair], instances, (0,), 30)
            assert found.ok.all(), found.reason
            assert (found.final_cost <= found.initial_cost).all()


@pytest.mark.long
def test_the_repair_of_time_windows_is_in_time_for_any_score():
    """Also at places that only just fit, which a score other than the added distance takes."""
    source = completed("vrptw", "repair").source
    problem = get_problem("vrptw")
    pairs = []
    for score in ("rng.random()", "-added", "room", "begin", "-back"):
        repair = parse_answer(
            "labels", "repair", source.replace("score = added", f"score = {score}")
        )
        pairs.append(Pair(completed("vrptw", "destroy"), repair))
    with LocalEvaluator(problem, 1, seed=0) as evaluator:
        found = evaluator.run(pairs, problem.sample(30, 3, seed=9), (0, 1), 20)
    assert found.ok.all(), found.reason


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("role", ROLES)
def test_a_prompt_ends_with_the_frame_and_how_to_answer(problem, role):
    text = ask(problem, role).text
    head, _, tail = text.partition("```python\n")
    assert tail.startswith(f"def {role}(")
    assert tail.rstrip().endswith("with nothing before or after it and without comments.")
    assert "STRATEGY" not in text
    assert ("35%" in head) == (role == "destroy")
    # The paper's requirements on steps_since_improvement and, for repairs, on the destroy.
    assert "steps_since_improvement" in head
    assert ("Plain policy 0." in head) == (role == "repair")


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("kit", [False, True])
@pytest.mark.parametrize("state", [False, True])
def test_every_form_is_asked_in_both_styles(problem, role, kit, state):
    for name, form in built_in().forms.items():
        if form.role not in ("both", role):
            continue
        long, short = (ask(problem, role, name, style, kit, state) for style in ("paper", "frame"))
        assert len(short.text) < len(long.text)
        assert not re.search(r"\$\w", short.text)
        assert not re.search(r"\$\w", long.text)
        assert ("import lns" in short.text) == ("import lns" in long.text) == kit
        if LANGUAGES[form.language].versions is None:
            assert f"def {role}(" in short.text


class Unframed(type(get_problem("vrptw"))):
    frame = Problem.frame


def test_a_problem_without_frames_has_the_same_prompts_in_both_styles():
    problem = Unframed()
    one, other = (Templates.read(None, problem, False, style) for style in ("paper", "frame"))
    for role in ROLES:
        destroy = Program.from_source("destroy", "def destroy(): pass", "None.")
        paired = destroy if role == "repair" else None
        texts = {t.render("vrptw", role, INITIALIZATION, [], paired).text for t in (one, other)}
        assert len(texts) == 1


def test_a_folder_of_the_user_has_the_last_word(tmp_path):
    (tmp_path / "output.txt").write_text("Only $role.\n")
    found = Templates.read(tmp_path, get_problem("tsp"), False, "frame")
    assert found.render("tsp", "destroy", INITIALIZATION).text.endswith("Only destroy.\n")
    (tmp_path / "output.txt").write_text("$frame\nOnly $role.\n")
    found = Templates.read(tmp_path, get_problem("tsp"), False, "frame")
    assert "def destroy(" in found.render("tsp", "destroy", INITIALIZATION).text
    (tmp_path / "output.txt").unlink()
    (tmp_path / "tsp-destroy.txt").write_text("Mine. $state_input $adaptation\n")
    found = Templates.read(tmp_path, get_problem("tsp"), False, "frame")
    assert found.render("tsp", "destroy", INITIALIZATION).text.startswith("Mine.")
