"""The CVRP grammar: its programs run on random routes; a plain check judges what they return."""

import ast
import random
from collections.abc import Callable
from itertools import chain

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.cvrp import CVRP
from spo_jax.envs.run.sandbox.gate.policy import check
from spo_jax.program import ROLES, Role, normalise, parse_response
from spo_jax.program.grammar.base import CROSSOVERS, FORMS, Choices, Grammar
from spo_jax.search.writing.grammar import answer, derivation

SIZES = (3, 5, 10, 50, 100)
STAGNATION = (0, 1, 7, 60, 1000)
FLEETS = ("usual", "tight", "loose", "alone")
seeds = st.integers(0, 10**9)

Routes = list[list[int]]


def function(source: str, role: Role) -> Callable:
    namespace: dict = {}
    exec(source, namespace)
    return namespace[role]


class World:
    """One instance, as a program whose layout is "rows" sees it."""

    def __init__(self, n: int, fleet: str):
        rng = np.random.default_rng([n, FLEETS.index(fleet)])
        coords = np.concatenate([[[0.5, 0.5]], rng.random((n, 2))])
        coords[-1] = coords[1]  # equal coordinates are lawful
        dist = np.hypot(*(coords[:, None] - coords[None]).transpose(2, 0, 1))
        demands = rng.integers(1, 10, n)
        capacity = {"usual": 50, "tight": 10, "loose": 10 * n, "alone": 7}[fleet]
        if fleet == "alone":  # each customer fills a vehicle
            demands[:] = capacity
        self.n = n
        self.dist = tuple(map(tuple, dist.tolist()))
        self.demands = (0, *demands.tolist())
        self.capacity = capacity

    def load(self, route: list[int]) -> int:
        return sum(self.demands[node] for node in route)

    def start(self, rng: random.Random) -> Routes:
        routes: Routes = []
        for node in rng.sample(range(1, self.n + 1), self.n):
            if routes and self.load([*routes[-1], node]) <= self.capacity:
                routes[-1].append(node)
            else:
                routes.append([node])
        return routes

    def check_destroy(self, current: Routes, partial: Routes, removed: list[int]) -> None:
        assert 1 <= len(removed) <= 35 * self.n // 100
        assert len(set(removed)) == len(removed)
        assert set(removed) <= set(range(1, self.n + 1))
        kept = [[node for node in route if node not in removed] for route in current]
        assert [route for route in partial if route] == [route for route in kept if route]

    def check_repair(self, partial: Routes, complete: Routes) -> None:
        assert sorted(chain.from_iterable(complete)) == list(range(1, self.n + 1))
        assert all(self.load(route) <= self.capacity for route in complete)
        retained = set(chain.from_iterable(partial))
        kept = [[node for node in route if node in retained] for route in complete]
        assert sorted(r for r in kept if r) == sorted(r for r in partial if r)


WORLDS = [World(n, fleet) for n in SIZES for fleet in FLEETS]


def sampled(role: Role, count: int, state: bool = True) -> list[Choices]:
    grammar = get_problem("cvrp").grammar(role)
    return [grammar.sample(random.Random(seed), state) for seed in range(count)]


def run_destroy(source: str, seed: int, worlds: list[World]) -> None:
    program, rng = function(source, "destroy"), random.Random(seed)
    for world in worlds:
        for z in rng.sample(STAGNATION, 2):
            current = world.start(rng)
            shown = [route[:] for route in current]
            partial, removed = program(world.dist, world.demands, world.capacity, shown, z, rng)
            world.check_destroy(current, partial, removed)


def run_repair(source: str, seed: int, worlds: list[World]) -> None:
    program, rng = function(source, "repair"), random.Random(seed)
    for world in worlds:
        z = rng.choice(STAGNATION)
        count = rng.randint(1, 35 * world.n // 100)
        if world.n == 3 and z == 0:
            count = 3  # nothing is left
        removed = rng.sample(range(1, world.n + 1), count)
        partial = [[v for v in route if v not in removed] for route in world.start(rng)]
        if z % 2:  # emptied routes may be dropped
            partial = [route for route in partial if route]
        shown = [route[:] for route in partial]
        arguments = (world.dist, world.demands, world.capacity, shown, removed[:], z, rng)
        world.check_repair(partial, program(*arguments))


RUN = {"destroy": run_destroy, "repair": run_repair}


@pytest.mark.long
@pytest.mark.parametrize("role", ROLES)
def test_programs_keep_their_contract(role: Role) -> None:
    grammar = get_problem("cvrp").grammar(role)
    for k, choices in enumerate(sampled(role, 300)):
        RUN[role](grammar.render(choices)[1], k, WORLDS[k % 2 :: 2])


@pytest.mark.long
@pytest.mark.parametrize("role", ROLES)
def test_samples_pass_the_gate_and_read_well(role: Role) -> None:
    grammar = get_problem("cvrp").grammar(role)
    lengths = []
    for choices in sampled(role, 400):
        strategy, source = grammar.render(choices)
        assert check(source, role, CVRP.interface).layout == "rows"
        assert strategy.endswith(".")
        assert "\n" not in strategy
        lines = source.splitlines()
        assert max(map(len, lines)) <= 100
        lengths.append(len(lines))
    assert np.median(lengths) <= 58
    assert max(lengths) <= 90


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


CORNERS: dict[Role, Choices] = {
    "destroy": {
        "first": "string",
        "second": "none",
        "split": "whole",
        "length_rule": "random",
        "gap": 0,
        "size_rule": "grow",
    },
    "repair": {
        "build": "sequence",
        "retry": "shift",
        "order": "random",
        "order_2": "none",
        "tries_rule": "grow",
        "tries_rate": 3,
        "cap": 10,
        "moves_range": "1:2",
        "scope": "all",
        "fit": "none",
        "noise": "0",
    },
}


@pytest.mark.long
@pytest.mark.parametrize(("role", "fixed"), CORNERS.items())
def test_a_corner_of_the_grammar_alone_has_a_hundred_thousand_programs(
    role: Role, fixed: Choices
) -> None:
    grammar = get_problem("cvrp").grammar(role)
    assert count_derivations(grammar, fixed) >= 100_000
    corner = [grammar.mend({**fixed}, random.Random(k)) for k in range(1000)]
    assert all(fixed.items() <= choices.items() for choices in corner)
    distinct = {derivation(choices) for choices in corner}
    texts = {normalise(grammar.render(choices)[1]) for choices in corner}
    assert len(texts) == len(distinct)  # so distinct derivations are distinct programs there


@pytest.mark.long
@pytest.mark.parametrize("role", ROLES)
def test_large_samples_hardly_repeat(role: Role) -> None:
    grammar = get_problem("cvrp").grammar(role)
    choices = sampled(role, 5000)
    assert len({derivation(c) for c in choices}) >= 4700
    assert len({normalise(grammar.render(c)[1]) for c in choices[:1000]}) >= 960


@pytest.mark.parametrize("role", ROLES)
def test_without_state_the_programs_ignore_it(role: Role) -> None:
    grammar = get_problem("cvrp").grammar(role)
    for choices in sampled(role, 200, state=False):
        strategy, source = grammar.render(choices)
        names = [n.id for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Name)]
        assert "steps_since_improvement" not in names
        assert "improvement" not in strategy
        assert "stagnation" not in strategy


def reads_state(source: str) -> bool:
    names = [n.id for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Name)]
    return "steps_since_improvement" in names


@pytest.mark.long
def test_every_destroy_program_and_most_repairs_read_the_state() -> None:
    for role, least in (("destroy", 1.0), ("repair", 0.5)):
        grammar = get_problem("cvrp").grammar(role)  # type: ignore[arg-type]
        sources = [grammar.render(c) for c in sampled(role, 300)]  # type: ignore[arg-type]
        reading = [reads_state(source) for _, source in sources]
        assert np.mean(reading) >= least
        for strategy, source in sources:
            mentioned = "improvement" in strategy or "stagnation" in strategy
            assert mentioned == reads_state(source)


@settings(deadline=None, max_examples=60)
@given(seeds, st.sampled_from(ROLES), st.sampled_from(FORMS), st.booleans())
@example(5385, "repair", "simplification", True)  # its one simpler form is the next sample
@example(5385, "repair", "simplification", False)
def test_edits_give_new_valid_programs(seed: int, role: Role, form: str, state: bool) -> None:
    grammar = get_problem("cvrp").grammar(role)
    rng = random.Random(seed)
    parents = [grammar.sample(rng) for _ in range(2 if form in CROSSOVERS else 1)]
    child = grammar.edit(form, parents, rng, state)
    source = grammar.render(child)[1]
    check(source, role, CVRP.interface)
    assert source not in [grammar.render(parent)[1] for parent in parents]
    assert grammar.mend(child, rng, state) == child
    assert state or not reads_state(source)
    RUN[role](source, seed, rng.sample(WORLDS, 4))


@settings(deadline=None, max_examples=30)
@given(seeds, st.sampled_from(ROLES))
@example(23347, "repair")  # as plain as it can be: the form gives another control
def test_simplification_brings_no_new_mechanism(seed: int, role: Role) -> None:
    grammar = get_problem("cvrp").grammar(role)
    parent = grammar.sample(random.Random(seed))
    present = [slot for slot in grammar.slots if slot.name in parent]
    assume(any(slot.plain not in (None, parent[slot.name]) for slot in present))
    child = grammar.edit("simplification", [parent], random.Random(seed))
    for slot in grammar.slots:
        if slot.kind == "mechanism" and slot.name in child:
            assert child[slot.name] in (parent.get(slot.name), slot.plain)


@pytest.mark.parametrize("role", ROLES)
def test_answers_parse_back(role: Role) -> None:
    grammar = get_problem("cvrp").grammar(role)
    for choices in sampled(role, 50):
        completion = answer(grammar, choices)
        program = parse_response(role, completion.text, derivation=completion.derivation)
        assert (program.strategy, program.source) == grammar.render(choices)


def test_a_plain_repair_inserts_where_it_is_cheapest() -> None:
    """Against a plain search of every place, one customer at a time (farthest first)."""
    grammar = get_problem("cvrp").grammar("repair")
    plain: Choices = {"build": "sequence", "retry": "once", "order": "far", "order_2": "none"}
    plain |= {"jitter": 0, "scope": "all", "fit": "none", "noise": "0", "fresh": "1"}
    program = function(grammar.render(grammar.mend(plain, random.Random(0)))[1], "repair")
    world, rng = World(20, "usual"), random.Random(3)
    removed = rng.sample(range(1, 21), 7)
    partial = [[v for v in route if v not in removed] for route in world.start(rng)]
    found = program(world.dist, world.demands, world.capacity, partial, removed, 0, rng)

    def length(routes: Routes) -> float:
        legs = [leg for r in routes for leg in zip([0, *r], [*r, 0], strict=True)]
        return sum(world.dist[a][b] for a, b in legs)

    expected = [route for route in partial if route]
    for node in sorted(removed, key=lambda v: -world.dist[0][v]):
        options = [[*expected, [node]]]
        for r, route in enumerate(expected):
            if world.load(route) + world.demands[node] <= world.capacity:
                for i in range(len(route) + 1):
                    grown = [*route[:i], node, *route[i:]]
                    options.append([*expected[:r], grown, *expected[r + 1 :]])
        expected = min(options, key=length)
    assert length(found) == pytest.approx(length(expected))
    assert sorted(found) == sorted(expected)
