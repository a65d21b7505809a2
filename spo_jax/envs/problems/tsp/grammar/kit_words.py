"""The names that the TSP's programs with the kit share."""

from spo_jax.program.grammar.kit import Words

WORDS = Words(
    solution="tour",
    partial="partial_tour",
    removed="removed_nodes",
    item="node",
    given="dist, partial_tour",
    places="places",
)
