"""The grammar of CVRP repair programs.

A program inserts the removed customers in some order at their cheapest feasible places, or always
the one with the highest regret next; it may try several orders (drawn anew, or small changes of
the best one) and keep the shortest result, look only at routes near a customer, blink, add noise,
and prefer routes by the room they are left with. The blocks of source are in insertions.py.
"""

from collections.abc import Callable, Mapping

from spo_jax.envs.problems.cvrp.grammar.insertions import (
    FIND_PLACE,
    KEYED,
    RESULT,
    ROUTES,
    STAKED,
    change_lines,
    criterion,
    insert_lines,
    near_lines,
    order_lines,
    regret_lines,
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
    ordinal,
    sentence,
    steps,
)

_ORDERS: Weights = {
    "random": 3.0, "turns": 3.0, "given": 0.7, "chain": 0.5, **dict.fromkeys(KEYED, 1.0)
}  # fmt: skip
_CHANGES = ("shift", "swap", "promote", "rotate", "reverse")


def _is(build: str) -> Callable[[Choices], bool]:
    return lambda choices: choices["build"] == build


def _retries(choices: Choices) -> Weights:
    if choices["build"] == "regret":
        return {"once": 1.0, "anew": 2.5}
    return {
        "once": 1.0, "anew": 2.0, "shift": 4.0, "swap": 2.0, "promote": 1.5, "rotate": 0.7,
        "reverse": 1.0,
    }  # fmt: skip


def _orders(choices: Choices) -> Weights:
    if choices["build"] != "sequence":
        return {}
    if choices["retry"] == "once" and not uses_state(choices):
        return {name: w for name, w in _ORDERS.items() if name != "turns"}
    return _ORDERS


def _second_orders(choices: Choices) -> Weights:
    first = choices.get("order")
    if first is None or first == "turns":
        return {}
    others = [n for n in ("random", *KEYED) if n != first]
    if first in STAKED:
        others = [n for n in others if n not in STAKED]
    return {NONE: 3.0 * len(others), **dict.fromkeys(others, 1.0)}


_RULES: Weights = dict.fromkeys(
    (
        "random far demand", "random far near demand", "random demand", "random far", "random near",
        "random far bulky", "random regret", "random regret far", "random regret demand",
        "random lonely far", "random costly demand", "random costly far near",
        "random near demand", "random far near",
    ),
    1.0,
)  # fmt: skip


def _turn_by(choices: Choices) -> Weights:
    if choices.get("order") != "turns":
        return {}
    weights: Weights = {} if choices["retry"] == "once" else {"attempt": 4.0}
    return {**weights, "steps": 1.0} if uses_state(choices) else weights


def _jitters(choices: Choices) -> Weights:
    """The random factor on sort keys; without it, orders drawn anew would repeat."""
    names = [str(choices.get(k, "")) for k in ("order", "order_2", "rules")]
    if not any(name in KEYED for text in names for name in text.split()):
        return {}
    factors: dict[Choice, float] = {0.1: 1.0, 0.2: 1.0, 0.3: 1.0, 0.5: 1.0}
    return factors if choices["retry"] == "anew" else {0: 3.0, **factors}


# --- how many tries, and how many of them start afresh --------------------------------------------

_TRY_RULES: Weights = {"fixed": 3.0, "grow": 1.0, "switch": 1.0, "early": 1.0, "burst": 1.0}
_TRY_RATES: dict[str, Weights] = {
    "grow": {1: 1.0, 2: 1.0, 3: 1.0, 5: 1.0},
    "switch": {2: 1.0, 5: 1.0, 10: 1.0, 20: 1.0},
    "early": {1: 1.0, 2: 1.0, 5: 1.0, 10: 1.0},
    "burst": {3: 1.0, 4: 1.0, 5: 1.0, 8: 1.0},
}
_WORK = "{} * n // len(removed_customers)"
_SQUARE = "n * n // ({} * len(removed_customers))"
_TRIES: dict[str, tuple[Weights, Weights]] = {
    "sequence": (
        {"1": 2.0, "2": 2.0, "3": 2.0, "5": 1.0, "8": 1.0, "12": 1.0, "n // 10": 1.0,
         "n // 5": 1.0, _WORK.format(2): 1.0, _WORK.format(3): 1.0},
        {"3": 3.0, "4": 3.0, "6": 2.0, "8": 2.0, "12": 1.5, "16": 1.0, "20": 0.6, "30": 0.6,
         "40": 0.4, "60": 0.3, "n // 4": 1.0, "n // 3": 1.0, "n // 2": 1.5, "n": 0.7,
         _WORK.format(4): 1.0, _WORK.format(6): 1.5, _WORK.format(8): 1.5, _WORK.format(12): 1.0,
         _WORK.format(20): 0.5, _SQUARE.format(8): 1.5, _SQUARE.format(12): 1.5},
    ),
    "regret": (
        {"1": 1.0, "2": 1.0},
        {"3": 2.0, "4": 2.0, "5": 1.0, "6": 1.0, "8": 0.5, "n // 12": 1.0, "n // 15": 1.0,
         "n // 20": 1.0},
    ),
}  # fmt: skip


def _try_rules(choices: Choices) -> Weights:
    if choices["retry"] == "once":
        return {}
    return _TRY_RULES if uses_state(choices) else {"fixed": 1.0}


def _low_tries(choices: Choices) -> Weights:
    return _TRIES[str(choices["build"])][0] if choices.get("tries_rule", "fixed") != "fixed" else {}


def _high_tries(choices: Choices) -> Weights:
    return _TRIES[str(choices["build"])][1] if "tries_rule" in choices else {}


def _caps(choices: Choices) -> Weights:
    """Bounds on the work of a step: they keep rare combinations within the time limit."""
    if choices["retry"] == "once":
        return {}
    if choices["build"] == "regret":
        return {40: 1.0, 60: 1.0, 80: 1.0}
    return {10: 1.0, 15: 1.0, 20: 1.0, 30: 1.0}


def _starts(choices: Choices) -> Weights:
    if choices["retry"] not in _CHANGES:
        return {}
    return {"1": 1.5, "2": 1.0, "3": 1.0, "4": 1.5, "6": 1.0, "tries // 4": 1.0, "tries // 2": 1.0}


def _noises(choices: Choices) -> Weights:
    constant: dict[Choice, float] = {"0.1": 1.0, "0.2": 1.0, "0.4": 1.0}
    if uses_state(choices):
        constant |= {"grow 5": 0.7, "grow 20": 0.7, "late 5": 0.7, "late 20": 0.7}
    if choices["build"] == "regret":
        constant |= {"1.0": 1.0}
        return constant if choices["retry"] == "anew" else {"0": 6.0, **constant}
    return {"0": 14.0, **constant}


_SLOTS = (
    choice("build", "mechanism", {"sequence": 6.0, "regret": 2.0}),
    choice("retry", "mechanism", _retries, plain="once"),
    choice("order", "mechanism", _orders, plain="random"),
    choice("rules", "control", _RULES, when=lambda c: c.get("order") == "turns"),
    choice("turn_by", "control", _turn_by),
    choice("order_2", "option", _second_orders, plain=NONE),
    mix_slot("order_mix", "order_2"),
    choice("jitter", "control", _jitters, plain=0),
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
    choice("tries_rule", "control", _try_rules, plain="fixed"),
    choice("tries_low", "control", _low_tries),
    choice("tries_high", "control", _high_tries),
    choice("tries_rate", "control", lambda c: _TRY_RATES.get(str(c.get("tries_rule")), {})),
    choice("cap", "control", _caps),
    choice("starts", "control", _starts, plain="1"),
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


# --- rendering ------------------------------------------------------------------------------------


def render(choices: Choices) -> tuple[str, str]:
    """(strategy sentence, source) of a derivation."""
    several = choices["retry"] != "once"
    before, phrases = [*ROUTES], []
    if choices["scope"] == "near":
        near, where = near_lines(choices)
        before += near
    else:
        where = "in any route"
    if choices["build"] == "sequence":
        stakes, begin, order_phrase = order_lines(choices)
        before += stakes
        insert = insert_lines(choices, several)
        what = f"Insert the removed customers {order_phrase}, each at its cheapest feasible place"
        what = f"{what} {where}"
    else:
        begin = []
        insert = regret_lines(choices, several)
        phrase = criterion(choices)[2]
        what = f"Insert next the removed customer with {phrase} at its cheapest feasible place"
    for lines, words in (_noise(choices), _blink(choices)):
        before += lines
        phrases += words
    phrases += _preferences(choices)
    if several:
        tries, tries_phrase = _tries(choices)
        before += [*tries, 'known, best_cost = {}, float("inf")']
        again = ""
        if choices["retry"] in _CHANGES:
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
    header = (
        "def repair(dist, demands, capacity, partial_routes, removed_customers,\n"
        "           steps_since_improvement, rng):"
    )
    strategy = "; ".join([what, *phrases]) + "."
    return sentence(strategy), module([FIND_PLACE, function(header, body)])


def _begin(choices: Choices, order: list[str]) -> tuple[list[str], str]:
    """(lines that begin a try with a new or a changed order, phrase)."""
    change, phrase = change_lines(choices)
    starts = str(choices["starts"])
    count = starts if starts.isdigit() else f"{starts} + 1"
    lines = [f"if attempt < {count}:", *indent(order), "else:", "    order = best_order[:]"]
    first = {"1": "the first", "tries // 4": "the first quarter", "tries // 2": "the first half"}
    after = first.get(starts, f"the first {starts}")
    return [*lines, *indent(change)], f" that after {after} {phrase}"


def _tries(choices: Choices) -> tuple[list[str], str]:
    """(lines that set `tries`, phrase)."""
    rule, rate = choices["tries_rule"], choices.get("tries_rate")
    high, low = str(choices["tries_high"]), str(choices.get("tries_low", "1"))
    most, least = _spoken(high), _spoken(low)
    size = "len(removed_customers)"
    lines = [] if rule == "fixed" else [f"low, high = {low}, {high}"]
    if rule == "fixed":
        lines, phrase = [f"tries = {high}"], most
    elif rule == "grow":
        step, every = (STATE, "step") if rate == 1 else (f"{STATE} // {rate}", f"{rate} steps")
        lines += [f"tries = min(high, low + {step})"]
        phrase = f"{least} and one more every {every} without improvement, up to {most},"
    elif rule == "switch":
        lines += [f"tries = high if {STATE} >= {rate} else low"]
        phrase = f"{least}, or {most} after {steps(rate)} without improvement,"
    elif rule == "early":
        lines += [f"tries = high if {STATE} < {rate} else low"]
        phrase = f"{most}, or {least} after {steps(rate)} without improvement,"
    else:
        lines += [f"tries = high if {STATE} % {rate} == {int(rate or 2) - 1} else low"]
        phrase = f"{least}, or {most} on every {ordinal(rate)} step without improvement,"
    if choices["build"] == "regret":
        lines.append(f"tries = max(1, min(tries, {choices['cap']} * n // {size} ** 2))")
    else:
        lines.append(f"tries = max(1, min(tries, {choices['cap']} * n // {size}))")
    return ["n = len(dist) - 1", *lines], phrase


def _spoken(text: str) -> str:
    text = text.replace("len(removed_customers)", "removed")
    return text.replace(" // ", "/").replace(" * ", " ")


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
    "order": {name: 1.0 for name in _ORDERS if name not in ("regret", "turns")},
    "jitter": {},
    "criterion": {"cheapest": 2.0, "dearest": 1.0},
    "scope": {"all": 3.0, "near": 1.0},
    "width_range": {"10:10": 1.0, "20:20": 1.0},
    "fit": {},
    "noise": {"0": 2.0, "0.1": 0.5, "0.2": 0.5, "0.4": 0.5},
    "fresh": {},
}


GRAMMAR = Grammar("cvrp", "repair", _SLOTS, render, _DRAFTS)
