"""The grammar of CVRP repair programs that use the kit; what they do is in program/grammar."""

from spo_jax.envs.problems.cvrp.grammar.kit_words import WORDS
from spo_jax.program.grammar.base import Choices, Grammar, Weights
from spo_jax.program.grammar.kit_repair import Repairs
from spo_jax.program.grammar.pieces import NONE, function, module, sentence

ORDERS = {
    "demand": ("-demands[node]", "the customer with the largest demand first"),
    "far": ("-dist[0][node]", "the customer farthest from the depot first"),
    "near": ("dist[0][node]", "the customer nearest to the depot first"),
    "bulky": (
        "-demands[node] * dist[0][node]",
        "the customer with the largest demand times distance from the depot first",
    ),
    "remote": ("-sum(dist[node])", "the customer most remote from all others first"),
}
QUICK = ("demand", "far", "near", "bulky")
POLISHES: Weights = {
    NONE: 3.0, "two_opt": 0.5, "or_opt": 1.5, "two_opt_star": 1.0, "or_opt + two_opt": 0.7,
    "two_opt_star + or_opt": 0.7,
}  # fmt: skip


def grammar_of(name: str, header: str, repairs: Repairs) -> Grammar:
    """The grammar of a problem's repairs; header: the line that begins the function."""

    def render(choices: Choices) -> tuple[str, str]:
        """(strategy sentence, source) of a derivation."""
        lines, what = repairs.lines(choices)
        return sentence(f"{what}."), module([function(header, lines)])

    return Grammar(name, "repair", repairs.slots(), render, repairs.drafts)


GRAMMAR = grammar_of(
    "cvrp",
    "def repair(dist, demands, capacity, partial_routes, removed_customers,\n"
    "           steps_since_improvement, rng):",
    Repairs(
        WORDS,
        orders=ORDERS,
        quick=QUICK,
        searches={
            "two_opt": ("lns.two_opt(dist, $best, $touched", "2-opt"),
            "or_opt": ("lns.or_opt(dist, demands, capacity, $best, $touched", "Or-opt"),
            "two_opt_star": ("lns.two_opt_star(dist, demands, capacity, $best, $touched", "2-opt*"),
        },
        polishes=POLISHES,
        cost="lns.cost(dist, $best)",
        fresh=True,
    ),
)
