"""The grammar of CVRP destroy programs that use the kit.

As in the plain grammar, a program decides how many customers to take, in how many regions, around
which centers, and by which removals of the kit, alone or two of them mixed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from spo_jax.envs.problems.cvrp.grammar.destroy import SIZES
from spo_jax.envs.problems.cvrp.grammar.kit_words import WORDS
from spo_jax.program.grammar.base import (
    Choice,
    Choices,
    Grammar,
    Slot,
    Weights,
    choice,
    uses_state,
)
from spo_jax.program.grammar.kit import (
    PLAIN_REMOVALS,
    Removal,
    removal_lines,
    split_slots,
    string_slots,
)
from spo_jax.program.grammar.pieces import (
    STATE,
    function,
    mechanism_slots,
    mechanisms,
    mix_slot,
    module,
    reads_state,
    sentence,
    uses,
)

REMOVALS = {
    "string": Removal(
        "lns.string_removal(dist, $all, center, $count, rng, length=$length$gap_option)",
        "strings of consecutive stops (length $length) of the routes around $around$gap_phrase",
    ),
    "related": Removal(
        "lns.related_removal(dist, demands, $all, center, $count, rng, power=$power$how)",
        "customers related$relation_phrase to those chosen before them (power $power), starting"
        " from $around",
    ),
    "radial": Removal(
        "lns.radial_removal(dist, $all, center, $count)", "the customers nearest to $around"
    ),
    "thinned": Removal(
        "lns.remove($all, rng.sample(pool, $count))",
        "a random one in $spread of the customers around $around",
        before=("pool = lns.nearest(dist, center, left, $spread * $count)",),
    ),
    "segment": Removal(
        "lns.segment_removal($all, center, $count)",
        "up to so many consecutive stops of the route of $around",
    ),
    "route": Removal(
        "lns.route_removal(dist, $all, center, $count)",
        "as many whole routes around $around as fit",
    ),
    "worst": Removal(
        "lns.worst_removal(dist, $all, $count, rng, power=$power)",
        "the customers whose removal saves most, ranked with noise (power $power)",
        seeded=False,
    ),
    "random": Removal(
        "lns.random_removal($all, $count, rng)",
        "customers drawn uniformly from all routes",
        seeded=False,
    ),
}
MECHANISMS: Weights = {
    "string": 6.0, "related": 2.5, "radial": 2.5, "thinned": 1.0, "route": 0.7, "segment": 0.2,
    "worst": 0.7, "random": 0.4,
}  # fmt: skip

# Large removals are affordable with the kit: bounds that grow with n weigh more.
_SIZES = replace(
    SIZES,
    highs={
        **SIZES.highs, "0.2 * n": 1.2, "0.3 * n": 1.2, "2 * math.sqrt(n)": 1.8,
        "2.5 * math.sqrt(n)": 1.5, "3 * math.sqrt(n)": 1.5,
    },
)  # fmt: skip

# relation -> (options, phrase)
RELATIONS = {
    "distance": ("", ""),
    "demand 0.3": (", by_demand=0.3", " by distance and demand (weight 0.3)"),
    "demand 1": (", by_demand=1", " by distance and demand"),
    "route": (", by_route=1", " by distance and membership of the same route"),
    "other": (", by_route=-0.5", " by distance and being on another route"),
}


@dataclass(frozen=True)
class Destroys:
    """What a problem's destroy programs have of their own.

    name: of the problem. header: the line that begins the function. removals, mechanisms and
    relations: as the CVRP has them above. more: slots besides.
    """

    name: str
    header: str
    removals: Mapping[str, Removal]
    mechanisms: Weights
    relations: Mapping[str, tuple[str, str]]
    more: tuple[Slot, ...] = ()

    def grammar(self) -> Grammar:
        slots = (
            *mechanism_slots(self.mechanisms, alone=1.2),
            mix_slot("mix", "second"),
            choice("seed", "control", self._centers, plain="random"),
            *split_slots({10: 0.7, 15: 1.0, 20: 1.0}),
            *string_slots(
                {
                    "5:5": 0.5, "10:10": 2.0, "15:15": 0.7, "20:20": 0.5, "2:6": 0.7, "3:10": 1.0,
                    "5:15": 0.7,
                }
            ),
            choice("gap", "option", {0: 2.0, 1: 1.0, 3: 1.0}, when=uses("string"), plain=0),
            choice("spread", "control", {2: 2.0, 3: 1.0}, when=uses("thinned"), plain=2),
            choice(
                "power", "control", {2: 1.0, 3: 1.0, 5: 1.0}, when=uses("related", "worst"), plain=3
            ),
            choice(
                "relation",
                "option",
                {name: 2.0 if name == "distance" else 1.0 for name in self.relations},
                when=uses("related"),
                plain="distance",
            ),
            *self.more,
            *_SIZES.slots(must_read_state=lambda c: not reads_state(c)),
        )  # fmt: skip
        return Grammar(
            self.name, "destroy", slots, self._render, {**PLAIN_REMOVALS, **_SIZES.drafts}
        )

    def _centers(self, choices: Choices) -> Weights:
        seeded = any(self.removals[name].seeded for name in mechanisms(choices))
        return _centers(choices) if seeded else {}

    def _render(self, choices: Choices) -> tuple[str, str]:
        """(strategy sentence, source) of a derivation."""
        size, size_phrase = _SIZES.lines(choices)
        options, related = self.relations[str(choices.get("relation", "distance"))]
        gap = choices.get("gap", 0)
        values = {
            "how": options,
            "relation_phrase": related,
            "gap_option": f", gap={gap}" if gap else "",
            "gap_phrase": f", half of them with up to {gap} stops kept inside" if gap else "",
        }
        take, where = removal_lines(choices, self.removals, _center, WORDS, values)
        lines = ["n = len(dist) - 1", "limit = max(1, int(0.35 * n))", *size]
        lines += ["size = max(1, min(limit, size))", *take]
        source = module([function(self.header, lines)])
        return sentence(f"Remove {size_phrase}, taking {where}."), source


def _centers(choices: Choices) -> Weights:
    weights: dict[Choice, float] = {"random": 7.0, "far 3": 0.7, "saving 2": 0.7, "saving 4": 0.7}
    if uses_state(choices):
        weights |= {"sweep 7": 0.5, "sweep 11": 0.5, "late 5": 0.5, "late 20": 0.5}
    return weights


def _center(choices: Choices, routes: str) -> tuple[list[str], str]:
    """(lines that set `center` from routes, phrase)."""
    kind, _, value = str(choices["seed"]).partition(" ")
    whole = choices["split"] == "whole" and not uses("thinned")(choices)
    if kind == "random" and whole:
        return ["center = rng.randint(1, n)"], "a random customer"
    lines = [f"left = [node for route in {routes} for node in route]"]
    if kind == "random":
        return [*lines, "center = rng.choice(left)"], "a random customer"
    if kind == "far":
        lines.append(f"center = max(rng.choices(left, k={value}), key=lambda node: dist[0][node])")
        return lines, f"the one of {value} random customers that is farthest from the depot"
    if kind == "sweep":
        shift = f"{value} * {STATE} + rng.randrange({value})"
        return [*lines, f"center = left[({shift}) % len(left)]"], (
            f"a center that moves {value} customers along the routes with every step without"
            " improvement"
        )
    draws, phrase = value, f"the one of {value} random customers whose removal saves most"
    lines.append(f"saved = [each for route in lns.savings(dist, {routes}) for each in route]")
    if kind == "late":
        lines.append(f"draws = 1 if {STATE} < {value} else 4")
        draws = "draws"
        phrase = (
            f"a random customer, or after {value} steps without improvement the one of 4 whose"
            " removal saves most"
        )
    lines.append(f"spots = rng.choices(range(len(left)), k={draws})")
    return [*lines, "center = left[max(spots, key=lambda i: saved[i])]"], phrase


GRAMMAR = Destroys(
    "cvrp",
    "def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):",
    REMOVALS,
    MECHANISMS,
    RELATIONS,
).grammar()
