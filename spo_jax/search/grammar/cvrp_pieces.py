"""Pieces of source and sentence for the CVRP grammars: sizes, and mixes of two mechanisms.

Lines and variable names are those of the TSP grammars wherever the meaning is the same, because
one small language model learns from both (a new line costs it vocabulary). Strings are chosen so
that the expression in the source and the words of the sentence come from the same choice.
"""

from collections.abc import Callable

from spo_jax.search.grammar.base import Choice, Choices, Slot, Weights, choice, uses_state

NONE = "none"
STATE = "steps_since_improvement"


def steps(count: Choice | None) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def ordinal(count: Choice | None) -> str:
    return "3rd" if count == 3 else f"{count}th"


# --- two mechanisms in one program ----------------------------------------------------------------


def mix_slot(name: str, second: str) -> Slot:
    """When a program uses its second mechanism (the slot called `second`), if it has one."""

    def weights(choices: Choices) -> Weights:
        if choices.get(second, NONE) == NONE:
            return {}
        chance: Weights = {f"chance {p}": 1.0 for p in (0.2, 0.3, 0.5, 0.7)}
        if not uses_state(choices):
            return chance
        after: Weights = {f"after {k}": 1.0 for k in (2, 5, 10, 20)}
        rising: Weights = {f"rising {k}": 1.0 for k in (5, 10, 20, 40)}
        return {**chance, "alternate 2": 1.0, "alternate 3": 1.0, **after, **rising}

    return choice(name, "control", weights, plain="chance 0.5")


def mix_reads_state(mix: str) -> bool:
    return mix.startswith(("alternate", "after", "rising"))


def condition(mix: str) -> tuple[str, str]:
    """(test that keeps to the first mechanism, when the sentence says the second is used)."""
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
    return (
        f"rng.random() * ({STATE} + {value}) < {value}",
        f"ever more often as stagnation passes {value} steps",
    )


# --- how many customers a destroy program takes ---------------------------------------------------

_LOWS: Weights = {
    "3": 0.5, "4": 1.0, "6": 1.5, "8": 2.0, "10": 2.5, "12": 1.5, "15": 1.0,
    "0.05 * n": 1.0, "0.1 * n": 1.5, "0.15 * n": 0.7,
    "0.7 * math.sqrt(n)": 1.0, "math.sqrt(n)": 1.0, "1.5 * math.sqrt(n)": 0.7,
    "n / len(current_routes)": 0.8, "1.5 * n / len(current_routes)": 0.5,
}  # fmt: skip
_HIGHS: Weights = {
    "12": 0.7, "16": 1.0, "20": 1.5, "25": 2.5, "30": 1.5, "35": 1.0, "40": 1.0, "50": 1.0,
    "0.2 * n": 0.7, "0.3 * n": 0.7, "limit": 1.0,
    "1.5 * math.sqrt(n)": 0.8, "2 * math.sqrt(n)": 1.2, "2.5 * math.sqrt(n)": 1.0,
    "3 * math.sqrt(n)": 0.7,
    "1.5 * n / len(current_routes)": 0.5, "2 * n / len(current_routes)": 1.0,
    "3 * n / len(current_routes)": 1.0,
}  # fmt: skip
_SIZE_RULES: Weights = {
    "fixed": 0.5, "random": 3.0, "skew low": 0.8, "skew high": 0.5,
    "shrink": 1.0, "grow": 1.0, "cycle": 1.5, "early": 1.5, "relax": 1.5, "burst": 1.0,
}  # fmt: skip
_STATEFUL_SIZES = ("shrink", "grow", "cycle", "early", "relax", "burst")
_SIZE_RATES: dict[str, Weights] = {
    "shrink": {5: 1.0, 10: 1.0, 20: 1.0, 40: 1.0},
    "grow": {5: 1.0, 10: 1.0, 20: 1.0, 40: 1.0, 80: 1.0},
    "cycle": {3: 1.0, 4: 1.0, 5: 1.0, 8: 1.0, 12: 1.0},
    "early": {1: 1.0, 2: 1.0, 3: 1.0, 5: 1.0, 10: 1.0},
    "relax": {5: 1.0, 10: 1.0, 20: 1.0, 40: 1.0},
    "burst": {3: 1.0, 4: 1.0, 6: 1.0, 10: 1.0},
}


def size_slots(must_read_state: Callable[[Choices], bool]) -> tuple[Slot, ...]:
    """Slots for the number of customers removed.

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
        choice("size_high", "control", _HIGHS, plain="25"),
        choice("size_rate", "control", lambda c: _SIZE_RATES.get(str(c["size_rule"]), {})),
    )


def _bound(text: str) -> str:
    return text if text.isdigit() or text == "limit" else f"int({text})"


def _spoken(text: str) -> str:
    if text == "limit":
        return "35% of the customers"
    if text.endswith("* n"):
        return f"{round(100 * float(text.split()[0]))}% of the customers"
    if text.endswith("len(current_routes)"):
        factor = text.split()[0] if "*" in text else "1"
        return f"{factor} mean route{'' if factor == '1' else 's'}"
    return text.replace("math.sqrt(n)", "sqrt(n)").replace(" * ", " ")


def size_lines(choices: Choices) -> tuple[list[str], str]:
    """(lines that set `size` from n, limit, the routes and the state; phrase)."""
    rule, rate = str(choices["size_rule"]), choices.get("size_rate")
    high, most = _bound(str(choices["size_high"])), _spoken(str(choices["size_high"]))
    if rule == "fixed":
        return [f"size = {high}"], f"{most} customers" if "sqrt" in most or most.isdigit() else most
    low, least = _bound(str(choices["size_low"])), _spoken(str(choices["size_low"]))
    upper = "limit" if high == "limit" else f"min(limit, {high})"
    lines = [f"low = {low}", f"high = max(low, {upper})"]
    between = f"from {least} to {most} customers" if most[-1].isdigit() else f"{least} to {most}"
    if rule == "random":
        return [*lines, "size = rng.randint(low, high)"], f"{between} at random"
    if rule.startswith("skew"):
        power, small = ("2", "small") if rule == "skew low" else ("0.5", "large")
        lines.append(f"size = low + int((high - low + 1) * rng.random() ** {power})")
        return lines, f"{between} at random, {small} numbers more often"
    if rule == "shrink":
        lines.append(f"size = low + (high - low) * {rate} // ({rate} + {STATE})")
        return lines, (
            f"{most} after an improvement, shrinking towards {least} with stagnation (half way"
            f" after {rate} steps)"
        )
    if rule == "grow":
        lines.append(f"size = low + (high - low) * min({STATE}, {rate}) // {rate}")
        return lines, (
            f"{least} after an improvement, growing to {most} over {rate} steps without improvement"
        )
    if rule == "cycle":
        lines.append(f"size = low + (high - low) * ({STATE} % {rate}) // {int(rate or 2) - 1}")
        return lines, f"{between}, cycling upwards every {rate} steps without improvement"
    if rule == "relax":
        lines.append(f"high = max(low, high * {rate} // ({rate} + {STATE}))")
        lines.append("size = rng.randint(low, high)")
        return lines, (
            f"{between} at random, the upper end falling with stagnation"
            f" (halved after {rate} steps)"
        )
    if rule == "early":
        lines.append(f"size = high if {STATE} < {rate} else rng.randint(low, high)")
        when = (
            "right after an improvement" if rate == 1 else f"for {rate} steps after an improvement"
        )
        return lines, f"{most} {when} and {between} at random in stagnation"
    lines.append(f"burst = {STATE} % {rate} == {int(rate or 2) - 1}")
    lines.append("size = high if burst else rng.randint(low, (low + high) // 2)")
    return lines, (
        f"{between} at random from the lower half, but {most} on every {ordinal(rate)} step without"
        " improvement"
    )
