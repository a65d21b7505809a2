"""Credit schemes as functions of arrays with leading axes.

`credit_schemes.py` makes schemes of a round's payoff of them. The laboratory (`lab/`) calls them
for thousands of rounds at once: a round costs a fifth of a millisecond as a payoff, microseconds as
an array.

A formula is `formula(seen, top) -> (leader, follower, selection)`: leader [..., D], follower
[..., D, R], and such a pair that programs are selected by, or None where that is the credit. Each
round is by itself: its results have the same bits alone and among others.
"""

from collections.abc import Callable

from spo_jax.search.formulas.attribution import counterfactual, fair_parent, shapley, two_way
from spo_jax.search.formulas.best_of import entropic, max_at_k, maxpo, pkpo
from spo_jax.search.formulas.plain import (
    average,
    gap,
    highest,
    rank,
    regret,
    shared,
    stackelberg,
)
from spo_jax.search.formulas.seen import Earned, Seen

Formula = Callable[[Seen, int], Earned]

FORMULAS: dict[str, Formula] = {
    "stackelberg": stackelberg,
    "shared": shared,
    "max": highest,
    "mean": average,
    "max-at-k": max_at_k,
    "pkpo": pkpo,
    "maxpo": maxpo,
    "entropic": entropic,
    "rank": rank,
    "regret": regret,
    "gap": gap,
    "two-way": two_way,
    "counterfactual": counterfactual,
    "shapley": shapley,
    "fair-parent": fair_parent,
}
