"""The number of nodes that a destroy program removes: bounds, and ten rules between them.

A bound is an expression in n, `limit` (35% of n) and, for routes, their number. Each problem
defines its bounds, their weights and their names in a sentence.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from spo_jax.program.grammar.base import Choices, Slot, Weights, choice, uses_state
from spo_jax.program.grammar.pieces import STATE, ordinal

_STATEFUL = ("shrink", "grow", "cycle", "early", "relax", "burst")
_RATES: Mapping[str, Weights] = {
    "shrink": {5: 1.0, 10: 1.0, 20: 1.0, 40: 1.0},
    "grow": {5: 1.0, 10: 1.0, 20: 1.0, 40: 1.0, 80: 1.0},
    "cycle": {3: 1.0, 4: 1.0, 5: 1.0, 8: 1.0, 12: 1.0},
    "early": {1: 1.0, 2: 1.0, 3: 1.0, 5: 1.0, 10: 1.0},
    "relax": {5: 1.0, 10: 1.0, 20: 1.0, 40: 1.0},
    "burst": {3: 1.0, 4: 1.0, 6: 1.0, 10: 1.0},
}


@dataclass(frozen=True)
class Sizes:
    """The sizes of one problem's destroy programs.

    lows, highs, rules: weights of the two bounds and of the rules. plain_high: the simplest size.
    whole: the base of a percentage.
    fixed, end, between: phrases for a constant size, for one bound at a certain time, and for a
        range between both bounds.
    """

    lows: Weights
    highs: Weights
    rules: Weights
    plain_high: str
    whole: str
    fixed: Callable[[str], str]
    end: Callable[[str], str]
    between: Callable[[str, str], str]

    @property
    def drafts(self) -> Mapping[str, Weights]:
        """What a novice removes: any number, whatever the state."""
        rules = {rule: w for rule, w in self.rules.items() if rule not in _STATEFUL}
        return {"size_rule": rules, "size_low": {}, "size_high": {}}

    def slots(self, must_read_state: Callable[[Choices], bool]) -> tuple[Slot, ...]:
        """Slots for the number of nodes removed.

        must_read_state: whether the size must follow the state because nothing else does (unless
            the program is derived without state conditioning).
        """

        def rules(choices: Choices) -> Weights:
            if not uses_state(choices):
                return {rule: w for rule, w in self.rules.items() if rule not in _STATEFUL}
            if must_read_state(choices):
                return {rule: w for rule, w in self.rules.items() if rule in _STATEFUL}
            return self.rules

        def varies(choices: Choices) -> bool:
            return choices["size_rule"] != "fixed"

        return (
            choice("size_rule", "control", rules, plain="fixed"),
            choice("size_low", "control", self.lows, when=varies, plain="10"),
            choice("size_high", "control", self.highs, plain=self.plain_high),
            choice("size_rate", "control", lambda c: _RATES.get(str(c["size_rule"]), {})),
        )

    def lines(self, choices: Choices) -> tuple[list[str], str]:
        """(lines that set `size` from n, limit, the solution and the state; phrase)."""
        rule, rate = str(choices["size_rule"]), choices.get("size_rate")
        high, most = _bound(str(choices["size_high"])), self._describe(str(choices["size_high"]))
        if rule == "fixed":
            return [f"size = {high}"], self.fixed(most)
        low, least = _bound(str(choices["size_low"])), self._describe(str(choices["size_low"]))
        upper = "limit" if high == "limit" else f"min(limit, {high})"
        lines = [f"low = {low}", f"high = max(low, {upper})"]
        between = self.between(least, most)
        if rule == "random":
            return [*lines, "size = rng.randint(low, high)"], f"{between} at random"
        if rule.startswith("skew"):
            power, kind = ("2", "small") if rule == "skew low" else ("0.5", "large")
            lines.append(f"size = low + int((high - low + 1) * rng.random() ** {power})")
            return lines, f"{between} at random, {kind} numbers more often"
        if rule == "shrink":
            lines.append(f"size = low + (high - low) * {rate} // ({rate} + {STATE})")
            return lines, (
                f"{self.end(most)} after an improvement, shrinking towards {least} with stagnation"
                f" (half way after {rate} steps)"
            )
        if rule == "grow":
            lines.append(f"size = low + (high - low) * min({STATE}, {rate}) // {rate}")
            return lines, (
                f"{self.end(least)} after an improvement, growing to {most} over {rate} steps"
                " without improvement"
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
            when = "right" if rate == 1 else f"for {rate} steps"
            return lines, (
                f"{self.end(most)} {when} after an improvement and {between} at random in"
                " stagnation"
            )
        lines.append(f"burst = {STATE} % {rate} == {int(rate or 2) - 1}")
        lines.append("size = high if burst else rng.randint(low, (low + high) // 2)")
        return lines, (
            f"{between} at random from the lower half, but {most} on every {ordinal(rate)} step"
            " without improvement"
        )

    def _describe(self, bound: str) -> str:
        if bound == "limit":
            return f"35% of {self.whole}"
        if bound.endswith("* n"):
            return f"{round(100 * float(bound.split()[0]))}% of {self.whole}"
        if bound.endswith("len(current_routes)"):
            factor = bound.split()[0] if "*" in bound else "1"
            return f"{factor} mean route{'' if factor == '1' else 's'}"
        return bound.replace("math.sqrt(n)", "sqrt(n)").replace(" * ", " ")


def _bound(text: str) -> str:
    return text if text.isdigit() or text == "limit" else f"int({text})"
