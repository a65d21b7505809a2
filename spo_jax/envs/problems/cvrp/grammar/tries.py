"""How many tries a repair program of routes makes, and how many of them start afresh."""

from spo_jax.program.grammar.base import Choices, Weights, uses_state
from spo_jax.program.grammar.pieces import STATE, ordinal, steps

CHANGES = ("shift", "swap", "promote", "rotate", "reverse")

_TRY_RULES: Weights = {"fixed": 3.0, "grow": 1.0, "switch": 1.0, "early": 1.0, "burst": 1.0}
TRY_RATES: dict[str, Weights] = {
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


def try_rules(choices: Choices) -> Weights:
    if choices["retry"] == "once":
        return {}
    return _TRY_RULES if uses_state(choices) else {"fixed": 1.0}


def low_tries(choices: Choices) -> Weights:
    return _TRIES[str(choices["build"])][0] if choices.get("tries_rule", "fixed") != "fixed" else {}


def high_tries(choices: Choices) -> Weights:
    return _TRIES[str(choices["build"])][1] if "tries_rule" in choices else {}


def caps(choices: Choices) -> Weights:
    """Bounds on the work of a step: they keep rare combinations within the time limit."""
    if choices["retry"] == "once":
        return {}
    if choices["build"] == "regret":
        return {40: 1.0, 60: 1.0, 80: 1.0}
    return {10: 1.0, 15: 1.0, 20: 1.0, 30: 1.0}


def fresh_starts(choices: Choices) -> Weights:
    if choices["retry"] not in CHANGES:
        return {}
    return {"1": 1.5, "2": 1.0, "3": 1.0, "4": 1.5, "6": 1.0, "tries // 4": 1.0, "tries // 2": 1.0}


def try_lines(choices: Choices) -> tuple[list[str], str]:
    """(lines that set `tries`, phrase)."""
    rule, rate = choices["tries_rule"], choices.get("tries_rate")
    high, low = str(choices["tries_high"]), str(choices.get("tries_low", "1"))
    most, least = _describe(high), _describe(low)
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


def _describe(text: str) -> str:
    text = text.replace("len(removed_customers)", "removed")
    return text.replace(" // ", "/").replace(" * ", " ")
