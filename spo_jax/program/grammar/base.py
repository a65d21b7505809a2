"""Derivations and their edits, shared by all grammars of operator programs.

A grammar is a sequence of slots. Sampling walks the slots in order and draws one choice per slot.
The slot sees the earlier choices and may return None if it does not apply. The resulting dict is
the program's derivation (JSON-serialisable, in slot order), and `render` turns it into a strategy
sentence and a source text. So edits change derivations, never text: each of the five evolutionary
forms of the paper's Table 3 requests some choices of the parents. The walk keeps a requested choice
if the slot still applies and allows the value, and redraws otherwise.

Without state conditioning (the paper's second ablation) the walk starts from {"state": False}
instead of an empty dict: slots ask `uses_state(choices)` before they offer a choice that reads
steps_since_improvement.

A grammar has a `novice` too, whose first drafts are plain: what it does not draw first, its edits
add one choice at a time. Whatever the grammar can derive, a novice can reach.
"""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from spo_jax.errors import InputError
from spo_jax.program import Role

Choice = str | int | float | bool
Choices = dict[str, Choice]
Parents = Sequence[Choices]
Kind = Literal["mechanism", "control", "option"]
Weights = Mapping[Choice, float]  # the values a slot allows, each with its relative weight
Wish = Callable[["Slot", Choices], Choice | None]
Draw = Callable[[random.Random, Choices], Choice | None]

INITIALIZATION = "initialization"
MECHANISM_REPLACEMENT = "mechanism-replacement"
STATE_CONTROL_REDESIGN = "state-control-redesign"
SIMPLIFICATION = "simplification"
DIVERGENT_CROSSOVER = "divergent-crossover"
SHARED_PRINCIPLE_CROSSOVER = "shared-principle-crossover"
MUTATIONS = (MECHANISM_REPLACEMENT, STATE_CONTROL_REDESIGN, SIMPLIFICATION)
CROSSOVERS = (DIVERGENT_CROSSOVER, SHARED_PRINCIPLE_CROSSOVER)
FORMS = (INITIALIZATION, *MUTATIONS, *CROSSOVERS)

STATE = "state"  # reserved key of a derivation, present (False) only without state conditioning

_RETRIES = 40  # attempts at a child whose text differs from its parents'
_PROBES = 200  # draws that decide whether a slot without `allowed` may take a value


def uses_state(choices: Choices) -> bool:
    """Whether the derived program may read steps_since_improvement."""
    return choices.get(STATE, True) is not False


@dataclass(frozen=True)
class Slot:
    """One decision of a derivation.

    kind: "mechanism" (what the program does), "control" (sizes, scopes, thresholds and how they
        follow the state) or "option" (an extra that can be left out).
    draw: a choice, given those of the earlier slots; None if the slot does not apply.
    plain: the simplest value, which simplification sets; None if there is none.
    allowed: the values the slot may take, given the earlier choices; empty if it does not apply.
        Without it, values are compared with `_PROBES` draws.
    skilled: a choice where an edit changes the slot; None: `draw`, as in all else.
    """

    name: str
    kind: Kind
    draw: Draw
    plain: Choice | None = None
    allowed: Callable[[Choices], Sequence[Choice]] | None = None
    skilled: Draw | None = None

    def accepts(self, value: Choice, choices: Choices) -> bool:
        """Whether the slot could have drawn `value` after `choices`."""
        if self.allowed is not None:
            return value in self.allowed(choices)
        probe = random.Random(0)
        return any(self.draw(probe, choices) == value for _ in range(_PROBES))


def choice(
    name: str,
    kind: Kind,
    weights: Weights | Callable[[Choices], Weights],
    *,
    when: Callable[[Choices], bool] | None = None,
    plain: Choice | None = None,
) -> Slot:
    """A slot over a finite set of weighted values.

    weights: {value: relative weight}, or a function of the earlier choices that returns one; an
        empty mapping, or a false `when`, means that the slot does not apply.
    """

    def offered(choices: Choices) -> Weights:
        if when is not None and not when(choices):
            return {}
        return weights(choices) if callable(weights) else weights

    def draw(rng: random.Random, choices: Choices) -> Choice | None:
        table = offered(choices)
        if not table:
            return None
        return rng.choices(list(table), list(table.values()))[0]

    return Slot(name, kind, draw, plain, lambda choices: tuple(offered(choices)))


@dataclass(frozen=True)
class Grammar:
    """A stochastic grammar of one role's programs.

    render: (strategy sentence, source) of a derivation; a pure function.
    drafts: what a novice draws first: weights by slot, and {} for a slot that it draws as others
        do. Any other slot takes its plain value, if it has one.
    is_novice: whether this is the grammar of a novice.
    """

    problem: str
    role: Role
    slots: tuple[Slot, ...]
    render: Callable[[Choices], tuple[str, str]]
    drafts: Mapping[str, Weights] = field(default_factory=dict)
    is_novice: bool = False

    def novice(self) -> "Grammar":
        """The same programs, by a writer whose first drafts are plain and whose edits are steps.

        A draft takes its choices from `drafts` and never reads the state. An edit draws what it
        changes from all that the slot allows and what else that calls for as a draft does. A
        mechanism replacement may change an option in place of a mechanism; a crossover of a shared
        principle takes all choices from its parents; the state is read from a control redesign on.
        """
        slots = tuple(_drafting(slot, self.drafts.get(slot.name)) for slot in self.slots)
        return replace(self, slots=slots, is_novice=True)

    def sample(self, rng: random.Random, state: bool = True) -> Choices:
        """A fresh derivation. Consumes `rng`. state: whether it may read the LNS state."""
        return self._walk(rng, state and not self.is_novice, lambda slot, choices: None)

    def mend(self, parent: Choices, rng: random.Random, state: bool = True) -> Choices:
        """The nearest valid derivation: keeps valid choices of `parent`, redraws the others."""
        return self._walk(rng, state, _keep(parent))

    def edit(
        self, form: str, parents: Sequence[Choices], rng: random.Random, state: bool = True
    ) -> Choices:
        """A child of `parents` by one of the forms of Table 3; a fresh sample without parents.

        Its source differs from every parent's unless `_RETRIES` attempts all fail. Mutations use
        the first parent; a crossover of one parent uses it twice. Consumes `rng`.
        Raises InputError for an unknown form.
        """
        if form not in FORMS:
            known = ", ".join(FORMS)
            raise InputError(f"unknown prompt form {form!r}: the grammar knows only {known}")
        if form == INITIALIZATION or not parents:
            return self.sample(rng, state)
        if self.is_novice and form != STATE_CONTROL_REDESIGN:
            state = state and form != DIVERGENT_CROSSOVER and any(map(uses_state, parents))
        mended = [self.mend(parent, rng, state) for parent in parents]
        taken = {self.render(parent)[1] for parent in mended}
        change = {
            MECHANISM_REPLACEMENT: self._replace_mechanism,
            STATE_CONTROL_REDESIGN: self._redesign_control,
            SIMPLIFICATION: self._simplify,
            DIVERGENT_CROSSOVER: self._diverge,
            SHARED_PRINCIPLE_CROSSOVER: self._share,
        }[form]
        for _ in range(_RETRIES):
            child = change(mended, rng, state)
            if self.render(child)[1] not in taken:
                break
        return child

    # --- the five forms ---------------------------------------------------------------------

    def _replace_mechanism(self, parents: Parents, rng: random.Random, state: bool) -> Choices:
        """Redraw one mechanism; keep the choices that are still valid."""
        parent = parents[0]
        slots = self._present(parent, "mechanism")
        if self.is_novice:
            slots += self._present(parent, "option")
        if not slots:
            return self.sample(rng, state)
        name = rng.choice(slots).name
        return self._walk(rng, state, _keep(parent, without={name}), {name: (parent[name],)})

    def _redesign_control(self, parents: Parents, rng: random.Random, state: bool) -> Choices:
        """Keep mechanisms and options; redraw some controls, at least one to a new value."""
        parent = parents[0]
        slots = self._present(parent, "control")
        if not slots:
            return self.sample(rng, state)
        targets = _some(slots, rng)
        new = rng.choice(targets).name
        names = {s.name for s in targets}
        kept = _keep(parent, without=names)
        return self._walk(rng, state, kept, {new: (parent[new],)}, names)

    def _simplify(self, parents: Parents, rng: random.Random, state: bool) -> Choices:
        """Set options and compound mechanisms to plain values; without any, controls."""
        parent = parents[0]
        elaborate = [s for s in self._present(parent) if s.plain not in (None, parent[s.name])]
        structural = [s for s in elaborate if s.kind != "control"]
        if not elaborate:
            return self._redesign_control(parents, rng, state)
        targets = _some(structural or elaborate, rng)
        wishes = {**parent, **{s.name: s.plain for s in targets if s.plain is not None}}
        return self._walk(rng, state, lambda slot, choices: wishes.get(slot.name, slot.plain))

    def _diverge(self, parents: Parents, rng: random.Random, state: bool) -> Choices:
        """A fresh derivation with a leading mechanism that no parent has."""
        leading = next((s for s in self.slots if s.kind == "mechanism"), None)
        if leading is None:
            return self.sample(rng, state)
        seen = tuple(parent[leading.name] for parent in parents if leading.name in parent)
        return self._walk(rng, state, lambda slot, choices: None, {leading.name: seen})

    def _share(self, parents: Parents, rng: random.Random, state: bool) -> Choices:
        """Keep the parents' shared choices; take the rest from one of them or redraw it."""
        first, second = parents[0], parents[-1]
        names = [slot.name for slot in self.slots if slot.name in first or slot.name in second]
        free = [name for name in names if first.get(name) != second.get(name)]
        if not free:  # nothing but shared choices: structure beyond the mechanism is redrawn
            rest = [s for s in self._present(first) if s.kind != "mechanism"]
            free = [s.name for s in _some(rest, rng)] if rest else names
            return self._walk(rng, state, _keep(first, without=set(free)), edited=free)
        origins = (first, second) if self.is_novice else (first, second, None)
        origin = {name: rng.choice(origins) for name in free}

        def wish(slot: Slot, choices: Choices) -> Choice | None:
            parent = origin.get(slot.name, first)
            return None if parent is None else parent.get(slot.name)

        return self._walk(rng, state, wish)

    # --- walking ----------------------------------------------------------------------------

    def _present(self, parent: Choices, kind: Kind | None = None) -> list[Slot]:
        return [s for s in self.slots if s.name in parent and kind in (None, s.kind)]

    def _walk(
        self,
        rng: random.Random,
        state: bool,
        wish: Wish,
        avoid: Mapping[str, tuple[Choice, ...]] | None = None,
        edited: Collection[str] = (),
    ) -> Choices:
        """Keep each slot's requested choice if it is valid, else draw, avoiding if possible.

        edited: slots that an edit changes, besides those of `avoid`.
        """
        avoid = avoid or {}
        choices: Choices = {} if state else {STATE: False}
        for slot in self.slots:
            value = wish(slot, choices)
            if value is None or not slot.accepts(value, choices):
                by_edit = slot.name in avoid or slot.name in edited
                draw = slot.skilled if by_edit and slot.skilled else slot.draw
                value = _draw(draw, choices, avoid.get(slot.name, ()), rng)
            if value is not None:
                choices[slot.name] = value
        return choices


def _keep(parent: Choices, without: set[str] | frozenset[str] = frozenset()) -> Wish:
    return lambda slot, choices: None if slot.name in without else parent.get(slot.name)


def _drafting(slot: Slot, weights: Weights | None) -> Slot:
    """The slot as a novice draws it: by weights, its plain value, or as ever, as the table says."""
    if weights is None:
        weights = {} if slot.plain is None else {slot.plain: 1.0}

    def draw(rng: random.Random, choices: Choices) -> Choice | None:
        known = {value: w for value, w in weights.items() if slot.accepts(value, choices)}
        if not known:
            return slot.draw(rng, choices)
        return rng.choices(list(known), list(known.values()))[0]

    return replace(slot, draw=draw, skilled=slot.draw)


def _draw(
    draw: Draw, choices: Choices, avoid: tuple[Choice, ...], rng: random.Random
) -> Choice | None:
    value = draw(rng, choices)
    for _ in range(_RETRIES):
        if value is None or value not in avoid:
            break
        value = draw(rng, choices)
    return value


def _some(slots: list[Slot], rng: random.Random) -> list[Slot]:
    """A random non-empty subset, mostly small: one slot half of the time."""
    count = 1
    while count < len(slots) and rng.random() < 0.5:
        count += 1
    return rng.sample(slots, count)
