"""The names that the CVRP's programs with the kit share."""

from spo_jax.program.grammar.kit import Words

WORDS = Words(
    solution="routes",
    partial="partial_routes",
    removed="removed_customers",
    item="customer",
    given="dist, demands, capacity, partial_routes",
    places="routes",
)
