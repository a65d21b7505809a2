"""The grammar of VRPTW repair programs that use the kit: the CVRP's, with orders by time."""

from dataclasses import replace

from spo_jax.envs.problems.cvrp.grammar.kit_repair import ORDERS, POLISHES, QUICK, grammar_of
from spo_jax.envs.problems.cvrp.grammar.kit_words import WORDS
from spo_jax.program.grammar.kit_repair import Repairs

_GIVEN = "dist, demands, capacity, ready, due, service"
_SEARCHES = {
    "two_opt": "2-opt",
    "or_opt": "Or-opt",
    "two_opt_star": "2-opt*",
    "exchange": "exchange of stretches",
}

GRAMMAR = grammar_of(
    "vrptw",
    f"def repair({_GIVEN}, partial_routes,\n"
    "           removed_customers, steps_since_improvement, rng):",
    Repairs(
        replace(WORDS, given=f"{_GIVEN}, partial_routes"),
        orders={
            **ORDERS,
            "urgent": ("due[node]", "the customer due first"),
            "narrow": ("due[node] - ready[node]", "the customer with the narrowest window first"),
        },
        quick=(*QUICK, "urgent", "narrow"),
        searches={
            name: (f"lns.{name}({_GIVEN}, $best, $touched", phrase)
            for name, phrase in _SEARCHES.items()
        },
        polishes={**POLISHES, "exchange + or_opt": 0.7, "two_opt_star + exchange": 0.7},
        cost="lns.cost(dist, $best)",
        fresh=True,
    ),
)
