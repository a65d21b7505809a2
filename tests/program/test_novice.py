"""What a novice writes first: by the labels of its derivations, and by what its programs say."""

import random
import re

import jax
import numpy as np
import pytest
from skills import skills

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.program import ROLES, Program, Role, normalise, parse_response
from spo_jax.program.grammar.base import CROSSOVERS, FORMS, INITIALIZATION, MUTATIONS, Grammar
from spo_jax.rl.policy import model_folder
from spo_jax.rl.qwen import load_pretrained
from spo_jax.rl.sampling import SamplingConfig, sample
from spo_jax.rl.tokens import Tokenizer
from spo_jax.search.writing.prompts import templates_of

CASES = [(problem, role, kit) for problem in ("tsp", "cvrp") for role in ROLES for kit in (1, 0)]
each_grammar = pytest.mark.parametrize(("problem", "role", "kit"), CASES)
# slot -> all that a first draft may have there; other slots are matters of taste
LABELS = {
    "first": {"random", "segment", "worst", "edges"},
    "second": {"none"},
    "seed": {"random"},
    "split": {"whole"},
    "opening": {"none"},
    "size_rule": {"fixed", "random", "skew low", "skew high"},
    "area": {0},
    "retry": {"once"},
    "tries_range": {"1:1"},
    "criterion": {"greedy", "cheapest", "farthest", "dearest"},
    "matrix": {"cheapest", "farthest"},
    "order_2": {"none"},
    "polish": {"none"},
    "blink": {0},
}


def grammar_of(problem: str, role: Role, kit: int) -> Grammar:
    grammar: Grammar = get_problem(problem).grammar(role, bool(kit))
    return grammar


@each_grammar
def test_first_drafts_have_no_skill(problem: str, role: Role, kit: int) -> None:
    grammar = grammar_of(problem, role, kit)
    novice, texts = grammar.novice(), set()
    for seed in range(300):
        choices = novice.sample(random.Random(seed))
        assert grammar.mend(choices, random.Random(0), state=False) == choices  # and so it runs
        for name, value in choices.items():
            assert value in LABELS.get(name, {value}), (name, value)
        _, source = grammar.render(choices)
        assert skills(source) == []
        texts.add(normalise(source))
    assert len(texts) > (150 if role == "destroy" else 60)


@each_grammar
def test_skills_are_common_among_all_programs_and_come_by_mutations(
    problem: str, role: Role, kit: int
) -> None:
    grammar, rng = grammar_of(problem, role, kit), random.Random(0)
    common = [skills(grammar.render(grammar.sample(rng))[1]) for _ in range(100)]
    assert sum(map(bool, common)) > 90
    novice, found = grammar.novice(), set()
    for _ in range(40):
        child = novice.sample(rng)
        for _ in range(12):
            child = novice.edit(rng.choice(MUTATIONS), [child], rng)
            found.update(skills(novice.render(child)[1]))
    assert found >= {each for one in common for each in one}


@each_grammar
def test_whatever_a_novice_edits_stays_a_program_of_the_grammar(
    problem: str, role: Role, kit: int
) -> None:
    grammar = grammar_of(problem, role, kit)
    novice, rng = grammar.novice(), random.Random(1)
    for form in FORMS:
        for _ in range(10):
            parents = [grammar.sample(rng) for _ in range(2 if form in CROSSOVERS else 1)]
            child = novice.edit(form, parents, rng)
            state = child.get("state", True) is not False
            assert grammar.mend(child, rng, state) == child
            assert not re.search(r"\$", grammar.render(child)[1])


@pytest.mark.slow
def test_the_model_of_that_name_writes_valid_first_drafts_without_skill() -> None:
    """All but few: of 32 drafts for two problems, two roles."""
    prompts = []
    for problem in ("tsp", "cvrp"):
        grammar = grammar_of(problem, "destroy", 1).novice()
        strategy, source = grammar.render(grammar.sample(random.Random(0)))
        destroy = Program.from_source("destroy", source, strategy)
        for role, shown in (("destroy", None), ("repair", destroy)):
            templates = templates_of(problem, True)
            prompts.append(templates.render(problem, role, INITIALIZATION, [], shown))
    folder = model_folder("novice")
    tokenizer = Tokenizer.load(folder)
    tokens = [tokenizer.prompt(prompt.text) for prompt in prompts]
    settings = SamplingConfig(
        temperature=0.8, max_new_tokens=400, context=4096, stop_tokens=tokenizer.stops
    )
    drawn = sample(load_pretrained(folder, np.float32), tokens, 8, jax.random.key(0), settings)
    plain, valid, texts = 0, 0, set()
    for prompt, answers in zip(prompts, drawn, strict=True):
        programs = [parse_response(prompt.role, tokenizer.decode(one.tokens)) for one in answers]
        plain += sum(skills(program.source) == [] for program in programs)
        texts |= {normalise(program.source) for program in programs}
        with LocalEvaluator(get_problem(prompt.problem), 1, seed=0) as evaluator:
            valid += sum(verdict is None for verdict in evaluator.check(programs))
    assert plain >= 29
    assert valid >= 30
    assert len(texts) > 20
