"""The grammar of CVRP destroy programs, and what other problems of routes share with it.

A program decides how many customers to take (a size that follows customer count, route length and
stagnation), in how many regions, around which seeds, and by which of eleven removal mechanisms,
alone or two of them mixed by chance or by the state. What each does is in removals.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from spo_jax.envs.problems.cvrp.grammar.removals import BODIES, MECHANISMS, UNSEEDED, removal
from spo_jax.program.grammar.base import (
    Choice,
    Choices,
    Grammar,
    Slot,
    Weights,
    choice,
    uses_state,
)
from spo_jax.program.grammar.pieces import (
    amount,
    amount_slots,
    condition,
    function,
    indent,
    mechanism_slots,
    mechanisms,
    mix_slot,
    module,
    reads_state,
    sentence,
    uses,
)
from spo_jax.program.grammar.sizes import Sizes


def _fixed(number: str) -> str:
    return f"{number} customers" if "sqrt" in number or number.isdigit() else number


def _between(least: str, most: str) -> str:
    return f"from {least} to {most} customers" if most[-1].isdigit() else f"{least} to {most}"


SIZES = Sizes(
    lows={
        "3": 0.5, "4": 1.0, "6": 1.5, "8": 2.0, "10": 2.5, "12": 1.5, "15": 1.0,
        "0.05 * n": 1.0, "0.1 * n": 1.5, "0.15 * n": 0.7,
        "0.7 * math.sqrt(n)": 1.0, "math.sqrt(n)": 1.0, "1.5 * math.sqrt(n)": 0.7,
        "n / len(current_routes)": 0.8, "1.5 * n / len(current_routes)": 0.5,
    },
    highs={
        "12": 0.7, "16": 1.0, "20": 1.5, "25": 2.5, "30": 1.5, "35": 1.0, "40": 1.0, "50": 1.0,
        "0.2 * n": 0.7, "0.3 * n": 0.7, "limit": 1.0,
        "1.5 * math.sqrt(n)": 0.8, "2 * math.sqrt(n)": 1.2, "2.5 * math.sqrt(n)": 1.0,
        "3 * math.sqrt(n)": 0.7,
        "1.5 * n / len(current_routes)": 0.5, "2 * n / len(current_routes)": 1.0,
        "3 * n / len(current_routes)": 1.0,
    },
    rules={
        "fixed": 0.5, "random": 3.0, "skew low": 0.8, "skew high": 0.5,
        "shrink": 1.0, "grow": 1.0, "cycle": 1.5, "early": 1.5, "relax": 1.5, "burst": 1.0,
    },
    plain_high="25",
    whole="the customers",
    fixed=_fixed,
    end=str,
    between=_between,
)  # fmt: skip


def _seed_weights(choices: Choices) -> Weights:
    if all(name in UNSEEDED for name in mechanisms(choices)):
        return {}
    weights: dict[Choice, float] = {"random": 7.0, "leg": 1.0, "far 3": 0.7}
    weights |= {"small 2": 0.7, "small 4": 0.5}
    if uses_state(choices):
        weights |= {"sweep 7": 0.4, "sweep 11": 0.4, "late 5": 0.5, "late 20": 0.5}
    return weights


_SLOTS: tuple[Slot, ...] = (
    choice("seed", "control", _seed_weights, plain="random"),
    choice(
        "split",
        "option",
        {"whole": 3.0, "regions": 1.0, "scaled": 1.5},
        plain="whole",
    ),
    *amount_slots(
        "regions",
        {"1:2": 3.0, "1:3": 3.0, "1:4": 1.0, "2:3": 1.0, "2:4": 1.0},
        when=lambda c: c["split"] == "regions",
        plain="1:2",
    ),
    choice(
        "per_region",
        "control",
        {10: 0.5, 12: 1.0, 15: 1.0, 20: 1.0, 25: 1.0, 30: 0.5},
        when=lambda c: c["split"] == "scaled",
        plain=20,
    ),
    *amount_slots(
        "length",
        {"1:5": 1.0, "2:5": 1.0, "3:6": 1.0, "1:8": 1.0, "4:8": 1.0, "1:10": 3.0, "3:10": 1.0,
         "5:10": 0.7, "1:15": 1.0},
        when=uses("string", "tail"),
        plain="1:10",
    ),
    choice(
        "gap", "option", {0: 3.0, 1: 1.0, 2: 1.0, 3: 0.7, 5: 0.5}, when=uses("string"), plain=0
    ),
    choice(
        "spread",
        "control",
        {2: 2.0, 3: 1.0, 4: 0.5},
        when=uses("thinned", "border", "timely"),
        plain=2,
    ),
    choice("pick", "control", {"near": 2.0, "small": 1.0, "light": 1.0}, when=uses("route")),
    choice("by_demand", "option", {0.0: 2.0, 0.3: 1.0, 1.0: 1.0}, when=uses("shaw"), plain=0.0),
    choice("by_route", "option", {0.0: 2.0, 1.0: 1.0, -1.0: 1.0}, when=uses("shaw"), plain=0.0),
    choice("power", "control", {2: 1.0, 3: 1.0, 4: 1.0, 6: 1.0}, when=uses("shaw"), plain=3),
    choice("area", "option", {0: 1.0, 2: 1.0, 3: 1.0}, when=uses("worst"), plain=0),
    choice("noise", "control", {0.5: 1.0, 1: 1.0, 2: 1.0}, when=uses("worst"), plain=1),
    *SIZES.slots(must_read_state=lambda c: not reads_state(c)),
)  # fmt: skip


def _kept(name: str) -> list[str]:
    return [
        f"{name} = []",
        "for route in current_routes:",
        f"    {name}.append([node for node in route if node not in removed])",
    ]


@dataclass(frozen=True)
class Destroys:
    """The destroy programs of one problem of routes.

    header: of the function. rows: the arguments of the instance besides the distances that a
    mechanism may use. mechanisms: their weights. bodies: their templates. slots: of choices that
    only this problem has.
    """

    problem: str
    header: str
    rows: tuple[str, ...]
    mechanisms: Weights
    bodies: Mapping[str, str]
    slots: tuple[Slot, ...] = ()

    def grammar(self) -> Grammar:
        slots = (
            *mechanism_slots(self.mechanisms, alone=1.2),
            mix_slot("mix", "second"),
            *_SLOTS,
            *self.slots,
        )
        return Grammar(self.problem, "destroy", slots, self.render, _DRAFTS)

    def render(self, choices: Choices) -> tuple[str, str]:
        """(strategy sentence, source) of a derivation."""
        names = mechanisms(choices)
        helpers, calls, phrases = zip(
            *(removal(name, choices, self.bodies, self.rows) for name in names), strict=True
        )
        size_code, size_phrase = SIZES.lines(choices)
        lines = ["n = len(dist) - 1", "limit = max(1, int(0.35 * n))", *size_code]
        lines.append("size = max(1, min(limit, size))")
        if len(names) == 2:
            test, when = condition(str(choices["mix"]))
            take = [f"if {test}:", f"    picked = {calls[0]}", "else:", f"    picked = {calls[1]}"]
            what = f"{phrases[0]}, or {when} {phrases[1]}"
        else:
            take, what = [f"picked = {calls[0]}"], phrases[0]
        if choices["split"] == "whole":
            where = what
            lines += ["routes = [route for route in current_routes if route]"]
            lines += ["count = size", *take, "removed = set(picked)"]
        else:
            if choices["split"] == "regions":
                number, number_phrase = amount(choices, "regions")
                lines += [f"regions = {number}", "share = max(1, -(-size // regions))"]
                where = f"separate regions (how many: {number_phrase}), each of {what}"
            else:
                lines += [f"share = {choices['per_region']}"]
                where = f"separate regions of at most {choices['per_region']}, each of {what}"
            lines += ["removed = set()", "while len(removed) < size:"]
            lines += indent(
                [
                    *_kept("routes"),
                    "routes = [route for route in routes if route]",
                    "count = min(share, size - len(removed))",
                    *take,
                    "removed.update(picked)",
                ]
            )
        lines += [
            "left = [node for route in current_routes for node in route]",
            "removed_customers = [node for node in left if node in removed]",
            *_kept("partial_routes"),
            "return partial_routes, removed_customers",
        ]
        source = module([*helpers, function(self.header, lines)])
        return sentence(f"Remove {size_phrase}, taking {where}."), source


# A novice takes customers one by one or a single stretch, by no more than chance and savings.
_DRAFTS: Mapping[str, Weights] = {
    "first": {"random": 3.0, "segment": 1.0, "worst": 1.0},
    "noise": {},
    **SIZES.drafts,
}


GRAMMAR = Destroys(
    "cvrp",
    "def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):",
    ("demands",),
    MECHANISMS,
    BODIES,
).grammar()
