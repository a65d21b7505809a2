"""The grammar of TSP destroy programs.

A program decides how many nodes to take (a size that follows tour length and stagnation), in how
many regions, around which seeds, and by which of ten removal mechanisms, alone or two of them
mixed by chance or by the state. What each mechanism does is in removals.py.
"""

from collections.abc import Mapping

from spo_jax.envs.problems.tsp.grammar.removals import MECHANISMS, UNSEEDED, removal
from spo_jax.program.grammar.base import Choice, Choices, Grammar, Weights, choice, uses_state
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


def _nodes(number: str) -> str:
    return f"{number} nodes"


# Discovery sees 50 nodes only, where 35% is 17: what larger tours get is decided by these weights,
# so they prefer bounds that grow with the square root of n or stop at some dozens of nodes.
SIZES = Sizes(
    lows={
        "4": 0.3, "6": 0.5, "8": 0.5, "10": 1.0, "15": 1.0, "20": 0.7,
        "0.06 * n": 1.0, "0.1 * n": 1.0,
        "math.sqrt(n)": 1.5, "1.5 * math.sqrt(n)": 1.5, "2 * math.sqrt(n)": 1.0,
    },
    highs={
        "30": 0.6, "40": 1.5, "50": 1.0, "60": 2.0, "80": 1.5, "100": 1.0,
        "0.2 * n": 0.3, "0.3 * n": 0.3, "limit": 0.4,
        "2.5 * math.sqrt(n)": 1.0, "3 * math.sqrt(n)": 1.5, "4 * math.sqrt(n)": 1.5,
        "5 * math.sqrt(n)": 0.7,
    },
    rules={
        "fixed": 1.0, "random": 2.0, "skew low": 0.5, "skew high": 1.0,
        "shrink": 0.7, "grow": 1.5, "cycle": 1.5, "early": 2.5, "relax": 0.7, "burst": 1.0,
    },
    plain_high="40",
    whole="the tour",
    fixed=_nodes,
    end=_nodes,
    between=lambda least, most: f"{least} to {most} nodes",
)  # fmt: skip


def _seed_weights(choices: Choices) -> Weights:
    if all(name in UNSEEDED for name in mechanisms(choices)):
        return {}
    weights: dict[Choice, float] = {"random": 6.0, "edge 2": 1.0, "edge 4": 1.0, "edge 8": 0.5}
    if uses_state(choices):
        weights |= {"sweep 7": 0.4, "sweep 11": 0.4, "sweep 17": 0.4}
        weights |= {"late edge 5": 0.5, "late edge 20": 0.5}
    return weights


_SLOTS = (
    *mechanism_slots(MECHANISMS, alone=2),
    mix_slot(
        "mix",
        "second",
        chances={0.2: 1.0, 0.3: 1.0, 0.5: 2.0, 0.7: 1.0},
        delays=(2, 5, 10, 20, 40),
    ),
    choice("seed", "control", _seed_weights, plain="random"),
    choice("split", "option", {"whole": 1.5, "regions": 1.0, "sized": 0.3}, plain="whole"),
    *amount_slots(
        "regions",
        {"2:2": 1.0, "3:3": 1.0, "4:4": 0.5, "1:2": 3.0, "1:3": 3.0, "1:4": 2.0, "2:4": 1.0,
         "2:3": 1.0, "1:6": 0.7, "3:6": 0.5},
        when=lambda c: c["split"] == "regions",
        plain="2:2",
    ),
    choice(
        "region_size",
        "control",
        {8: 0.5, 10: 1.0, 12: 1.0, 15: 1.0, 20: 1.0, 30: 1.0, 40: 1.0},
        when=lambda c: c["split"] == "sized",
    ),
    *amount_slots(
        "length",
        {**dict.fromkeys(("4:4", "6:6", "8:8", "10:10"), 0.5), "2:5": 1.0, "3:6": 2.0, "4:8": 2.0,
         "3:10": 2.0, "5:10": 1.0, "8:15": 1.0, "1:10": 1.0},
        when=uses("string"),
        plain="6:6",
    ),
    choice("spread", "control", {2: 2.0, 3: 1.0, 4: 0.5}, when=uses("thinned"), plain=2),
    choice("power", "control", {2: 1.0, 3: 1.0, 4: 1.0, 6: 1.0}, when=uses("shaw"), plain=3),
    choice("contest", "control", {1: 1.0, 3: 1.0, 5: 1.0}, when=uses("corridor"), plain=1),
    choice("noise", "control", {0.5: 1.0, 1: 1.0, 2: 1.0}, when=uses("worst"), plain=1),
    choice(
        "opening",
        "option",
        {"none": 1.5, "2": 0.5, "2.5": 1.0, "3": 1.5, "4": 1.0},
        plain="none",
    ),
    *SIZES.slots(must_read_state=lambda c: not reads_state(c)),
)  # fmt: skip


def render(choices: Choices) -> tuple[str, str]:
    """(strategy sentence, source) of a derivation."""
    names = mechanisms(choices)
    rough = choices["opening"] != "none"
    size_code, size_phrase = SIZES.lines(choices)
    lines = ["n = len(current_tour)", "limit = max(1, int(0.35 * n))", *size_code]
    lines.append("size = max(1, min(limit, size))")
    helpers, take, what = _take(choices, names, rough)
    where = what
    whole = choices["split"] == "whole"
    if choices["split"] == "regions":
        number, number_phrase = amount(choices, "regions")
        lines += [f"regions = {number}", "share = max(1, -(-size // regions))"]
        where = f"separate regions (how many: {number_phrase}), each of {what}"
    elif not whole:
        lines += [f"share = {choices['region_size']}"]
        where = f"separate regions of {choices['region_size']} nodes, each of {what}"
    if rough:
        lines += [
            "length = sum([dist[a][b] for a, b in zip(current_tour, current_tour[1:])])",
            f"rough = length * math.sqrt(n) > {choices['opening']} * sum(dist[current_tour[0]])",
            "if rough:",
            "    size = limit" if whole else "    size = share = limit",
        ]
    if whole:
        lines += ["left = current_tour[:]", "count = size", *take, "removed = set(picked)"]
    else:
        loop = [
            "left = [node for node in current_tour if node not in removed]",
            "count = min(share, size - len(removed))",
            *take,
            "removed.update(picked)",
        ]
        lines += ["removed = set()", "while len(removed) < size:", *indent(loop)]
    lines += [
        "removed_nodes = [node for node in current_tour if node in removed]",
        "partial_tour = [node for node in current_tour if node not in removed]",
        "return partial_tour, removed_nodes",
    ]
    what = f"Remove {size_phrase}, taking {where}"
    if rough:
        what += (
            f"; while the mean edge exceeds {choices['opening']} / sqrt(n) of the mean distance,"
            " remove the 35% of the tour nearest to one node instead"
        )
    header = "def destroy(dist, current_tour, steps_since_improvement, rng):"
    return sentence(f"{what}."), module([*helpers, function(header, lines)])


def _take(choices: Choices, names: list[str], rough: bool) -> tuple[list[str], list[str], str]:
    """(helpers, lines that set `picked` from `left` and `count`, phrase).

    A good tour of n uniform nodes has edges of about 1.4 / sqrt(n) mean distances; while it is
    still `rough`, the removal is radial, whatever the mechanisms.
    """
    first = removal(names[0], choices)
    phrase = first.phrase
    if len(names) == 1 and not (rough and names[0] == "radial"):
        helpers, take = [], first.inline()
    else:
        helpers, take = [first.helper()], [f"picked = {first.call}"]
    if len(names) == 2:
        second = removal(names[1], choices)
        test, when = condition(str(choices["mix"]))
        helpers.append(second.helper())
        take = [f"if {test}:", *indent(take), "else:", *indent([f"picked = {second.call}"])]
        phrase = f"{phrase}, or {when} {second.phrase}"
    if rough and names != ["radial"]:
        radial = removal("radial", {"seed": "random", **choices})
        helpers = list(dict.fromkeys([*helpers, radial.helper()]))
        rest = ["el" + take[0], *take[1:]] if len(names) == 2 else ["else:", *indent(take)]
        take = ["if rough:", f"    picked = {radial.call}", *rest]
    return helpers, take, phrase


# A novice takes nodes one by one or a single stretch, by no more than chance and savings.
_DRAFTS: Mapping[str, Weights] = {
    "first": {"random": 3.0, "segment": 1.0, "worst": 1.0, "edges": 1.0},
    "noise": {},
    **SIZES.drafts,
}


GRAMMAR = Grammar("tsp", "destroy", _SLOTS, render, _DRAFTS)
