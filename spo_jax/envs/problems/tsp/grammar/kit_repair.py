"""The grammar of TSP repair programs that use the kit; what they do is in program/grammar."""

from spo_jax.envs.problems.tsp.grammar.kit_words import WORDS
from spo_jax.program.grammar.base import Choices, Grammar
from spo_jax.program.grammar.kit_repair import Repairs
from spo_jax.program.grammar.pieces import NONE, function, module, sentence

_REPAIRS = Repairs(
    WORDS,
    orders={
        "costly": (
            "-lns.best_position(dist, partial_tour, node)[0]",
            "the node with the highest insertion cost first",
        ),
        "cheap": (
            "lns.best_position(dist, partial_tour, node)[0]",
            "the node with the lowest insertion cost first",
        ),
        "farthest": (
            "-min(dist[node][other] for other in partial_tour)",
            "the node farthest from the kept tour first",
        ),
        "remote": ("-sum(dist[node])", "the node most remote from all others first"),
        "central": ("sum(dist[node])", "the node least remote from all others first"),
    },
    quick=("costly", "remote", "central"),
    searches={
        "two_opt": ("lns.two_opt(dist, $best, $touched", "2-opt"),
        "or_opt": ("lns.or_opt(dist, $best, $touched", "Or-opt"),
    },
    polishes={
        NONE: 2.5, "two_opt": 1.0, "or_opt": 1.0, "two_opt + or_opt": 1.0, "or_opt + two_opt": 1.0
    },
    cost="lns.cost(dist, $best)",
)  # fmt: skip


def render(choices: Choices) -> tuple[str, str]:
    """(strategy sentence, source) of a derivation."""
    lines, what = _REPAIRS.lines(choices)
    header = "def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):"
    return sentence(f"{what}."), module([function(header, lines)])


GRAMMAR = Grammar("tsp", "repair", _REPAIRS.slots(), render, _REPAIRS.drafts)
