"""Pieces of source and sentence that the TSP grammars share: amounts that follow the LNS state.

Programs are assembled from whole lines with one set of variable names, because a small language
model learns from them (line-level tokens): a new name for an old thing costs it vocabulary.
"""

from collections.abc import Callable, Iterable, Mapping

from spo_jax.search.grammar.base import Choice, Choices, Slot, Weights, choice, uses_state

STATEFUL_RULES = ("grow", "shrink", "cycle", "switch")

_RULE_WEIGHTS: Weights = {"random": 2.0, "grow": 2.0, "shrink": 1.0, "cycle": 1.0, "switch": 1.0}
_RATES: Weights = {2: 1.0, 3: 1.0, 5: 2.0, 8: 1.0, 10: 2.0, 15: 1.0, 20: 2.0, 30: 1.0, 50: 1.0}


def amount_slots(
    name: str,
    pairs: Weights | Callable[[Choices], Weights],
    *,
    when: Callable[[Choices], bool] | None = None,
    plain: Choice | None = None,
) -> tuple[Slot, ...]:
    """Slots for a whole number that may follow the state.

    pairs: weights of "low:high" ranges. `plain` is a range, too; the plain rule is "fixed", which
    takes the high end.
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
            _RATES,
            when=lambda c: c.get(f"{name}_rule") in ("grow", "shrink", "switch"),
        ),
    )


def _ends(choices: Choices, name: str) -> tuple[int, int]:
    low, _, high = str(choices[f"{name}_range"]).partition(":")
    return int(low), int(high)


def at_most(choices: Choices, name: str) -> int:
    """The largest value of an amount."""
    return _ends(choices, name)[1]


def amount_reads_state(choices: Choices, name: str) -> bool:
    return choices.get(f"{name}_rule") in STATEFUL_RULES


def amount(choices: Choices, name: str) -> tuple[str, str]:
    """(expression, phrase) of the number that `amount_slots(name, ...)` describe."""
    low, high = _ends(choices, name)
    rule, rate = choices.get(f"{name}_rule"), choices.get(f"{name}_rate")
    step = f"steps_since_improvement // {rate}"
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
            f"{low} + steps_since_improvement % {high - low + 1}",
            f"{low} to {high} in turn with the steps without improvement",
        )
    return (
        f"{high} if steps_since_improvement > {rate} else {low}",
        f"{low}, or {high} after {rate} steps without improvement",
    )


def indent(lines: Iterable[str], levels: int = 1) -> list[str]:
    return ["    " * levels + line if line else line for line in lines]


def function(header: str, body: Iterable[str]) -> str:
    """A function's text, and the imports that its body needs before it."""
    return "\n".join([header, *indent(body)])


def module(parts: Iterable[str]) -> str:
    """Functions as one source, with the imports that they use on top."""
    text = "\n\n\n".join(parts)
    names = {"math": "import math", "np": "import numpy as np"}
    imports = [line for name, line in names.items() if f"{name}." in text]
    return "\n".join([*imports, "", "", text] if imports else [text]) + "\n"


def sentence(text: str) -> str:
    return " ".join(text.split())


# --- how many nodes a destroy program takes ---------------------------------------------------

# Discovery sees 50 nodes only, where 35% is 17: what larger tours get is decided by these weights,
# so they prefer bounds that grow with the square root of n or stop at some dozens of nodes.
_LOWS: Weights = {
    "4": 0.3, "6": 0.5, "8": 0.5, "10": 1.0, "15": 1.0, "20": 0.7,
    "0.06 * n": 1.0, "0.1 * n": 1.0,
    "math.sqrt(n)": 1.5, "1.5 * math.sqrt(n)": 1.5, "2 * math.sqrt(n)": 1.0,
}  # fmt: skip
_HIGHS: Weights = {
    "30": 0.6, "40": 1.5, "50": 1.0, "60": 2.0, "80": 1.5, "100": 1.0,
    "0.2 * n": 0.3, "0.3 * n": 0.3, "limit": 0.4,
    "2.5 * math.sqrt(n)": 1.0, "3 * math.sqrt(n)": 1.5, "4 * math.sqrt(n)": 1.5,
    "5 * math.sqrt(n)": 0.7,
}  # fmt: skip
_SIZE_RULES: Weights = {
    "fixed": 1.0, "random": 2.0, "skew low": 0.5, "skew high": 1.0,
    "shrink": 0.7, "grow": 1.5, "cycle": 1.5, "early": 2.5, "relax": 0.7, "burst": 1.0,
}  # fmt: skip
_STATEFUL_SIZES = ("shrink", "grow", "cycle", "early", "relax", "burst")
_SIZE_RATES: Mapping[str, Weights] = {
    "shrink": {5: 1.0, 10: 1.0, 20: 1.0, 40: 1.0},
    "grow": {5: 1.0, 10: 1.0, 20: 1.0, 40: 1.0, 80: 1.0},
    "cycle": {3: 1.0, 4: 1.0, 5: 1.0, 8: 1.0, 12: 1.0},
    "early": {1: 1.0, 2: 1.0, 3: 1.0, 5: 1.0, 10: 1.0},
    "relax": {5: 1.0, 10: 1.0, 20: 1.0, 40: 1.0},
    "burst": {3: 1.0, 4: 1.0, 6: 1.0, 10: 1.0},
}


def size_slots(must_read_state: Callable[[Choices], bool]) -> tuple[Slot, ...]:
    """Slots for the number of nodes removed.

    must_read_state: whether the size has to follow the state because nothing else does (unless
        the program is derived without state conditioning).
    """

    def rules(choices: Choices) -> Weights:
        if not uses_state(choices):
            return {rule: w for rule, w in _SIZE_RULES.items() if rule not in _STATEFUL_SIZES}
        if must_read_state(choices):
            return {rule: w for rule, w in _SIZE_RULES.items() if rule in _STATEFUL_SIZES}
        return _SIZE_RULES

    return (
        choice("size_rule", "control", rules, plain="fixed"),
        choice("size_low", "control", _LOWS, when=lambda c: c["size_rule"] != "fixed", plain="10"),
        choice("size_high", "control", _HIGHS, plain="40"),
        choice("size_rate", "control", lambda c: _SIZE_RATES.get(str(c["size_rule"]), {})),
    )


def _bound(text: str) -> str:
    return text if text.isdigit() or text == "limit" else f"int({text})"


def _spoken(text: str) -> str:
    if text == "limit":
        return "35% of the tour"
    if text.endswith("* n"):
        return f"{round(100 * float(text.split()[0]))}% of the tour"
    return text.replace("math.sqrt(n)", "sqrt(n)").replace(" * ", " ")


def size_lines(choices: Choices) -> tuple[list[str], str]:
    """(lines that set `size` from n, limit and the state, phrase)."""
    rule, rate = str(choices["size_rule"]), choices.get("size_rate")
    high, most = _bound(str(choices["size_high"])), _spoken(str(choices["size_high"]))
    if rule == "fixed":
        return [f"size = {high}"], f"{most} nodes"
    low, least = _bound(str(choices["size_low"])), _spoken(str(choices["size_low"]))
    upper = "limit" if high == "limit" else f"min(limit, {high})"
    lines = [f"low = {low}", f"high = max(low, {upper})"]
    between = f"{least} to {most} nodes"
    state = "steps_since_improvement"
    if rule == "random":
        return [*lines, "size = rng.randint(low, high)"], f"{between} at random"
    if rule.startswith("skew"):
        power = "2" if rule == "skew low" else "0.5"
        small = "small" if rule == "skew low" else "large"
        lines.append(f"size = low + int((high - low + 1) * rng.random() ** {power})")
        return lines, f"{between} at random, {small} numbers more often"
    if rule == "shrink":
        lines.append(f"size = low + (high - low) * {rate} // ({rate} + {state})")
        return (
            lines,
            f"{most} nodes after an improvement, shrinking towards {least} with stagnation"
            f" (half way after {rate} steps)",
        )
    if rule == "grow":
        lines.append(f"size = low + (high - low) * min({state}, {rate}) // {rate}")
        return (
            lines,
            f"{least} nodes after an improvement, growing to {most} over {rate} steps"
            " without improvement",
        )
    if rule == "cycle":
        lines.append(f"size = low + (high - low) * ({state} % {rate}) // {int(rate or 2) - 1}")
        return lines, f"{between}, cycling upwards every {rate} steps without improvement"
    if rule == "relax":
        lines.append(f"high = max(low, high * {rate} // ({rate} + {state}))")
        lines.append("size = rng.randint(low, high)")
        return (
            lines,
            f"{between} at random, the upper end falling with stagnation"
            f" (halved after {rate} steps)",
        )
    if rule == "early":
        lines.append(f"size = high if {state} < {rate} else rng.randint(low, high)")
        when = (
            "right after an improvement" if rate == 1 else f"for {rate} steps after an improvement"
        )
        return lines, f"{most} nodes {when} and {between} at random in stagnation"
    lines.append(f"burst = {state} % {rate} == {int(rate or 2) - 1}")
    lines.append("size = high if burst else rng.randint(low, (low + high) // 2)")
    return (
        lines,
        f"{between} at random from the lower half, but {most} on every {rate}th step"
        " without improvement",
    )
