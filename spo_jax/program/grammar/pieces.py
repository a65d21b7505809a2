"""Source and sentence pieces shared by all grammars: amounts, mechanisms, mixes and layout.

Programs are assembled from whole lines with one set of variable names, because a small language
model learns them as line-level tokens: a second name for one thing costs vocabulary. The expression
in the source and the words of the sentence always come from the same choice.
"""

from collections.abc import Callable, Iterable
from string import Template
from textwrap import dedent

from spo_jax.program.grammar.base import Choice, Choices, Slot, Weights, choice, uses_state

NONE = "none"
STATE = "steps_since_improvement"
NEAREST = ["row = dist[seed]", "left.sort(key=lambda node: row[node])"]

# --- layout ---------------------------------------------------------------------------------------


def indent(lines: Iterable[str], levels: int = 1) -> list[str]:
    return ["    " * levels + line if line else line for line in lines]


def fill(template: str, **values: object) -> list[str]:
    """The lines of a template with its $names replaced.

    A list of lines replaces a line that has only its name, at the same indentation.
    """
    filled: list[str] = []
    for line in dedent(template).strip("\n").split("\n"):
        value = values.get(line.strip().removeprefix("$"))
        if isinstance(value, list):
            filled += indent(value, line.index("$") // 4)
        else:
            filled.append(Template(line).substitute(values))
    return filled


def function(header: str, body: Iterable[str]) -> str:
    return "\n".join([header, *indent(body)])


def module(parts: Iterable[str]) -> str:
    """Functions as one source, with their imports on top."""
    text = "\n\n\n".join(parts)
    names = {"lns": "import lns", "math": "import math", "np": "import numpy as np"}
    imports = [line for name, line in names.items() if f"{name}." in text]
    return "\n".join([*imports, "", "", text] if imports else [text]) + "\n"


def sentence(text: str) -> str:
    return " ".join(text.split())


def steps(count: Choice | None) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def ordinal(count: Choice | None) -> str:
    return "3rd" if count == 3 else f"{count}th"


# --- amounts that follow the LNS state ------------------------------------------------------------

STATEFUL_RULES = ("grow", "shrink", "cycle", "switch")

_RULE_WEIGHTS: Weights = {"random": 2.0, "grow": 2.0, "shrink": 1.0, "cycle": 1.0, "switch": 1.0}
_RATES: Weights = {2: 1.0, 3: 1.0, 5: 2.0, 8: 1.0, 10: 2.0, 15: 1.0, 20: 2.0, 30: 1.0, 50: 1.0}


def amount_slots(
    name: str,
    pairs: Weights | Callable[[Choices], Weights],
    *,
    when: Callable[[Choices], bool] | None = None,
    plain: Choice | None = None,
    rates: Weights = _RATES,
) -> tuple[Slot, ...]:
    """Slots for a whole number that may follow the state.

    pairs: weights of "low:high" ranges. `plain` is a range, too; the plain rule is "fixed", which
    takes the high end. rates: weights of the steps without improvement by which it changes.
    """

    def rule_weights(choices: Choices) -> Weights:
        if uses_state(choices):
            return _RULE_WEIGHTS
        return {rule: w for rule, w in _RULE_WEIGHTS.items() if rule not in STATEFUL_RULES}

    return (
        choice(f"{name}_range", "control", pairs, when=when, plain=plain),
        choice(
            f"{name}_rule",
            "control",
            rule_weights,
            when=lambda c: f"{name}_range" in c and len(set(_ends(c, name))) == 2,
            plain="random",
        ),
        choice(
            f"{name}_rate",
            "control",
            rates,
            when=lambda c: c.get(f"{name}_rule") in ("grow", "shrink", "switch"),
        ),
    )


def _ends(choices: Choices, name: str) -> tuple[int, int]:
    low, _, high = str(choices[f"{name}_range"]).partition(":")
    return int(low), int(high)


def at_most(choices: Choices, name: str) -> int:
    """The largest value of an amount."""
    return _ends(choices, name)[1]


def amount(choices: Choices, name: str) -> tuple[str, str]:
    """(expression, phrase) of the number that `amount_slots(name, ...)` describe."""
    low, high = _ends(choices, name)
    rule, rate = choices.get(f"{name}_rule"), choices.get(f"{name}_rate")
    step = f"{STATE} // {rate}"
    if low == high:
        return str(high), str(high)
    if rule == "random":
        return f"rng.randint({low}, {high})", f"{low} to {high} at random"
    if rule == "grow":
        return (
            f"min({high}, {low} + {step})",
            f"{low} growing to {high} by one every {rate} steps without improvement",
        )
    if rule == "shrink":
        return (
            f"max({low}, {high} - {step})",
            f"{high} falling to {low} by one every {rate} steps without improvement",
        )
    if rule == "cycle":
        return (
            f"{low} + {STATE} % {high - low + 1}",
            f"{low} to {high} in turn with the steps without improvement",
        )
    return (
        f"{high} if {STATE} > {rate} else {low}",
        f"{low}, or {high} after {rate} steps without improvement",
    )


# --- one mechanism, or two in one program ---------------------------------------------------------

_CHANCES: Weights = dict.fromkeys((0.2, 0.3, 0.5, 0.7), 1.0)


def mechanism_slots(weights: Weights, alone: float) -> tuple[Slot, Slot]:
    """Slots "first" and "second" for one or two different mechanisms.

    alone: odds of no second mechanism against one.
    """

    def second(choices: Choices) -> Weights:
        others = {name: w for name, w in weights.items() if name != choices["first"]}
        return {NONE: alone * sum(others.values()), **others}

    return choice("first", "mechanism", weights), choice("second", "mechanism", second, plain=NONE)


def mechanisms(choices: Choices) -> list[str]:
    """The one or two mechanisms of a derivation."""
    names = [str(choices["first"]), str(choices.get("second", NONE))]
    return [name for name in names if name != NONE]


def uses(*names: str) -> Callable[[Choices], bool]:
    """Whether a derivation has one of the mechanisms `names`."""
    return lambda choices: any(name in mechanisms(choices) for name in names)


def reads_state(choices: Choices) -> bool:
    """Whether a choice of a destroy program before its size reads the state."""
    return (
        str(choices.get("mix", "")).startswith(("alternate", "after", "rising"))
        or str(choices.get("seed", "")).startswith(("sweep", "late"))
        or choices.get("regions_rule") in STATEFUL_RULES
        or choices.get("length_rule") in STATEFUL_RULES
    )


def mix_slot(
    name: str,
    second: str,
    *,
    chances: Weights = _CHANCES,
    delays: Iterable[int] = (2, 5, 10, 20),
) -> Slot:
    """Slots for when a program uses its second mechanism (the slot `second`), if any.

    chances: weights of probabilities. delays: steps without improvement before the second starts.
    """
    chance: Weights = {f"chance {p}": w for p, w in chances.items()}
    after: Weights = {f"after {k}": 1.0 for k in delays}
    rising: Weights = {f"rising {k}": 1.0 for k in (5, 10, 20, 40)}

    def weights(choices: Choices) -> Weights:
        if choices.get(second, NONE) == NONE:
            return {}
        if not uses_state(choices):
            return chance
        return {**chance, "alternate 2": 1.0, "alternate 3": 1.0, **after, **rising}

    return choice(name, "control", weights, plain="chance 0.5")


def condition(mix: str) -> tuple[str, str]:
    """(test for the first mechanism, phrase for when the second is used)."""
    rule, value = mix.split()
    if rule == "chance":
        return f"rng.random() < {round(1 - float(value), 2)}", f"with probability {value}"
    if rule == "alternate":
        return (
            f"{STATE} % {value} != {int(value) - 1}",
            f"on every {'second' if value == '2' else 'third'} step without improvement",
        )
    if rule == "after":
        return f"{STATE} < {value}", f"once {value} steps have passed without improvement"
    return (  # 1 at first, value / (value + steps) later
        f"rng.random() * ({STATE} + {value}) < {value}",
        f"ever more often as stagnation passes {value} steps",
    )
