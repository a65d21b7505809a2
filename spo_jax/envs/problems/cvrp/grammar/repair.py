"""The grammar of CVRP repair programs, and what other problems of routes share with it.

A program inserts the removed customers in some order at their cheapest feasible places, or always
the one with the highest regret next; it may try several orders (drawn anew, or small changes of
the best one) and keep the shortest result, look only at routes near a customer, blink, add noise,
and prefer routes by the room they are left with. The blocks of source are in insertions.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from spo_jax.envs.problems.cvrp.grammar.insertions import (
    CVRP_PLACES,
    RESULT,
    ROUTES,
    STAKED,
    Places,
    change_lines,
    criterion,
    insert_lines,
    near_lines,
    order_lines,
    regret_lines,
)
from spo_jax.envs.problems.cvrp.grammar.tries import (
    CHANGES,
    TRY_RATES,
    caps,
    fresh_starts,
    high_tries,
    low_tries,
    try_lines,
    try_rules,
)
from spo_jax.program.grammar.base import Choice, Choices, Grammar, Weights, choice, uses_state
from spo_jax.program.grammar.pieces import (
    NONE,
    STATE,
    amount_slots,
    function,
    indent,
    mix_slot,
    module,
    sentence,
)


def _is(build: str) -> Callable[[Choices], bool]:
    return lambda choices: choices["build"] == build


def _retries(choices: Choices) -> Weights:
    if choices["build"] == "regret":
        return {"once": 1.0, "anew": 2.5}
    return {
        "once": 1.0, "anew": 2.0, "shift": 4.0, "swap": 2.0, "promote": 1.5, "rotate": 0.7,
        "reverse": 1.0,
    }  # fmt: skip


def _turn_by(choices: Choices) -> Weights:
    if choices.get("order") != "turns":
        return {}
    weights: Weights = {} if choices["retry"] == "once" else {"attempt": 4.0}
    return {**weights, "steps": 1.0} if uses_state(choices) else weights


def _noises(choices: Choices) -> Weights:
    constant: dict[Choice, float] = {"0.1": 1.0, "0.2": 1.0, "0.4": 1.0}
    if uses_state(choices):
        constant |= {"grow 5": 0.7, "grow 20": 0.7, "late 5": 0.7, "late 20": 0.7}
    if choices["build"] == "regret":
        constant |= {"1.0": 1.0}
        return constant if choices["retry"] == "anew" else {"0": 6.0, **constant}
    return {"0": 14.0, **constant}


_BUILDS = (
    choice("build", "mechanism", {"sequence": 6.0, "regret": 2.0}),
    choice("retry", "mechanism", _retries, plain="once"),
)
_OTHERS = (  # than those of the order
    choice(
        "criterion",
        "mechanism",
        {"regret 2": 4.0, "regret 3": 3.0, "regret 4": 1.0, "weighted 0.2": 1.0,
         "weighted 0.5": 1.0, "cheapest": 1.0, "dearest": 0.7},
        when=_is("regret"),
        plain="regret 2",
    ),
    choice(
        "heavy",
        "option",
        {"0": 3.0, "0.25": 1.0, "0.5": 1.0, "1": 1.0},
        when=lambda c: str(c.get("criterion")).startswith("regret"),
        plain="0",
    ),
    choice("tries_rule", "control", try_rules, plain="fixed"),
    choice("tries_low", "control", low_tries),
    choice("tries_high", "control", high_tries),
    choice("tries_rate", "control", lambda c: TRY_RATES.get(str(c.get("tries_rule")), {})),
    choice("cap", "control", caps),
    choice("starts", "control", fresh_starts, plain="1"),
    *amount_slots(
        "moves",
        {"1:1": 2.0, "2:2": 1.5, "1:2": 1.5, "1:3": 1.5, "2:4": 1.0, "1:5": 1.0, "3:3": 0.7},
        when=lambda c: c["retry"] in ("shift", "swap", "promote"),
        plain="1:1",
    ),
    choice(
        "scope",
        "option",
        lambda c: {"all": 5.0, "blink": 1.0, **({"near": 2.0} if _is("sequence")(c) else {})},
        plain="all",
    ),
    *amount_slots(
        "width",
        {"6:12": 1.0, "8:16": 1.0, "10:10": 1.0, "10:20": 1.0, "15:30": 1.0, "20:20": 1.0},
        when=lambda c: c["scope"] == "near",
        plain="10:10",
    ),
    choice(
        "blink",
        "control",
        lambda c: {
            **{"0.01": 1.0, "0.02": 1.0, "0.05": 1.0, "0.1": 0.7},
            **({"grow 20": 0.7, "grow 50": 0.7} if uses_state(c) else {}),
        },
        when=lambda c: c["scope"] == "blink",
        plain="0.01",
    ),
    choice(
        "fit",
        "option",
        {NONE: 6.0, "tight": 1.0, "even": 1.0},
        when=_is("sequence"),
        plain=NONE,
    ),
    choice(
        "fit_weight",
        "control",
        {0.05: 1.0, 0.1: 1.0, 0.2: 1.0, 0.4: 1.0},
        when=lambda c: c.get("fit", NONE) != NONE,
    ),
    choice("noise", "option", _noises, plain="0"),
    choice(
        "fresh",
        "option",
        {"1": 5.0, "1.2": 1.0, "1.5": 1.0, "2": 0.7, "10": 0.7},
        when=_is("sequence"),
        plain="1",
    ),
)  # fmt: skip


# --- source and sentence --------------------------------------------------------------------------


def _begin(choices: Choices, order: list[str]) -> tuple[list[str], str]:
    """(lines that begin a try with a new or a changed order, phrase)."""
    change, phrase = change_lines(choices)
    starts = str(choices["starts"])
    count = starts if starts.isdigit() else f"{starts} + 1"
    lines = [f"if attempt < {count}:", *indent(order), "else:", "    order = best_order[:]"]
    first = {"1": "the first", "tries // 4": "the first quarter", "tries // 2": "the first half"}
    after = first.get(starts, f"the first {starts}")
    return [*lines, *indent(change)], f" that after {after} {phrase}"


def _noise(choices: Choices) -> tuple[list[str], list[str]]:
    noise = str(choices["noise"])
    if noise == "0":
        return [], []
    kind, _, value = noise.partition(" ")
    words = "multiply costs" if choices["build"] == "sequence" else "multiply scores"
    if not value:
        return [f"noise = {kind}"], [f"{words} by up to {1 + float(kind):g} at random"]
    if kind == "grow":
        line = f"noise = 0.5 * {STATE} / ({STATE} + {value})"
        return [line], [
            f"{words} by a random factor that grows to 1.5"
            f" (half way after {value} steps without improvement)"
        ]
    line = f"noise = 0.3 if {STATE} >= {value} else 0.05"
    return [line], [f"{words} by up to 1.05, or 1.3 after {value} steps without improvement"]


def _blink(choices: Choices) -> tuple[list[str], list[str]]:
    if choices["scope"] != "blink":
        return [], []
    kind, _, value = str(choices["blink"]).partition(" ")
    if not value:
        return [f"blink = {kind}"], [f"overlook a route with probability {kind}"]
    line = f"blink = 0.15 * {STATE} / ({STATE} + {value})"
    return [line], [
        "overlook a route with a probability that grows to 0.15"
        f" (half way after {value} steps without improvement)"
    ]


def _preferences(choices: Choices) -> list[str]:
    """Phrases about the room of routes and about new routes."""
    phrases = []
    fit, fresh = choices.get("fit", NONE), choices.get("fresh", "1")
    if fit != NONE:
        room = "little" if fit == "tight" else "much"
        weight = choices["fit_weight"]
        phrases.append(f"prefer routes that are left with {room} room (weight {weight})")
    cheaper = "that is cheaper" if fresh == "1" else f"even {fresh} times its cost is lower"
    return [*phrases, f"open a new route where {cheaper}"]


# A novice inserts once, in an order that needs no look ahead or always the cheapest or dearest.
_DRAFTS: Mapping[str, Weights] = {
    "build": {"sequence": 3.0, "regret": 1.0},
    "jitter": {},
    "criterion": {"cheapest": 2.0, "dearest": 1.0},
    "scope": {"all": 3.0, "near": 1.0},
    "width_range": {"10:10": 1.0, "20:20": 1.0},
    "fit": {},
    "noise": {"0": 2.0, "0.1": 0.5, "0.2": 0.5, "0.4": 0.5},
    "fresh": {},
}


# --- the programs of a problem --------------------------------------------------------------------


@dataclass(frozen=True)
class Repairs:
    """The repair programs of one problem of routes.

    header: of the function. rules: weights of the orders that take turns, the first of them random.
    """

    problem: str
    header: str
    places: Places
    rules: Weights

    def grammar(self) -> Grammar:
        plain = ("random", "given", "chain", *self.places.keyed)
        drafts: Weights = {name: 1.0 for name in plain if name != "regret"}
        slots = (
            *_BUILDS,
            choice("order", "mechanism", self._orders, plain="random"),
            choice("rules", "control", self.rules, when=lambda c: c.get("order") == "turns"),
            choice("turn_by", "control", _turn_by),
            choice("order_2", "option", self._second_orders, plain=NONE),
            mix_slot("order_mix", "order_2"),
            choice("jitter", "control", self._jitters, plain=0),
            *_OTHERS,
        )
        return Grammar(self.problem, "repair", slots, self.render, {**_DRAFTS, "order": drafts})

    def _orders(self, choices: Choices) -> Weights:
        if choices["build"] != "sequence":
            return {}
        weights: dict[Choice, float] = {"random": 3.0, "turns": 3.0, "given": 0.7, "chain": 0.5}
        weights |= dict.fromkeys(self.places.keyed, 1.0)
        if choices["retry"] == "once" and not uses_state(choices):
            del weights["turns"]
        return weights

    def _second_orders(self, choices: Choices) -> Weights:
        first = choices.get("order")
        if first is None or first == "turns":
            return {}
        others = [n for n in ("random", *self.places.keyed) if n != first]
        if first in STAKED:
            others = [n for n in others if n not in STAKED]
        return {NONE: 3.0 * len(others), **dict.fromkeys(others, 1.0)}

    def _jitters(self, choices: Choices) -> Weights:
        """The random factor on sort keys; without it, orders drawn anew would repeat."""
        names = [str(choices.get(k, "")) for k in ("order", "order_2", "rules")]
        if not any(name in self.places.keyed for text in names for name in text.split()):
            return {}
        factors: dict[Choice, float] = {0.1: 1.0, 0.2: 1.0, 0.3: 1.0, 0.5: 1.0}
        return factors if choices["retry"] == "anew" else {0: 3.0, **factors}

    def render(self, choices: Choices) -> tuple[str, str]:
        """(strategy sentence, source) of a derivation."""
        several = choices["retry"] != "once"
        before, phrases = [*ROUTES, *self.places.prepare], []
        if choices["scope"] == "near":
            near, where = near_lines(choices)
            before += near
        else:
            where = "in any route"
        if choices["build"] == "sequence":
            stakes, begin, order_phrase = order_lines(choices, self.places)
            before += stakes
            insert = insert_lines(choices, several, self.places)
            what = (
                f"Insert the removed customers {order_phrase}, each at its cheapest feasible place"
            )
            what = f"{what} {where}"
        else:
            begin = []
            insert = regret_lines(choices, several, self.places)
            phrase = criterion(choices)[2]
            what = f"Insert next the removed customer with {phrase} at its cheapest feasible place"
        for lines, words in (_noise(choices), _blink(choices)):
            before += lines
            phrases += words
        phrases += _preferences(choices)
        if several:
            tries, tries_phrase = try_lines(choices)
            before += [*tries, 'known, best_cost = {}, float("inf")']
            again = ""
            if choices["retry"] in CHANGES:
                begin, again = _begin(choices, begin)
            keep = "best_cost, best_order, best_routes = total, order, trial"
            if choices["build"] == "regret" or choices["retry"] == "anew":
                keep = "best_cost, best_routes = total, trial"
            elif choices["retry"] == "promote":
                keep = "best_cost, best_order, best_paid, best_routes = total, order, paid, trial"
            loop = [*begin, *insert, "else:", f"    {keep}"]
            body = [*before, "for attempt in range(tries):", *indent(loop)]
            body.append(RESULT.format("best_routes"))
            phrases.append(f"make {tries_phrase} tries{again} and keep the shortest")
        else:
            body = [*before, *begin, *insert, RESULT.format("trial")]
        strategy = "; ".join([what, *phrases]) + "."
        return sentence(strategy), module([*self.places.helpers, function(self.header, body)])


CVRP_RULES: Weights = dict.fromkeys(
    (
        "random far demand", "random far near demand", "random demand", "random far", "random near",
        "random far bulky", "random regret", "random regret far", "random regret demand",
        "random lonely far", "random costly demand", "random costly far near",
        "random near demand", "random far near",
    ),
    1.0,
)  # fmt: skip


GRAMMAR = Repairs(
    "cvrp",
    "def repair(dist, demands, capacity, partial_routes, removed_customers,\n"
    "           steps_since_improvement, rng):",
    CVRP_PLACES,
    CVRP_RULES,
).grammar()
