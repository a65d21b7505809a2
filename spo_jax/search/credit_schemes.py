"""The credit schemes that ship. Each is a pure function `scheme(payoff, *, top) -> Credits`.

Those that see utilities alone are formulas of arrays (`search/formulas/`); what is here gives them
what they see of a payoff. A scheme that needs pairs beside the round's own has `asks`.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spo_jax.program import Pair, Program
from spo_jax.search.credit_nouns import Credits, CreditScheme, Payoff, asking
from spo_jax.search.formulas import FORMULAS
from spo_jax.search.formulas.seen import Reference, Seen

# --- schemes that look at the round alone ---------------------------------------------------------


def stackelberg(payoff: Payoff, *, top: int = 2) -> Credits:
    """The paper's credit: followers by how well they answer, leaders by their best answers.

    follower = J of the pair (eq:follower-credit); leader = mean of the `top` highest J of its row,
    of those there are (eq:leader-credit).
    """
    return _earned("stackelberg", payoff, top)


def shared(payoff: Payoff, *, top: int = 2) -> Credits:
    """The ablation without Stackelberg credit: both programs of a pair receive the pair's J.

    A destroy that is in several pairs receives the mean of its pairs' scores, of those there are;
    `top` plays no part.
    """
    return _earned("shared", payoff, top)


def highest(payoff: Payoff, *, top: int = 2) -> Credits:
    """A program earns its best pair of the round, whichever its role; `top` plays no part.

    A repair whose source was written for several destroys has several pairs.
    """
    return _earned("max", payoff, top)


def average(payoff: Payoff, *, top: int = 2) -> Credits:
    """A program earns the mean of its pairs of the round, whichever its role.

    `shared` but for repairs that were written for several destroys; `top` plays no part.
    """
    return _earned("mean", payoff, top)


def max_at_k(payoff: Payoff, *, top: int = 2) -> Credits:
    """Leaders earn what the best of k responses is worth in expectation, k = R // top.

    The mean of the best over all sets of k of a row's n finite responses: with u_(1) <= u_(2) ...,
    sum_i C(i - 1, k - 1) / C(n, k) u_(i), without bias for any n >= k (PKPO, arXiv 2505.15201;
    all n where there are fewer). So the credit's expectation does not depend on how many responses
    were drawn, as that of the best `top` of them does. Followers earn J.
    """
    return _earned("max-at-k", payoff, top)


def pkpo(payoff: Payoff, *, top: int = 2) -> Credits:
    """As `max_at_k`, but followers earn what the best of k would lose without them.

    follower = the mean over all sets S of k = R // top of the row's n valid responses that hold j,
    of max S - max (S without j); J itself where k is 1 (PKPO, arXiv 2505.15201, eq. 33, divided by
    k / n). An ascent of E[max of k] without bias before it is centred; centring by the group's mean
    biases it, since J of one is in the credits of the others. Never below 0 if J is not.
    """
    return _earned("pkpo", payoff, top)


def maxpo(payoff: Payoff, *, top: int = 2) -> Credits:
    """As `pkpo` with credits that have a mean of 0 in each row, so that centring takes nothing off.

    follower = the mean of max S over the sets of k that hold j, less that over the sets of k that
    do not (the leave-two-out baseline of MaxPO, arXiv 2606.06080, as derived here: the mean over
    the others l of max(j, T) - max(l, T), T all sets of k - 1 without j and l). So it ascends
    E[max of k] without bias in the update that centres. k is at most n - 1; one response alone
    earns 0.
    """
    return _earned("maxpo", payoff, top)


def entropic(payoff: Payoff, *, top: int = 2) -> Credits:
    """Weights of a soft maximum, as sharp as a bound on their divergence allows.

    q_j is proportional to exp(b u_j) over row i's n valid responses, with b such that the
    divergence KL(q || uniform) is log 2 (TTT-Discover, arXiv 2601.16175); where all weight on the
    best is within the bound, as for n of 2, b is infinite. follower = n q_j, the gradient's weight,
    with a mean of 1. leader = log(mean of exp(b u)) / b, between the mean of its row and the best.
    `top` plays no part. Destroys are selected by their credit, repairs by J: a weight says nothing
    about other rows.
    """
    return _earned("entropic", payoff, top)


def rank(payoff: Payoff, *, top: int = 2) -> Credits:
    """Followers earn their rank among the answers to their destroy, leaders that of their best.

    A rank is the share of the others that are worse, ties counted as half: 1 for the best, 0 for
    the worst, 1/2 for one alone. A leader earns the mean rank of its `top` best pairs among all
    pairs of the round. Any increasing transform of J leaves these credits as they are. They say
    nothing about other rounds, so destroys are selected by the paper's credit; which repairs enter
    cross-play goes by rank: the best answers to all destroys come before any second best.
    """
    return _earned("rank", payoff, top)


def regret(payoff: Payoff, *, top: int = 2) -> Credits:
    """Minus what a program lost by not being the best reply that was sampled; at most 0.

    follower = J minus the best J of its row: what this answer costs the pair, the leader given.
    leader = its row's best J minus the best of all rows: what committing to this destroy costs,
    followers that reply as well as any was seen to reply given (eq:spo-objective with sampled
    responses). So a leader has no share in the regret of its followers, and `top` plays no part.
    Destroys are selected by their row's best J, which does not depend on the round's other rows.
    """
    return _earned("regret", payoff, top)


def gap(payoff: Payoff, *, top: int = 2) -> Credits:
    """Minus log(1 + r), where r is a pair's distance to the round's best in typical distances.

    r = (best J - J) / (best J - median J), medians over the round's pairs: 0 for the best pair, 1
    for the typical one. Up to r's unit that is the pair's gap to the best pair of the round, so a
    step counts by its share of what is left, near the best where J saturates, and a very bad pair
    cannot outweigh the rest of its group. A leader earns the mean of its `top` highest. No unit is
    left: J can be scaled and shifted. Selection is the paper's.
    """
    return _earned("gap", payoff, top)


def relative_to_parent(payoff: Payoff, *, top: int = 2) -> Credits:
    """The paper's credit minus the score of the best parent in the prompt.

    Without a parent nothing is taken off. All answers to one prompt have the same parents, so
    advantages that are centred by group do not see the difference: see `improvement`. Selection is
    the paper's.
    """
    absolute = stackelberg(payoff, top=top)
    return Credits(
        _above(absolute.leader, payoff.leader_baseline),
        _above(absolute.follower, payoff.follower_baseline),
        absolute,
    )


def improvement(payoff: Payoff, *, top: int = 2) -> Credits:
    """`relative_to_parent`, but no less than 0: a child is paid for beating its parents alone.

    Those that do not are alike, however bad. Without a parent it is the paper's credit.
    """
    relative = relative_to_parent(payoff, top=top)
    return Credits(
        _gain(relative.leader, payoff.leader_baseline),
        _gain(relative.follower, payoff.follower_baseline),
        relative.selection,
    )


def lower_bound(payoff: Payoff, *, top: int = 2) -> Credits:
    """The paper's credit of J less its standard error over the training instances.

    J_ij - sqrt(sum_k e_ijk^2 / (I - 1) / I), with e_ijk the mean score on instance k less J_ij and
    less what all valid pairs of the round have on k, on average, above their own J: what is hard
    for all is no risk. With one instance it is J. A lower confidence bound of one deviation
    (pessimism, arXiv 2012.15085). All selection is by it. A pair that a race left out has the
    error that the pairs of its row with all evaluations have on average.
    """
    known = np.isfinite(payoff.utility) & ~payoff.censored
    by_instance = payoff.scores.mean(axis=3) - payoff.utility[..., None]  # [D, R, I]
    count = by_instance.shape[2]
    if count > 1 and known.any():
        own = by_instance - by_instance[known].mean(axis=0)
        error = np.sqrt((own**2).sum(axis=2) / (count - 1) / count)
        mean = np.where(known, error, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        error = np.where(payoff.censored, mean[:, None], error)
        payoff = replace(payoff, utility=payoff.utility - error)
    return stackelberg(payoff, top=top)


# --- schemes that look at pairs with other programs -----------------------------------------------


def two_way(payoff: Payoff, *, top: int = 2) -> Credits:
    """The paper's credit of J less what the repair adds to other destroys: a two-way analysis.

    m_i is the mean of row i, and the effect b_ij of a repair on others than destroy i is the sum of
    u_hj - m_h over the pairs of its source with other destroys h, in the round and in the
    cross-play, by their number plus 1; 0 without any. leader = mean of the `top` highest
    u_ij - b_ij: its main effect and its best interactions. follower = u_ij - m_i: the repair's main
    effect and the interaction. No pair is asked for. Selection is the paper's.
    """
    old, own = payoff.cross_play, {destroy.digest for destroy in payoff.destroys}
    others = [i for i, destroy in enumerate(old.destroys) if destroy.digest not in own]
    rows, slots = payoff.utility.shape
    shape = (rows + len(others), max(slots, len(old.repairs)))
    utility, source = np.full(shape, np.nan), np.full(shape, -1)
    utility[:rows, :slots] = payoff.utility
    utility[rows:, : len(old.repairs)] = old.utility[others]
    table = (*payoff.repairs, *[old.repairs] * len(others))
    for (i, j), number in _numbered(table).items():
        source[i, j] = number
    seen = _seen(payoff, utility=utility, sources=lambda: source)
    leader, follower, selection = FORMULAS["two-way"](seen, top)
    assert selection is not None
    chosen = Credits(selection[0][:rows], selection[1][:rows, :slots])
    return Credits(leader[:rows], follower[:rows, :slots], chosen)


def _asks_counterfactual(payoff: Payoff, *, top: int = 2) -> list[Pair]:
    reference, _ = _references(payoff)
    least = np.sort(np.where(np.isfinite(payoff.utility), -payoff.utility, np.inf), axis=1)[:, :top]
    bars = -least.max(axis=1, initial=-np.inf, keepdims=True)  # those of equal J are all asked for
    best = np.isfinite(payoff.utility) & (payoff.utility >= bars)
    return _with_destroy(payoff, reference, best)


def _asks_shapley(payoff: Payoff, *, top: int = 2) -> list[Pair]:
    destroy, repair = _references(payoff)
    valid = np.isfinite(payoff.utility)
    pairs = _with_destroy(payoff, destroy, valid)
    if repair is not None:
        others = [each for each, row in zip(payoff.destroys, valid, strict=True) if row.any()]
        others += [] if destroy is None else [destroy]
        pairs += [Pair(each, repair) for each in others]
    return pairs


def asks_fair_parent(payoff: Payoff, *, top: int = 2) -> list[Pair]:
    """Each destroy with each parent of its valid repairs."""
    found: dict[tuple[str, str], Pair] = {}
    for i, j in np.argwhere(np.isfinite(payoff.utility)):
        for parent in parents_of(payoff, payoff.repairs[i][j]):
            destroy = payoff.destroys[i]
            found.setdefault((destroy.digest, parent.digest), Pair(destroy, parent))
    return list(found.values())


@asking(_asks_counterfactual)
def counterfactual(payoff: Payoff, *, top: int = 2) -> Credits:
    """Leaders by what their best repairs lose without them, on a reference destroy.

    leader = mean over the `top` best responses of u_ij - J(d0, r_ij): a difference reward with the
    reference in the place of the destroy (Wolpert and Tumer 2001; as a baseline COMA, arXiv
    1705.08926). follower = u_ij: what the reference repair earns on this destroy is the same for
    its whole row, and no advantage would show it, so it is not asked for. Selection is the paper's.

    The reference destroy is the first of the population, in the first round a classical one. Costs
    `top` pairs a destroy. A pair with it that failed counts as the mean of the others.
    """
    return _earned("counterfactual", payoff, top)


@asking(_asks_shapley)
def shapley(payoff: Payoff, *, top: int = 2) -> Credits:
    """The Shapley values of two roles: main effects, and half of the interaction for each.

    A coalition that lacks a role has the reference in its place, so for a pair
    leader = (J(d_i, r0) - J(d0, r0) + u_ij - J(d0, r_ij)) / 2 and
    follower = (J(d0, r_ij) - J(d0, r0) + u_ij - J(d_i, r0)) / 2, which add up to u_ij - J(d0, r0)
    (Shapley 1953). A leader earns the mean over its `top` best responses. Selection is the paper's.

    The references are the first of each population; in the first round there is no repair, and its
    terms are 0. Costs a pair for each destroy and each repair, and one. As `counterfactual` else.
    """
    return _earned("shapley", payoff, top)


@asking(asks_fair_parent)
def fair_parent(payoff: Payoff, *, top: int = 2) -> Credits:
    """As `improvement` for followers, against the best parent's J with the very same destroy.

    follower = max(0, u_ij - max J(d_i, parent)) over the parents in the repair's prompt; without
    one, and where all failed, u_ij. leader = the paper's. Without the 0 the bar would be the same
    for the whole group, and no advantage would show it. Selection is the paper's. Costs a pair for
    each destroy and each distinct parent in the prompts of its repairs.
    """
    return _earned("fair-parent", payoff, top)


def _references(payoff: Payoff) -> tuple[Program | None, Program | None]:
    """The first destroy and the first repair that the round began with; None where there is none.

    A population is in the order of its selection, the highest score first; fixed destroys follow.
    """
    known = payoff.cross_play
    return next(iter(known.destroys), None), next(iter(known.repairs), None)


def _with_destroy(payoff: Payoff, destroy: Program | None, which: np.ndarray) -> list[Pair]:
    """A destroy with the repairs in some places [D, R], each source once."""
    found: dict[str, Pair] = {}
    for i, j in np.argwhere(which if destroy is not None else np.zeros(which.shape, bool)):
        repair = payoff.repairs[i][j]
        assert destroy is not None
        assert repair is not None  # it has a J
        found.setdefault(repair.digest, Pair(destroy, repair))
    return list(found.values())


def parents_of(payoff: Payoff, repair: Program | None) -> list[Program]:
    """The parents in a repair's prompt."""
    written = () if repair is None else repair.parents
    return [each for each in payoff.cross_play.repairs if each.digest in written]


SCHEMES: dict[str, CreditScheme] = {
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
    "relative-to-parent": relative_to_parent,
    "improvement": improvement,
    "fair-parent": fair_parent,
    "counterfactual": counterfactual,
    "two-way": two_way,
    "shapley": shapley,
    "lower-bound": lower_bound,
}


def _earned(name: str, payoff: Payoff, top: int) -> Credits:
    leader, follower, selection = FORMULAS[name](_seen(payoff), top)
    return Credits(leader, follower, None if selection is None else Credits(*selection))


def _seen(payoff: Payoff, **own: Any) -> Seen:
    """The payoff as formulas see it."""
    fields: dict[str, Any] = {
        "utility": payoff.utility,
        "sources": lambda: _sources(payoff),
        "references": lambda: _reference(payoff),
        "parents": lambda: _best_parents(payoff),
    }
    return Seen(**(fields | own))


def _sources(payoff: Payoff) -> np.ndarray:
    """[D, R] int: equal for repairs of equal source, -1 where there is none."""
    found = np.full(payoff.utility.shape, -1)
    for place, number in _numbered(payoff.repairs).items():
        found[place] = number
    return found


def _numbered(rows: Sequence[Sequence[Program | None]]) -> dict[tuple[int, int], int]:
    """The number of each program's source, by row and slot."""
    numbers: dict[str, int] = {}
    return {
        (i, j): numbers.setdefault(each.digest, len(numbers))
        for i, row in enumerate(rows)
        for j, each in enumerate(row)
        if each is not None
    }


def _reference(payoff: Payoff) -> Reference:
    destroy, repair = _references(payoff)
    follower = np.full(payoff.utility.shape, np.nan)
    for i, row in enumerate(payoff.repairs):
        follower[i, : len(row)] = [payoff.known(destroy, each) for each in row]
    leader = np.array([payoff.known(each, repair) for each in payoff.destroys], dtype=np.float64)
    return Reference(leader, follower, np.array(payoff.known(destroy, repair)))


def _best_parents(payoff: Payoff) -> np.ndarray:
    """[D, R]: the highest J of a row's destroy with a parent of the repair, NaN without one."""
    found = np.full(payoff.utility.shape, np.nan)
    for i, row in enumerate(payoff.repairs):
        for j, repair in enumerate(row):
            values = [payoff.known(payoff.destroys[i], p) for p in parents_of(payoff, repair)]
            found[i, j] = max((v for v in values if math.isfinite(v)), default=math.nan)
    return found


def _above(values: np.ndarray, baseline: np.ndarray) -> np.ndarray:
    return values - np.where(np.isnan(baseline), 0.0, baseline)


def _gain(values: np.ndarray, baseline: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(baseline), values, np.maximum(values, 0.0))  # NaN stays NaN
