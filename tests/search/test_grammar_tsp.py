"""The TSP grammar: its programs run on random tours, and a plain check judges what they return."""

import ast
import json
import math
import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.tsp import TSP
from spo_jax.envs.run.sandbox.gate.policy import check
from spo_jax.program import ROLES, Program, Prompt, Role, normalise, parse_response
from spo_jax.program.grammar.base import FORMS, Choices, Grammar
from spo_jax.search.writing.grammar import GrammarGenerator, answer, derivation, read_derivation

SIZES = (3, 5, 10, 50, 120)
STAGNATION = (0, 1, 7, 60, 1000)
seeds = st.integers(0, 10**9)


class Rng(random.Random):
    """The two NumPy names that grammar programs use, beside the standard ones."""

    def random(self, size: int | None = None):  # type: ignore[no-untyped-def]
        if size is None:
            return super().random()
        return np.array([super(Rng, self).random() for _ in range(size)])


def function(source: str, role: Role) -> Callable:
    namespace: dict = {}
    exec(source, namespace)
    return namespace[role]


def matrix(n: int) -> np.ndarray:
    coords = np.random.default_rng(n).random((n, 2))
    coords[-1] = coords[0]  # equal coordinates are lawful
    return np.sqrt(((coords[:, None] - coords[None]) ** 2).sum(-1))


MATRICES = {n: matrix(n) for n in SIZES}
ROWS = {n: tuple(map(tuple, m.tolist())) for n, m in MATRICES.items()}


def view(n: int, layout: str):  # type: ignore[no-untyped-def]
    return ROWS[n] if layout == "rows" else MATRICES[n]


def check_destroy(tour: list[int], partial: list[int], removed: list[int]) -> None:
    assert 1 <= len(removed) <= math.floor(35 * len(tour) / 100)
    assert len(set(removed)) == len(removed)
    assert partial == [node for node in tour if node not in removed]
    assert len(partial) + len(removed) == len(tour)


def check_repair(partial: list[int], complete: list[int], n: int) -> None:
    assert sorted(complete) == list(range(n))
    kept = [node for node in complete if node in set(partial)]
    shift = kept.index(partial[0])
    assert kept[shift:] + kept[:shift] == partial


def sampled(role: Role, count: int, state: bool = True) -> list[Choices]:
    grammar = get_problem("tsp").grammar(role)
    return [grammar.sample(random.Random(seed), state) for seed in range(count)]


@pytest.mark.long
def test_destroy_programs_keep_their_contract() -> None:
    grammar = get_problem("tsp").grammar("destroy")
    for k, choices in enumerate(sampled("destroy", 150)):
        source = grammar.render(choices)[1]
        program, layout = (
            function(source, "destroy"),
            check(source, "destroy", TSP.interface).layout,
        )
        rng = Rng(k)
        for n in SIZES:
            for z in STAGNATION:
                tour = rng.sample(range(n), n)
                partial, removed = program(view(n, layout), tour[:], z, rng)
                check_destroy(tour, partial, removed)


@pytest.mark.long
def test_repair_programs_keep_their_contract() -> None:
    grammar = get_problem("tsp").grammar("repair")
    for k, choices in enumerate(sampled("repair", 150)):
        source = grammar.render(choices)[1]
        program, layout = function(source, "repair"), check(source, "repair", TSP.interface).layout
        rng = Rng(k)
        for n in SIZES:
            for z in STAGNATION:
                tour = rng.sample(range(n), n)
                count = rng.randint(1, max(1, 35 * n // 100))
                if n == 3:
                    count = z % 2 + 1  # down to a partial tour of one node
                removed = rng.sample(tour, count)
                partial = [node for node in tour if node not in removed]
                complete = program(view(n, layout), partial[:], removed[:], z, rng)
                check_repair(partial, complete, n)


@pytest.mark.long
@pytest.mark.parametrize("role", ROLES)
def test_samples_pass_the_gate_and_read_well(role: Role) -> None:
    grammar = get_problem("tsp").grammar(role)
    lengths = []
    for choices in sampled(role, 400):
        strategy, source = grammar.render(choices)
        check(source, role, TSP.interface)
        assert strategy.endswith(".")
        assert "\n" not in strategy
        lines = source.splitlines()
        assert max(map(len, lines)) <= 100
        lengths.append(len(lines))
    assert np.median(lengths) <= 50
    assert max(lengths) <= 100


def count_derivations(grammar: Grammar, fixed: Choices) -> int:
    """Exactly how many derivations agree with `fixed`, by walking all of them."""

    def walk(at: int, choices: Choices) -> int:
        if at == len(grammar.slots):
            return 1
        slot = grammar.slots[at]
        assert slot.allowed is not None
        values = slot.allowed(choices)
        if slot.name in fixed:
            values = [value for value in values if value == fixed[slot.name]]
        if not values:
            return walk(at + 1, choices)
        return sum(walk(at + 1, {**choices, slot.name: value}) for value in values)

    return walk(0, {})


@pytest.mark.long
@pytest.mark.parametrize(
    ("role", "fixed"),
    [
        ("destroy", {"first": "radial", "second": "none", "split": "whole"}),
        (
            "repair",
            {
                "insert": "ordered",
                "order": "random",
                "ranking": "numpy",
                "budget": 20000,
                "group": "none",
                "noise": 0,
                "blink": 0,
                "polish": "none",
            },
        ),
    ],
)
def test_a_corner_of_the_grammar_alone_has_a_hundred_thousand_programs(
    role: Role, fixed: Choices
) -> None:
    assert count_derivations(get_problem("tsp").grammar(role), fixed) >= 100_000


@pytest.mark.long
@pytest.mark.parametrize("role", ROLES)
def test_large_samples_hardly_repeat(role: Role) -> None:
    grammar = get_problem("tsp").grammar(role)
    choices = sampled(role, 5000)
    distinct = {derivation(c): c for c in choices}
    assert len(distinct) >= 4800
    some = list(distinct.values())[:1000]
    assert len({normalise(grammar.render(c)[1]) for c in some}) == len(some)


@pytest.mark.parametrize("role", ROLES)
def test_without_state_the_programs_ignore_it(role: Role) -> None:
    grammar = get_problem("tsp").grammar(role)
    for choices in sampled(role, 200, state=False):
        strategy, source = grammar.render(choices)
        names = [n.id for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Name)]
        assert "steps_since_improvement" not in names
        assert "improvement" not in strategy
        assert "stagnation" not in strategy


def test_every_destroy_program_reads_the_state() -> None:
    grammar = get_problem("tsp").grammar("destroy")
    for choices in sampled("destroy", 300):
        names = [
            n.id for n in ast.walk(ast.parse(grammar.render(choices)[1])) if type(n) is ast.Name
        ]
        assert "steps_since_improvement" in names


@settings(deadline=None, max_examples=40)
@given(seeds, st.sampled_from(ROLES), st.sampled_from(FORMS))
def test_edits_give_new_programs_that_pass_the_gate(seed: int, role: Role, form: str) -> None:
    grammar = get_problem("tsp").grammar(role)
    rng = random.Random(seed)
    parents = [grammar.sample(rng), grammar.sample(rng)]
    child = grammar.edit(form, parents, rng)
    source = grammar.render(child)[1]
    check(source, role, TSP.interface)
    assert source not in [grammar.render(parent)[1] for parent in parents]
    assert grammar.mend(child, rng) == child


@settings(deadline=None, max_examples=30)
@given(seeds, st.sampled_from(ROLES))
def test_simplification_adds_no_mechanism_and_no_lines_of_options(seed: int, role: Role) -> None:
    grammar = get_problem("tsp").grammar(role)
    parent = grammar.sample(random.Random(seed))
    child = grammar.edit("simplification", [parent], random.Random(seed))
    for slot in grammar.slots:
        if slot.kind == "mechanism" and slot.name in child:
            assert child[slot.name] in (parent.get(slot.name), slot.plain)


# --- the generator --------------------------------------------------------------------------------


def prompt(role: Role, form: str, parents: tuple[Program, ...] = (), state: bool = True) -> Prompt:
    return Prompt("tsp", role, form, "a text", parents, None, state)


def program_of(role: Role, seed: int) -> Program:
    grammar = get_problem("tsp").grammar(role)
    completion = answer(grammar, grammar.sample(random.Random(seed)))
    return parse_response(role, completion.text, derivation=completion.derivation)


@pytest.mark.parametrize("role", ROLES)
def test_answers_parse_and_carry_their_derivation(role: Role) -> None:
    grammar = get_problem("tsp").grammar(role)
    parents = (program_of(role, 1), program_of(role, 2))
    prompts = [prompt(role, form, parents) for form in FORMS]
    groups = GrammarGenerator().generate(prompts, 4, seed=7)
    assert [len(group) for group in groups] == [4] * len(FORMS)
    for group in groups:
        for completion in group:
            program = parse_response(role, completion.text, derivation=completion.derivation)
            strategy, source = grammar.render(json.loads(completion.derivation))
            assert (program.strategy, program.source) == (strategy, source)
            assert program.source not in [parent.source for parent in parents]


def test_the_same_seed_gives_the_same_answers_and_another_does_not() -> None:
    prompts = [prompt("repair", "simplification", (program_of("repair", 3),))] * 2
    one, two = (GrammarGenerator().generate(prompts, 3, seed=1) for _ in range(2))
    texts = [[c.text for c in group] for group in one]
    assert texts == [[c.text for c in group] for group in two]
    assert texts[0] != texts[1]
    other = GrammarGenerator().generate(prompts, 3, seed=2)
    assert texts != [[c.text for c in group] for group in other]


def test_a_parent_without_a_derivation_leads_to_a_fresh_sample() -> None:
    typed = Program.from_source("destroy", "def destroy(a, b, c, d):\n    return b[1:], b[:1]\n")
    grammar = get_problem("tsp").grammar("destroy")
    for text in ("", "{}", "[1]", '{"first": ["radial"]}', "{broken"):
        assert (
            read_derivation(typed.__class__(**{**vars(typed), "derivation": text}), grammar) is None
        )
    (group,) = GrammarGenerator().generate([prompt("destroy", "simplification", (typed,))], 3, 0)
    assert len({completion.text for completion in group}) == 3


def test_a_stateless_prompt_is_answered_without_state() -> None:
    parents = (program_of("destroy", 1),)
    asked = prompt("destroy", "state-control-redesign", parents, state=False)
    for completion in GrammarGenerator().generate([asked], 5, 0)[0]:
        program = parse_response("destroy", completion.text)
        assert program.source.count("steps_since_improvement") == 1  # the parameter
