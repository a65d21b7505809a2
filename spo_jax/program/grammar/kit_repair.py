"""What the repair grammars of kits share: insertion in an order or by regret, over many tries.

A program inserts the removed items in some order or by regret, mostly many times: with new orders,
with small changes of the best order, or with noise; `bound` stops a try that cannot win. The number
of tries follows a budget, so that a large removal costs no more than a small one, and the budget
may follow the state. Local search may polish the result where items were put back.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from spo_jax.program.grammar.base import Choice, Choices, Slot, Weights, choice, uses_state
from spo_jax.program.grammar.kit import Words, wrapped
from spo_jax.program.grammar.kit_options import (
    PLACES,
    RATES,
    budget,
    budget_rules,
    budgets,
    low_budgets,
    nears,
    options_of,
    perturbs,
    places,
    tries_again,
    weighted,
)
from spo_jax.program.grammar.pieces import NONE, STATE, indent

_WIDTH = 88  # longer calls are split in two lines
_LONGEST = 92  # of local search

Texts = Mapping[str, tuple[str, str]]  # name -> (source, phrase)


@dataclass(frozen=True)
class Repairs:
    """What a problem's repair programs have of their own.

    orders: the sort keys of an order (a small one goes first). quick: those that cost little.
    searches: calls of local search that improve $best at $touched. polishes: weights of searches,
    one or more names joined by " + ". cost: the call that measures $best.
    fresh: whether a new route may be made dearer than it is.
    """

    words: Words
    orders: Texts
    quick: tuple[str, ...]
    searches: Texts
    polishes: Weights
    cost: str
    fresh: bool = False

    def slots(self) -> tuple[Slot, ...]:
        return (
            choice("build", "mechanism", {"ordered": 6.0, "regret": 4.0}),
            choice("retry", "mechanism", _retries, plain="once"),
            choice("order", "mechanism", self._orders, plain="random"),
            choice("jitter", "control", {0.2: 1.0, 0.5: 1.0, 1.0: 1.0}, when=_jitters),
            choice("turn", "option", self._turns, plain=NONE),
            choice("turn_every", "control", {2: 1.0, 3: 1.0, 4: 1.0}, when=_takes_turns),
            choice("moves", "control", _moves, plain="1"),
            choice("criterion", "mechanism", _CRITERIA, when=_is("regret"), plain="greedy"),
            choice("k", "control", places, plain="2"),
            choice("weight", "control", {0.5: 1.0, 1: 1.0, 2: 1.0}, when=weighted, plain=1),
            choice("polish", "option", self.polishes, plain=NONE),
            choice("polish_at", "control", _polish_at, plain="end"),
            choice("polish_when", "control", _polish_when, plain="always"),
            choice("polish_limit", "control", _LIMITS, when=_polishes, plain="near=10"),
            choice("start", "option", _starts, plain=NONE),
            choice("budget_rule", "control", budget_rules, plain="fixed"),
            choice("budget_low", "control", low_budgets),
            choice("budget", "control", budgets),
            choice("budget_rate", "control", lambda c: RATES.get(str(c.get("budget_rule")), {})),
            choice("cap", "control", {25: 1.0, 50: 1.0, 100: 1.0, 200: 0.5}, when=tries_again),
            choice("near", "option", nears, plain=0),
            choice("perturb", "option", perturbs, plain=NONE),
            choice(
                "fresh",
                "option",
                {1: 9.0, 1.2: 1.0, 1.5: 1.0, 2: 1.0},
                when=lambda c: self.fresh and c["build"] == "ordered",
                plain=1,
            ),
        )

    @property
    def drafts(self) -> Mapping[str, Weights]:
        """What a novice inserts: once, in an order or always the cheapest, with noise or none.

        More tries and polish, once an edit brings them, begin small.
        """
        noises: Weights = dict.fromkeys(
            ("noise 0.05", "noise 0.1", "noise 0.2", "noise 0.5", "noise 1.0"), 0.5
        )
        return {
            "build": {"ordered": 3.0, "regret": 1.0},
            "order": {"random": 2.0, **dict.fromkeys(self.orders, 1.0)},
            "near": {0: 2.0, 5: 0.5, 10: 1.0, 20: 1.0},
            "perturb": {NONE: 2.0, **noises},
            "fresh": {},
            "polish_limit": {"moves=30": 1.0},
            "budget": {800: 1.0, 2000: 1.0},
            "cap": {25: 1.0},
        }

    def _orders(self, choices: Choices) -> Weights:
        if choices["build"] != "ordered":
            return {}
        return {"random": 4.0, **dict.fromkeys(self.orders, 0.7)}

    def _turns(self, choices: Choices) -> Weights:
        """A second order that a random one takes turns with."""
        if choices.get("order") != "random" or choices["retry"] != "anew":
            return {}
        return {NONE: 2.0, **dict.fromkeys(self.quick, 0.8)}

    def lines(self, choices: Choices) -> tuple[list[str], str]:
        """(lines of a repair program, phrase)."""
        set_up, in_try, options, phrases = options_of(choices)
        what, begin, order, arguments = self._inserting(choices)
        several, each = tries_again(choices), choices.get("polish_at") == "each"
        lines = [*set_up, *begin]
        if not several:
            lines += [*in_try, *order, *self._insert("best, added", choices, arguments, options)]
        else:
            number, tries = budget(choices, self.words)
            lines += [*number, *self._start(choices)]
            if not each:
                options = ["bound=best_cost", *options]
            attempt = [*in_try, *order, *self._insert("trial, added", choices, arguments, options)]
            if each:
                attempt += _wrapped(self._polish(choices, "trial"))
                attempt.append(f"added = {self.cost.replace('$best', 'trial')}")
            kept = "best, best_cost, best_order = trial, added, order"
            if choices["retry"] == "anew":
                kept = "best, best_cost = trial, added"
            attempt += ["if added < best_cost:", f"    {kept}"]
            lines += ["for attempt in range(tries):", *indent(attempt)]
            phrases = [*phrases, tries]
        phrases += self._polish_phrase(choices)
        ending = ["return best"]
        if _polishes(choices) and not each:
            polish = self._polish(choices, "best")
            if choices["polish_when"] == "always":
                polish[-1] = polish[-1].replace("best =", "return", 1)
                ending = []
            lines += _wrapped(polish)
        return [*lines, *ending], "; ".join([what, *phrases])

    def _insert(
        self, target: str, choices: Choices, arguments: str, options: list[str]
    ) -> list[str]:
        name = "ordered"
        if choices["build"] == "regret":
            name = "greedy" if choices["criterion"] == "greedy" else "regret"
            if name == "regret":
                options = ["k=k", *options]
            if weighted(choices):
                options = [options[0], "weight=weight", *options[1:]]
        return _call(target, name, self.words.given, ", ".join([arguments, *options]))

    def _inserting(self, choices: Choices) -> tuple[str, list[str], list[str], str]:
        """(phrase, lines before the tries, lines that begin one, what is inserted)."""
        removed, item = self.words.removed, self.words.item
        if choices["build"] == "regret":
            return self._regret_phrase(choices), [], [], removed
        name, retry = str(choices["order"]), choices["retry"]
        drawn = f"rng.sample({removed}, len({removed}))"
        key, phrase = self.orders.get(name, ("", "in random order"))
        what = f"Insert the removed {item}s one at a time, {phrase}"
        if retry == "anew" and name != "random":
            lines = [f"keys = {{node: {key} for node in {removed}}}"]
            jittered = f"keys[node] * (1 + {choices['jitter']} * rng.random())"
            order = [f"order = sorted({removed}, key=lambda node: {jittered})"]
            what += f" (keys with up to {round(100 * float(choices['jitter']))}% noise)"
            return f"{what}, {_CHEAPEST}", lines, order, "order"
        ordered = drawn if name == "random" else f"sorted({removed}, key=lambda node: {key})"
        before = []
        if len(ordered) > _WIDTH - 12:
            before = [f"keys = {{node: {key} for node in {removed}}}"]
            ordered = f"sorted({removed}, key=lambda node: keys[node])"
        if retry in ("once", "anew"):
            order = [f"order = {ordered}"]
            if _takes_turns(choices):
                turn, turn_phrase = self.orders[str(choices["turn"])]
                every = choices["turn_every"]
                order += [f"if attempt % {every} == 0:", f"    order.sort(key=lambda node: {turn})"]
                often = {2: "second", 3: "third", 4: "fourth"}[int(every)]
                what += f" or on every {often} try {turn_phrase}"
            return f"{what}, {_CHEAPEST}", before, order, "order"
        change, change_phrase = _CHANGES[str(retry)]
        moves = str(choices["moves"])
        number, times = _MOVES.get(moves, (moves, f"{moves} times"))
        order = ["order = best_order[:]"]
        order += change if moves == "1" else [f"for _ in range({number}):", *indent(change)]
        what += f", {_CHEAPEST}, then {change_phrase.replace('$item', item)} of the best order"
        if moves != "1":
            what += f" {times}"
        return what, [*before, f"best_order = {ordered}"], order, "order"

    def _regret_phrase(self, choices: Choices) -> str:
        item = self.words.item
        if choices["criterion"] == "greedy":
            return f"Insert next the removed {item} that is cheapest to insert"
        among = PLACES[str(choices["k"])][1].replace("places", self.words.places)
        what = f"Insert next the removed {item} with the largest regret over its {among}"
        if weighted(choices):
            what += f" less {choices['weight']} times its insertion cost"
        return f"{what}, at its cheapest place"

    def _start(self, choices: Choices) -> list[str]:
        """Lines that set what the tries have to beat."""
        start = choices.get("start", NONE)
        if start == NONE:
            return ['best, best_cost = None, float("inf")']
        removed = self.words.removed
        if start == "greedy":
            return _call("best, best_cost", "greedy", self.words.given, removed)
        return _call(
            "best, best_cost", "regret", self.words.given, f"{removed}, k={str(start)[-1]}"
        )

    def _polish(self, choices: Choices, best: str) -> list[str]:
        lines, limit = [], choices.get("polish_limit")
        for name in _searches(choices):
            source = self.searches[name][0].replace("$best", best)
            lines.append(f"{best} = {source.replace('$touched', self.words.removed)}, {limit})")
        test = _POLISH_WHEN.get(str(choices.get("polish_when")), ("", ""))[0]
        return [f"if {test}:", *indent(lines)] if test else lines

    def _polish_phrase(self, choices: Choices) -> list[str]:
        if not _polishes(choices):
            return []
        names = " and ".join(self.searches[name][1] for name in _searches(choices))
        each = "each try" if choices["polish_at"] == "each" else "the result"
        kind, _, number = str(choices["polish_limit"]).partition("=")
        limit = f"with {number} neighbours" if kind == "near" else f"in at most {number} moves"
        when = _POLISH_WHEN[str(choices["polish_when"])][1]
        return [f"{when}polish {each} at the inserted {self.words.item}s by {names} {limit}"]


_CHEAPEST = "each at its cheapest place"
_CRITERIA: Weights = {"regret": 5.0, "weighted": 2.0, "greedy": 1.0}
_CHANGES: dict[str, tuple[list[str], str]] = {
    "shift": (
        ["order.insert(rng.randrange(len(order)), order.pop(rng.randrange(len(order))))"],
        "move a random $item",
    ),
    "swap": (
        [
            "i, j = rng.randrange(len(order)), rng.randrange(len(order))",
            "order[i], order[j] = order[j], order[i]",
        ],
        "swap two $items",
    ),
    "front": (
        ["order.insert(0, order.pop(rng.randrange(len(order))))"],
        "move a random $item to the front",
    ),
    "reverse": (
        [
            "i, j = sorted(rng.choices(range(len(order) + 1), k=2))",
            "order[i:j] = order[i:j][::-1]",
        ],
        "reverse a random stretch",
    ),
}
_MOVES = {
    "random": ("rng.randint(1, 3)", "1 to 3 times at random"),
    "grow": (f"1 + {STATE} // 10", "once more every 10 steps without improvement"),
    "cycle": (f"1 + {STATE} % 3", "1 to 3 times in turn with the steps without improvement"),
}
_LIMITS: Weights = {"near=6": 1.0, "near=10": 2.0, "moves=30": 1.0, "moves=100": 0.7}
_POLISH_WHEN = {
    "always": ("", ""),
    "early 3": (f"{STATE} < 3", "within 3 steps of an improvement "),
    "early 10": (f"{STATE} < 10", "within 10 steps of an improvement "),
    "late 2": (f"{STATE} >= 2", "after 2 steps without improvement "),
    "late 5": (f"{STATE} >= 5", "after 5 steps without improvement "),
    "every 2": (f"{STATE} % 2 == 0", "on every second step without improvement "),
}


def _is(build: str) -> Callable[[Choices], bool]:
    return lambda choices: choices["build"] == build


def _retries(choices: Choices) -> Weights:
    if choices["build"] == "regret":
        return {"once": 1.5, "anew": 2.0}
    return {"once": 0.6, "anew": 3.0, "shift": 3.0, "swap": 1.0, "front": 1.5, "reverse": 0.7}


def _changes(choices: Choices) -> bool:
    return choices["retry"] in _CHANGES


def _jitters(choices: Choices) -> bool:
    return choices["retry"] == "anew" and choices.get("order", "random") != "random"


def _takes_turns(choices: Choices) -> bool:
    return choices.get("turn", NONE) != NONE


def _polishes(choices: Choices) -> bool:
    return choices["polish"] != NONE


def _searches(choices: Choices) -> list[str]:
    return str(choices["polish"]).split(" + ") if _polishes(choices) else []


def _moves(choices: Choices) -> Weights:
    if not _changes(choices):
        return {}
    weights: dict[Choice, float] = {"1": 5.0, "2": 1.5, "3": 0.7, "random": 1.0}
    return weights | ({"grow": 0.7, "cycle": 0.7} if uses_state(choices) else {})


def _polish_at(choices: Choices) -> Weights:
    if not _polishes(choices):
        return {}
    return {"end": 3.0, "each": 1.0} if tries_again(choices) else {"end": 1.0}


def _polish_when(choices: Choices) -> Weights:
    if not _polishes(choices):
        return {}
    if not uses_state(choices):
        return {"always": 1.0}
    return {name: 5.0 if name == "always" else 0.5 for name in _POLISH_WHEN}


def _starts(choices: Choices) -> Weights:
    """Without polish in each try only: a start is not polished."""
    if choices["retry"] != "anew" or choices.get("polish_at") == "each":
        return {}
    plain = 1.5 if choices["build"] == "ordered" else 0.5
    return {NONE: plain, "greedy": 1.0, "regret 2": 0.7, "regret 3": 0.7}


def _call(target: str, name: str, given: str, rest: str) -> list[str]:
    """`target = lns.NAME_insertion(given, rest)`, in as many lines as it takes."""
    head = f"{target} = lns.{name}_insertion({given},"
    line = f"{head} {rest})"
    if len(line) <= _WIDTH or len(head) > _WIDTH:
        return wrapped(line, _WIDTH)
    return [head, f"    {rest})"]


def _wrapped(lines: list[str]) -> list[str]:
    return [each for line in lines for each in wrapped(line, _LONGEST)]
