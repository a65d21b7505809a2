"""How well a round's credits tell good leaders from bad ones, where the truth is known.

The truth is a leader's J with its best response, v(d) = max_f J(d, f) (eq:spo-objective). Policies
are uniform: a round holds every leader of a world once, and followers are drawn uniformly.
"""

import numpy as np

from spo_jax.advantages import centred
from spo_jax.errors import InputError
from spo_jax.search.credit.plain import ranks
from spo_jax.search.lab.schemes import Scheme
from spo_jax.search.lab.worlds import Rounds, Worlds

Array = np.ndarray
MEASURES = {  # of `measure`, with a heading
    "rank": "rank correlation",
    "snr": "signal to noise",
    "cosine": "cosine with the gradient",
    "regret": "regret of survivors",
}
SURVIVORS = 3  # of a round: a tenth of the default leaders


def measure(
    scheme: Scheme, worlds: Worlds, rounds: Rounds, survivors: int = SURVIVORS
) -> dict[str, Array]:
    """MEASURES of a scheme in each world, [W] float64 each.

    rank: Spearman correlation of the advantages with v, mean over rounds; 0 for equal advantages.
    snr: variance over leaders of the expected advantage over the variance of an advantage around
        its expectation; 1 for a round whose advantages are half signal. NaN from one round.
    cosine: of the expected leader update with the true gradient of sum_d pi(d) v(d), both with
        respect to the logits of the uniform policy. The update's norm is from two halves of the
        rounds, so that what Monte Carlo leaves of the noise does not lower it. NaN where the halves
        disagree, and from one round.
    regret: v of the best `survivors` leaders less v of those that the scheme would keep, mean over
        them and over rounds. In standard deviations of leaders.
    """
    count, leaders = worlds.value.shape
    if not 1 <= survivors <= leaders:
        raise InputError(f"{survivors} survivors of {leaders} leaders: use 1 to {leaders}")
    earned = scheme(rounds.utility, rounds.source, rounds.reference)
    advantage = np.asarray(centred(earned.leader))  # [W, N, K]
    value = worlds.value[:, None]
    order = np.argsort(-np.where(np.isnan(earned.score), -np.inf, earned.score), axis=-1,
                       kind="stable")[..., :survivors]  # fmt: skip
    kept = np.take_along_axis(np.broadcast_to(value, advantage.shape), order, axis=-1)
    best = np.sort(worlds.value, axis=-1)[:, -survivors:].mean(axis=-1)
    found = {
        "rank": rank_correlation(advantage, value).mean(axis=1),
        "regret": best - kept.mean(axis=(1, 2)),
        "snr": np.full(count, np.nan),
        "cosine": np.full(count, np.nan),
    }
    if advantage.shape[1] > 1:
        found["snr"] = signal_to_noise(advantage)
        found["cosine"] = cosine_of_mean(advantage, np.asarray(centred(worlds.value)))
    return {name: found[name] for name in MEASURES}


def rank_correlation(x: Array, y: Array) -> Array:
    """Spearman's, over the last axis; 0 where either is constant."""
    return correlation(np.asarray(ranks(x)), np.asarray(ranks(y)))


def correlation(x: Array, y: Array) -> Array:
    """Pearson's, over the last axis; 0 where either is constant."""
    x, y = x - x.mean(axis=-1, keepdims=True), y - y.mean(axis=-1, keepdims=True)
    size = np.sqrt((x * x).sum(axis=-1) * (y * y).sum(axis=-1))
    flat = size <= 1e-12 * x.shape[-1]
    return np.where(flat, 0.0, (x * y).sum(axis=-1) / np.where(flat, 1.0, size))


def signal_to_noise(advantage: Array) -> Array:
    """[W, N, K] -> [W]: Var_d E[A_d] / E_d Var[A_d]; what N rounds leave of noise in the mean is
    taken off the signal. Infinity without noise.
    """
    rounds = advantage.shape[1]
    noise = advantage.var(axis=1, ddof=1).mean(axis=-1)
    signal = advantage.mean(axis=1).var(axis=-1, ddof=1) - noise / rounds
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.maximum(signal, 0.0) / noise


def cosine_of_mean(samples: Array, direction: Array) -> Array:
    """[W, N, K], [W, K] -> [W]: the cosine of E[sample] with a direction."""
    mean, half = samples.mean(axis=1), samples.shape[1] // 2
    one, other = samples[:, :half].mean(axis=1), samples[:, half:].mean(axis=1)
    square = (one * other).sum(axis=-1) * (direction * direction).sum(axis=-1)
    size = np.sqrt(np.where(square > 0, square, np.nan))
    return (mean * direction).sum(axis=-1) / size
