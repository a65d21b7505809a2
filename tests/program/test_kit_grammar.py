"""The grammars of programs with the kit: their programs run on its reference."""

import ast
import random
import re
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from spo_jax.envs.problem import Rules
from spo_jax.envs.problems import get_problem
from spo_jax.program import ROLES, Role, normalise, parse_response
from spo_jax.program.grammar.base import CROSSOVERS, FORMS, Choices, Grammar
from spo_jax.search.writing.grammar import answer, derivation

PROBLEMS = ("tsp", "cvrp", "vrptw")
STAGNATION = (0, 1, 4, 7, 30, 1000)
SIZES = (3, 5, 12, 24)
seeds = st.integers(0, 10**9)
problems = st.sampled_from(PROBLEMS)
roles = st.sampled_from(ROLES)
each_grammar = pytest.mark.parametrize(
    ("problem", "role"), [(problem, role) for problem in PROBLEMS for role in ROLES]
)


def kit(problem: str) -> ModuleType:
    return import_module(f"spo_jax.envs.problems.{problem}.kit.reference")


def grammar_of(problem: str, role: Role) -> Grammar:
    grammar: Grammar = get_problem(problem).grammar(role, kit=True)
    return grammar


def function(problem: str, source: str, role: Role) -> Callable[..., Any]:
    """The program's function, with the reference as its `lns`."""
    namespace: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "lns", kit(problem))
        exec(source, namespace)
    found: Callable[..., Any] = namespace[role]
    return found


def rules_of(problem: str, size: int) -> Rules:
    known = get_problem(problem)
    return known.rules(known.sample(size, 1, 3)[0].seen())


RULES = {problem: [rules_of(problem, size) for size in SIZES] for problem in PROBLEMS}


def run(problem: str, role: Role, source: str, rng: random.Random) -> None:
    """Run the program once on every size; the problem's own rules judge what it returns."""
    program = function(problem, source, role)
    for rules in RULES[problem]:
        arguments = rules.arguments("rows")
        current, z = rules.start(rng), rng.choice(STAGNATION)
        if role == "destroy":
            rules.destroyed(current, program(*arguments, rules.copy(current), z, rng))
            continue
        nested = problem != "tsp"
        items = [node for route in current for node in route] if nested else list(current)
        removed = rng.sample(items, rng.randint(1, max(1, 35 * len(items) // 100)))
        kept = [
            [v for v in part if v not in removed] for part in (current if nested else [current])
        ]
        if nested and z % 2:  # emptied routes may be dropped
            kept = [route for route in kept if route]
        partial = kept if nested else kept[0]
        rules.repaired(program(*arguments, partial, removed, z, rng))


def sampled(problem: str, role: Role, count: int, state: bool = True) -> list[Choices]:
    grammar = grammar_of(problem, role)
    return [grammar.sample(random.Random(seed), state) for seed in range(count)]


def reads_state(source: str) -> bool:
    names = [n.id for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Name)]
    return "steps_since_improvement" in names


@pytest.mark.long
@each_grammar
def test_programs_keep_their_contract(problem: str, role: Role) -> None:
    grammar = grammar_of(problem, role)
    for k, choices in enumerate(sampled(problem, role, 80)):
        run(problem, role, grammar.render(choices)[1], random.Random(k))


@each_grammar
def test_programs_are_short_and_call_what_the_kit_has(problem: str, role: Role) -> None:
    grammar, lengths = grammar_of(problem, role), []
    for choices in sampled(problem, role, 400):
        strategy, source = grammar.render(choices)
        assert source.startswith("import lns\n")
        assert ("import math" in source) == ("math." in source)
        called = set(re.findall(r"lns\.(\w+)", source))
        assert called <= set(kit(problem).__all__)
        assert called
        assert strategy.endswith(".")
        assert "\n" not in strategy
        assert "$" not in strategy + source
        lines = [line for line in source.splitlines() if line]
        assert max(map(len, lines)) <= 100
        lengths.append(len(lines))
    assert np.median(lengths) <= 17
    assert max(lengths) <= 30


def test_the_programs_of_all_grammars_have_few_distinct_lines() -> None:
    """A line, with the indentation of the next, is a token of a small language model."""
    pieces: set[str] = set()
    for problem in ("tsp", "cvrp"):  # those of the model that ships
        for role in ROLES:
            grammar = grammar_of(problem, role)
            for choices in sampled(problem, role, 2000):
                pieces.update(re.findall(r"[^\n]*\n+ *", grammar.render(choices)[1]))
    assert len(pieces) <= 900


@pytest.mark.long
@each_grammar
def test_samples_hardly_repeat_and_the_same_choices_give_the_same_text(
    problem: str, role: Role
) -> None:
    grammar = grammar_of(problem, role)
    choices = sampled(problem, role, 2000)
    texts = [grammar.render(c) for c in choices]
    assert len({normalise(source) for _, source in texts}) >= 1900
    assert texts[:200] == [grammar.render(dict(c)) for c in choices[:200]]
    sources: dict[str, str] = {}
    for c, (_, source) in zip(choices, texts, strict=True):
        assert sources.setdefault(derivation(c), source) == source


@each_grammar
def test_the_state_is_read_where_it_may_be(problem: str, role: Role) -> None:
    grammar = grammar_of(problem, role)
    texts = [grammar.render(choices) for choices in sampled(problem, role, 300)]
    least = 1.0 if role == "destroy" else 0.6
    assert np.mean([reads_state(source) for _, source in texts]) >= least
    for strategy, source in texts:
        mentioned = "improvement" in strategy or "stagnation" in strategy
        assert mentioned == reads_state(source)
    for choices in sampled(problem, role, 200, state=False):
        strategy, source = grammar.render(choices)
        assert not reads_state(source)
        assert "improvement" not in strategy
        assert "stagnation" not in strategy


@pytest.mark.long
@settings(deadline=None, max_examples=100)
@given(seeds, problems, roles, st.sampled_from(FORMS), st.booleans())
def test_edits_give_new_programs_that_run(
    seed: int, problem: str, role: Role, form: str, state: bool
) -> None:
    grammar, rng = grammar_of(problem, role), random.Random(seed)
    parents = [grammar.sample(rng) for _ in range(2 if form in CROSSOVERS else 1)]
    child = grammar.edit(form, parents, rng, state)
    source = grammar.render(child)[1]
    assert source not in [grammar.render(parent)[1] for parent in parents]
    assert grammar.mend(child, rng, state) == child
    assert state or not reads_state(source)
    run(problem, role, source, rng)


@settings(deadline=None, max_examples=60)
@example(36681827, "vrptw", "destroy")
@given(seeds, problems, roles)
def test_simplification_brings_no_mechanism_and_no_longer_program(
    seed: int, problem: str, role: Role
) -> None:
    grammar = grammar_of(problem, role)
    parent = grammar.sample(random.Random(seed))
    present = [slot for slot in grammar.slots if slot.name in parent]
    structural = [slot for slot in present if slot.kind != "control"]
    assume(any(slot.plain not in (None, parent[slot.name]) for slot in structural))
    child = grammar.edit("simplification", [parent], random.Random(seed))
    for slot in grammar.slots:
        if slot.kind == "mechanism" and slot.name in child:
            assert child[slot.name] in (parent.get(slot.name), slot.plain)
    controls = [slot.name for slot in present if slot.kind == "control" and slot.name in child]
    if any(child[name] != parent[name] for name in controls):
        return  # what read the state is gone, and another control reads it now
    before, after = (grammar.render(choices)[1] for choices in (parent, child))
    assert after.count("\n") <= before.count("\n")


@each_grammar
def test_the_strategy_says_the_numbers_of_the_source(problem: str, role: Role) -> None:
    """Each number of the choices that is a parameter of a mechanism stands in both."""
    grammar = grammar_of(problem, role)
    for choices in sampled(problem, role, 300):
        strategy, source = grammar.render(choices)
        for name in ("power", "weight", "cap", "budget", "budget_low", "region_size", "near"):
            value = str(choices.get(name, 0)).rpartition(" ")[2]
            if value != "0":
                assert re.search(rf"(?<![\d.]){re.escape(value)}(?![\d.])", source), (name, source)
                assert re.search(rf"(?<![\d.]){re.escape(value)}(?![\d])", strategy), (
                    name,
                    strategy,
                )


@each_grammar
def test_answers_parse_back(problem: str, role: Role) -> None:
    grammar = grammar_of(problem, role)
    for choices in sampled(problem, role, 30):
        completion = answer(grammar, choices)
        program = parse_response(role, completion.text, derivation=completion.derivation)
        assert (program.strategy, program.source) == grammar.render(choices)


@each_grammar
def test_without_the_kit_the_grammars_are_the_plain_ones(problem: str, role: Role) -> None:
    plain: Grammar = get_problem(problem).grammar(role)
    assert plain is not grammar_of(problem, role)
    assert "lns" not in plain.render(plain.sample(random.Random(0)))[1]
