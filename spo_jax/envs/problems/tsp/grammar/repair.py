"""The grammar of TSP repair programs.

A program inserts the removed nodes in some order at their cheapest places, by regret, or with a
vectorised cost matrix; it may look at a few near edges only, repeat with other orders and keep the
cheapest result, split the nodes into groups that do not compete for an edge, blink or add noise,
and reconsider the nodes it has placed. What the choices look like as programs is in
constructions.py and insertions.py.
"""

from collections.abc import Callable, Mapping

from spo_jax.envs.problems.tsp.grammar.constructions import KEYED, render
from spo_jax.program.grammar.base import Choices, Grammar, Weights, choice, uses_state
from spo_jax.program.grammar.pieces import amount_slots, at_most

_ORDERS: Weights = {"random": 6.0, "given": 0.7, **dict.fromkeys(KEYED, 0.7)}
_WIDTHS: Weights = {
    "3:3": 0.4, "4:4": 1.0, "5:5": 1.0, "6:6": 0.6, "8:8": 0.6, "10:10": 0.4, "2:5": 0.5,
    "3:5": 1.0, "3:6": 1.0, "4:8": 1.0, "5:10": 1.0, "8:16": 0.5,
}  # fmt: skip
_CRITERIA: Weights = {
    "regret": 4.0, "weighted 0.1": 1.0, "weighted 0.2": 1.0, "weighted 0.3": 1.0,
    "weighted 0.5": 1.0, "ratio": 1.0, "cheapest": 1.0, "farthest": 1.0,
}  # fmt: skip


def _inserts(*names: str) -> Callable[[Choices], bool]:
    return lambda choices: choices["insert"] in names


def _try_ranges(choices: Choices) -> Weights:
    if choices["insert"] == "ordered":
        return {
            "1:1": 0.3, "4:4": 0.3, "6:6": 0.4, "8:8": 0.6, "10:10": 0.8, "12:12": 0.6,
            "15:15": 0.6, "20:20": 0.6, "25:25": 0.3, "30:30": 0.3, "2:6": 0.5, "3:10": 1.0,
            "5:10": 1.0, "4:15": 1.0, "5:20": 1.0, "10:20": 1.0, "10:30": 0.5,
        }  # fmt: skip
    if choices["insert"] == "regret":
        return {"1:1": 2.0, "2:2": 0.7, "3:3": 0.7, "4:4": 0.5, "1:3": 1.0, "2:6": 1.0, "3:8": 0.7}
    return {"1:1": 1.0, "2:2": 1.0, "3:3": 1.0, "1:3": 1.0, "2:4": 1.0}


def _retries(choices: Choices) -> Weights:
    if choices["insert"] != "ordered" or at_most(choices, "tries") == 1:
        return {}
    if choices["order"] in KEYED:
        return {"shuffle": 4.0, "perturb": 1.0, "mutate": 1.0}
    return {"shuffle": 4.0, "mutate": 1.0}


def _shakes(choices: Choices) -> Weights:
    if choices.get("retry") == "perturb":
        return {0.3: 1.0, 0.5: 1.0, 1.0: 1.0, 2.0: 1.0}
    if choices.get("retry") == "mutate":
        return {1: 2.0, 2: 2.0, 3: 1.0}
    return {}


def _ties(choices: Choices) -> Weights:
    """How strongly scores are randomised; tries need it, or they would all be the same."""
    if choices["insert"] == "ordered":
        return {}
    constant: Weights = dict.fromkeys(("0.2", "0.3", "0.5", "0.7", "1.0", "1.5", "2.0"), 1.0)
    growing: Weights = {f"grow {rate}": 0.8 for rate in (3, 5, 8, 10, 15, 20, 30, 50)}
    state: Weights = growing if uses_state(choices) else {}
    if at_most(choices, "tries") > 1:
        return {**constant, **state}
    return {"0": 3.0, "0.1": 1.0, **constant, **state}


def _budgets(choices: Choices) -> Weights:
    """Bounds on the work of all tries, so that large removals make fewer of them."""
    if choices["insert"] == "matrix":
        return {300000: 1.0, 500000: 1.0, 700000: 1.0, 1000000: 1.0}
    if choices["insert"] == "regret" or choices["noise"] or choices.get("polish") == "each":
        return {8000: 1.0, 10000: 1.0, 12000: 1.0, 15000: 1.0, 20000: 1.0}
    return {15000: 0.5, 20000: 1.0, 25000: 1.0, 30000: 1.0, 40000: 1.0, 50000: 0.7, 60000: 0.5}


_SLOTS = (
    choice("insert", "mechanism", {"ordered": 6.0, "regret": 2.5, "matrix": 0.3}),
    choice("order", "mechanism", _ORDERS, when=_inserts("ordered"), plain="random"),
    choice("criterion", "mechanism", _CRITERIA, when=_inserts("regret"), plain="regret"),
    choice(
        "matrix",
        "mechanism",
        {"regret 2": 3.0, "regret 3": 1.0, "cheapest": 1.0, "farthest": 1.0},
        when=_inserts("matrix"),
        plain="regret 2",
    ),
    choice(
        "scope",
        "option",
        lambda c: {"all": 1.0, "near": 5.0 if c["insert"] == "ordered" else 8.0},
        when=_inserts("ordered", "regret"),
        plain="all",
    ),
    *amount_slots(
        "width",
        _WIDTHS,
        when=lambda c: c.get("scope") == "near",
        plain="8:8",
    ),
    choice(
        "ranking",
        "option",
        {"numpy": 1.0, "sorted": 1.0},
        when=lambda c: c.get("scope") == "near",
        plain="sorted",
    ),
    *amount_slots("tries", _try_ranges, plain="1:1"),
    choice("retry", "mechanism", _retries, plain="shuffle"),
    choice("shake", "control", _shakes),
    choice(
        "group",
        "option",
        {"none": 1.5, "rivals": 1.0},
        when=lambda c: (
            c["insert"] == "ordered" and c["scope"] == "near" and at_most(c, "tries") > 1
        ),
        plain="none",
    ),
    choice(
        "noise",
        "option",
        {0: 12.0, 0.05: 1.0, 0.1: 1.0, 0.2: 1.0, 0.3: 0.5},
        when=_inserts("ordered"),
        plain=0,
    ),
    choice(
        "blink",
        "option",
        {0: 8.0, 0.01: 1.0, 0.02: 1.0, 0.05: 1.0, 0.1: 1.0},
        when=lambda c: c["insert"] == "ordered" and c["noise"] == 0,
        plain=0,
    ),
    choice("ties", "option", _ties, plain="0"),
    choice(
        "polish",
        "option",
        {"none": 12.0, "end": 1.0, "each": 0.5},
        when=lambda c: c["insert"] != "matrix" and not c.get("noise") and not c.get("blink"),
        plain="none",
    ),
    choice(
        "budget",
        "control",
        _budgets,
        when=lambda c: at_most(c, "tries") > 1,
    ),
)


# A novice inserts once, in an order that needs no look ahead or always the cheapest or dearest.
_DRAFTS: Mapping[str, Weights] = {
    "insert": {"ordered": 3.0, "regret": 1.0, "matrix": 0.5},
    "order": {name: 1.0 for name in _ORDERS if name != "regret"},
    "criterion": {"cheapest": 2.0, "farthest": 1.0},
    "matrix": {"cheapest": 2.0, "farthest": 1.0},
    "scope": {"all": 2.0, "near": 1.0},
    "width_range": {f"{width}:{width}": 1.0 for width in (4, 6, 8, 10)},
    "ranking": {},
    "noise": {0: 2.0, 0.05: 0.5, 0.1: 0.5, 0.2: 0.5, 0.3: 0.5},
    "ties": {"0": 2.0, "0.1": 0.5, "0.2": 0.5, "0.5": 0.5, "1.0": 0.5},
}


GRAMMAR = Grammar("tsp", "repair", _SLOTS, render, _DRAFTS)
