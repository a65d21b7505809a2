"""Derivations and the five forms of Table 3, on a grammar small enough to check by hand."""

import json
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spo_jax.errors import InputError
from spo_jax.program.grammar.base import (
    FORMS,
    MUTATIONS,
    STATE,
    Choices,
    Grammar,
    Slot,
    choice,
    uses_state,
)

AB = ("a", "b")
SLOTS = (
    choice("main", "mechanism", {"a": 1, "b": 1, "c": 1, "d": 1}),
    choice("extra", "mechanism", {"none": 1, "x": 1, "y": 1}, plain="none"),
    choice("size", "control", {1: 1, 2: 1, 3: 1, 4: 1, 5: 1}, plain=1),
    choice("depth", "control", {1: 1, 2: 1, 3: 1}, when=lambda c: c["main"] in AB),
    choice("rule", "control", lambda c: {"flat": 1, "z": 1} if uses_state(c) else {"flat": 1}),
    Slot("share", "control", lambda rng, c: rng.choice([0.1, 0.2, 0.3])),  # no `allowed`
    choice("option", "option", {"none": 3, "p": 1, "q": 1}, plain="none"),
)
TOY = Grammar("toy", "destroy", SLOTS, lambda c: ("toy", json.dumps(c)))
MECHANISMS = {"main", "extra"}
seeds = st.integers(0, 10**9)


def lawful(choices: Choices) -> bool:
    """The toy's rules, spelt out."""
    names = ["main", "extra", "size"] + ["depth"] * (choices["main"] in AB)
    return list(choices) == [*names, "rule", "share", "option"] and choices["share"] in (
        0.1,
        0.2,
        0.3,
    )


def sample(seed: int) -> Choices:
    return TOY.sample(random.Random(seed))


def differing(child: Choices, parent: Choices) -> set[str]:
    return {name for name in {*child, *parent} if child.get(name) != parent.get(name)}


@given(seeds)
def test_a_sample_is_lawful_repeatable_and_survives_json(seed: int) -> None:
    choices = sample(seed)
    assert lawful(choices)
    assert choices == sample(seed)
    assert json.loads(json.dumps(choices)) == choices


@given(seeds, seeds, st.sampled_from(FORMS))
def test_every_child_is_lawful_and_new(seed: int, other: int, form: str) -> None:
    parents = [sample(seed), sample(other)]
    child = TOY.edit(form, parents, random.Random(seed))
    assert lawful(child)
    if form not in ("initialization", "divergent-crossover"):
        assert child != parents[0]


@given(seeds)
def test_mechanism_replacement_changes_one_mechanism_and_keeps_the_rest(seed: int) -> None:
    parent = sample(seed)
    child = TOY.edit("mechanism-replacement", [parent], random.Random(seed))
    changed = differing(child, parent)
    assert len(changed & MECHANISMS) == 1
    assert changed - MECHANISMS <= ({"depth"} if "main" in changed else set())


@given(seeds)
def test_control_redesign_changes_controls_only(seed: int) -> None:
    parent = sample(seed)
    child = TOY.edit("state-control-redesign", [parent], random.Random(seed))
    assert differing(child, parent) <= {"size", "depth", "rule", "share"}


@given(seeds)
def test_simplification_only_sets_plain_values(seed: int) -> None:
    parent = sample(seed)
    child = TOY.edit("simplification", [parent], random.Random(seed))
    elaborate = parent["extra"] != "none" or parent["option"] != "none"
    for name in differing(child, parent):
        if elaborate:
            assert name in ("extra", "option")
            assert child[name] == "none"
        elif parent["size"] != 1:
            assert (name, child[name]) == ("size", 1)
        else:  # nothing left to simplify: another control, the same mechanisms
            assert name not in MECHANISMS | {"option"}


@given(seeds, seeds)
def test_divergent_crossover_has_a_mechanism_of_neither_parent(seed: int, other: int) -> None:
    parents = [sample(seed), sample(other)]
    child = TOY.edit("divergent-crossover", parents, random.Random(seed))
    assert child["main"] not in (parents[0]["main"], parents[1]["main"])


@given(seeds, seeds)
def test_shared_principle_keeps_what_the_parents_share(seed: int, other: int) -> None:
    parents = [sample(seed), sample(other)]
    shared = {n: v for n, v in parents[0].items() if parents[1].get(n) == v}
    child = TOY.edit("shared-principle-crossover", parents, random.Random(seed))
    if len(shared) < len(parents[0]):
        for name, value in shared.items():
            if name != "depth" or child["main"] in AB:
                assert child[name] == value


def test_shared_principle_inherits_from_both_parents() -> None:
    one: Choices = {
        "main": "a",
        "extra": "x",
        "size": 1,
        "depth": 1,
        "rule": "z",
        "share": 0.1,
        "option": "p",
    }
    two: Choices = {
        "main": "b",
        "extra": "y",
        "size": 2,
        "depth": 2,
        "rule": "flat",
        "share": 0.2,
        "option": "q",
    }
    children = [
        TOY.edit("shared-principle-crossover", [one, two], random.Random(k)) for k in range(300)
    ]
    for name in one:
        values = [child[name] for child in children if name in child]
        assert values.count(one[name]) > 60
        assert values.count(two[name]) > 60


def test_parents_from_elsewhere_are_mended() -> None:
    parent: Choices = {"main": "a", "depth": 9, "size": 4, "share": 0.7, "unknown": 1}
    child = TOY.mend(parent, random.Random(3))
    assert lawful(child)
    assert (child["main"], child["size"]) == ("a", 4)


@given(seeds, st.sampled_from(FORMS))
def test_without_state_no_choice_reads_it(seed: int, form: str) -> None:
    child = TOY.edit(form, [sample(seed), sample(seed + 1)], random.Random(seed), state=False)
    assert child.pop(STATE) is False
    assert child["rule"] == "flat"
    assert lawful(child)


def test_without_parents_every_form_samples() -> None:
    for form in FORMS:
        assert TOY.edit(form, [], random.Random(5)) == sample(5)


# --- the novice -----------------------------------------------------------------------------------

DRAFTS = {"main": {"a": 1.0, "b": 1.0}, "depth": {}, "rule": {"flat": 1.0}}
NOVICE = replace(TOY, drafts=DRAFTS).novice()
PLAIN = {"main": AB, "extra": ("none",), "size": (1,), "rule": ("flat",), "option": ("none",)}
STRUCTURE = MECHANISMS | {"option"}


def drafted(choices: Choices) -> bool:
    """A novice's first draft, spelt out."""
    return lawful({n: v for n, v in choices.items() if n != STATE}) and all(
        choices[name] in values for name, values in PLAIN.items()
    )


@given(seeds)
def test_a_novice_drafts_plainly_and_varies_what_its_table_leaves_open(seed: int) -> None:
    choices = NOVICE.sample(random.Random(seed))
    assert drafted(choices)
    assert not uses_state(choices)
    assert NOVICE.edit("simplification", [], random.Random(seed)) == choices
    drafts = [NOVICE.sample(random.Random(k)) for k in range(60)]
    assert {each["main"] for each in drafts} == {"a", "b"}
    assert {each["depth"] for each in drafts} == {1, 2, 3}


@given(seeds)
def test_a_novice_replaces_one_mechanism_or_option_by_any(seed: int) -> None:
    parent = NOVICE.sample(random.Random(seed))
    child = NOVICE.edit("mechanism-replacement", [parent], random.Random(seed))
    changed = differing(child, parent)
    assert len(changed & STRUCTURE) == 1
    assert changed - STRUCTURE <= ({"depth"} if "main" in changed else set())
    assert not uses_state(child)


def test_steps_of_a_novice_reach_all_that_the_grammar_has() -> None:
    reached: dict[str, set] = {slot.name: set() for slot in SLOTS}
    for k in range(40):
        rng = random.Random(k)
        child = NOVICE.sample(rng)
        for _ in range(15):
            child = NOVICE.edit(rng.choice(MUTATIONS), [child], rng)
            for name, value in child.items():
                reached.setdefault(name, set()).add(value)
    everything = [sample(seed) for seed in range(400)]
    for slot in SLOTS:
        assert reached[slot.name] == {each[slot.name] for each in everything if slot.name in each}


@given(seeds, seeds)
def test_a_novice_keeps_the_skill_of_its_parents(seed: int, other: int) -> None:
    parents = [sample(seed), sample(other)]
    child = NOVICE.edit("shared-principle-crossover", parents, random.Random(seed))
    free = {n for n in differing(*parents) if n != "depth"}
    if len(differing(*parents)) > 1:
        assert all(child[n] in (parents[0][n], parents[1][n]) for n in free)
    child = NOVICE.edit("mechanism-replacement", parents[:1], random.Random(seed))
    assert len(differing(child, parents[0]) - {"depth"}) <= 1


@given(seeds)
def test_a_novice_reads_the_state_from_a_redesign_of_the_control_on(seed: int) -> None:
    rng = random.Random(seed)
    draft = NOVICE.sample(rng)
    for form in FORMS:
        child = NOVICE.edit(form, [draft, draft], rng)
        assert uses_state(child) == (form == "state-control-redesign")
    reader = {**sample(seed), "rule": "z"}
    assert uses_state(NOVICE.edit("mechanism-replacement", [reader], rng))
    apart = NOVICE.edit("divergent-crossover", [reader, reader], rng)
    assert apart["main"] != reader["main"]
    assert all(apart[name] in values for name, values in PLAIN.items() if name != "main")
    without = NOVICE.edit("state-control-redesign", [draft], rng, state=False)
    assert not uses_state(without)


def test_errors_name_what_is_known() -> None:
    with pytest.raises(InputError, match="unknown prompt form 'sideways'"):
        TOY.edit("sideways", [sample(0)], random.Random(0))
