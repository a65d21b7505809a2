"""The grammar of TSP destroy programs that use the kit.

As in the plain grammar, a program decides how many nodes to take, in how many regions, around which
centers, and by which removals of the kit, alone or two of them mixed.
"""

from dataclasses import replace

from spo_jax.envs.problems.tsp.grammar.destroy import SIZES
from spo_jax.envs.problems.tsp.grammar.kit_words import WORDS
from spo_jax.program.grammar.base import Choice, Choices, Grammar, Weights, choice, uses_state
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

_REMOVALS = {
    "radial": Removal(
        "lns.radial_removal(dist, $all, center, $count)", "the nodes nearest to $around"
    ),
    "thinned": Removal(
        "lns.remove($all, rng.sample(pool, $count))",
        "a random one in $spread of the nodes around $around",
        before=("pool = lns.nearest(dist, center, $all, $spread * $count)",),
    ),
    "segment": Removal(
        "lns.segment_removal($all, center, $count)", "a stretch of consecutive nodes around $around"
    ),
    "string": Removal(
        "lns.string_removal(dist, $all, center, $count, rng, length=$length)",
        "strings of consecutive nodes (length $length) through the tour near $around",
    ),
    "related": Removal(
        "lns.related_removal(dist, $all, center, $count, rng, power=$power)",
        "nodes related to those chosen before them (power $power), starting from $around",
    ),
    "worst": Removal(
        "lns.worst_removal(dist, $all, $count, rng, power=$power)",
        "the nodes whose removal shortens the tour most, ranked with noise (power $power)",
        seeded=False,
    ),
    "random": Removal(
        "lns.random_removal($all, $count, rng)",
        "nodes drawn uniformly from the tour",
        seeded=False,
    ),
}
_MECHANISMS: Weights = {
    "radial": 5.0, "string": 4.0, "segment": 2.0, "related": 2.0, "thinned": 1.0, "worst": 0.5,
    "random": 0.3,
}  # fmt: skip

# Large removals are affordable with the kit: bounds that grow with n weigh more.
_SIZES = replace(
    SIZES,
    highs={
        **SIZES.highs, "0.2 * n": 1.0, "0.3 * n": 1.0, "limit": 0.7,
        "3 * math.sqrt(n)": 2.0, "4 * math.sqrt(n)": 2.0, "5 * math.sqrt(n)": 1.5,
    },
)  # fmt: skip


def _centers(choices: Choices) -> Weights:
    if not any(_REMOVALS[name].seeded for name in mechanisms(choices)):
        return {}
    weights: dict[Choice, float] = {"random": 6.0, "saving 2": 1.0, "saving 4": 1.0}
    if uses_state(choices):
        weights |= {"sweep 7": 0.5, "sweep 17": 0.5, "late 5": 0.5, "late 20": 0.5}
    return weights


def _center(choices: Choices, tour: str) -> tuple[list[str], str]:
    """(lines that set `center` from a tour, phrase)."""
    kind, _, value = str(choices["seed"]).partition(" ")
    if kind == "random":
        return [f"center = rng.choice({tour})"], "a random node"
    if kind == "sweep":
        shift = f"{value} * {STATE} + rng.randrange({value})"
        return [f"center = {tour}[({shift}) % len({tour})]"], (
            f"a center that moves {value} places along the tour with every step without improvement"
        )
    draws, phrase = value, f"the one of {value} random nodes whose removal saves most"
    lines = [f"saved = lns.savings(dist, {tour})"]
    if kind == "late":
        lines.append(f"draws = 1 if {STATE} < {value} else 4")
        draws = "draws"
        phrase = (
            f"a random node, or after {value} steps without improvement the one of 4 whose removal"
            " saves most"
        )
    lines.append(f"spots = rng.choices(range(len({tour})), k={draws})")
    return [*lines, f"center = {tour}[max(spots, key=lambda i: saved[i])]"], phrase


_SLOTS = (
    *mechanism_slots(_MECHANISMS, alone=1.5),
    mix_slot("mix", "second", delays=(2, 5, 10, 20)),
    choice("seed", "control", _centers, plain="random"),
    *split_slots({10: 1.0, 15: 1.0, 20: 1.0, 30: 1.0}),
    *string_slots(
        {"4:4": 0.5, "6:6": 0.7, "10:10": 1.0, "15:15": 0.5, "2:6": 1.0, "3:10": 1.5, "5:15": 0.7}
    ),
    choice("spread", "control", {2: 2.0, 3: 1.0}, when=uses("thinned"), plain=2),
    choice("power", "control", {2: 1.0, 3: 1.0, 5: 1.0}, when=uses("related", "worst"), plain=3),
    choice("opening", "option", {"none": 0.7, "2.5": 0.7, "3": 1.0, "4": 0.7}, plain="none"),
    *_SIZES.slots(must_read_state=lambda c: not reads_state(c)),
)  # fmt: skip


def render(choices: Choices) -> tuple[str, str]:
    """(strategy sentence, source) of a derivation."""
    size, size_phrase = _SIZES.lines(choices)
    take, where = removal_lines(choices, _REMOVALS, _center, WORDS)
    lines = ["n = len(current_tour)", "limit = max(1, int(0.35 * n))"]
    what, opening = f"Remove {size_phrase}, taking {where}", choices["opening"]
    if opening != "none":  # a good tour of n uniform nodes has 1.4 / sqrt(n) mean distances an edge
        mean = f"{opening} * sum(dist[current_tour[0]])"
        lines += [
            f"if lns.cost(dist, current_tour) * math.sqrt(n) > {mean}:",
            "    return lns.radial_removal(dist, current_tour, rng.choice(current_tour), limit)",
        ]
        what += (
            f"; while the mean edge exceeds {opening} / sqrt(n) of the mean distance, remove the"
            " 35% of the tour nearest to one node instead"
        )
    lines += [*size, "size = max(1, min(limit, size))", *take]
    header = "def destroy(dist, current_tour, steps_since_improvement, rng):"
    return sentence(f"{what}."), module([function(header, lines)])


GRAMMAR = Grammar("tsp", "destroy", _SLOTS, render, {**PLAIN_REMOVALS, **_SIZES.drafts})
