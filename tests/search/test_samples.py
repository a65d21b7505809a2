"""Groups in which pairs are the samples: who is compared with whom, and by how much."""

import math

import numpy as np
import pytest

from spo_jax.errors import InputError
from spo_jax.program import Completion, Group, Program, Prompt
from spo_jax.rl.updates.batches import select
from spo_jax.rl.updates.grpo import GrpoConfig, advantages, standardised
from spo_jax.rl.updates.samples import TokenGroup
from spo_jax.search.credit import CREDITS, Credits, Payoff, samples_of, sampling, shared
from spo_jax.search.groups import follower_groups, leader_groups
from spo_jax.search.rounds import Answers

NAN = math.nan
D = [Program("destroy", f"d{i}") for i in range(3)]
R = [Program("repair", f"r{i}") for i in range(5)]
ROWS = ((R[0], R[1]), (R[2],), (R[3], R[4]))
# d0 and d1 answer one context and d2 another; d1 has one valid pair, d2's second repair failed.
UTILITY = np.array([[1.0, 3.0], [5.0, NAN], [7.0, NAN]])


class Table:
    def verdict(self, destroy, repair):
        return type("Played", (), {"status": "crash", "role": "repair"})


def answers(role, programs):
    prompt = Prompt("tsp", role, "x", "Write one.")
    completions = tuple(Completion(f"{role} {n}") for n in range(len(programs)))
    return Answers(prompt, completions, tuple(programs))


LEADERS = [answers("destroy", [D[0], D[1], None]), answers("destroy", [D[2], D[0]])]
FOLLOWERS = [[answers("repair", row)] for row in ROWS]


def grouped(name: str) -> tuple[list[Group], list[Group]]:
    scheme = CREDITS[name]
    credits = scheme(Payoff(UTILITY, tuple(D), ROWS), top=2)
    how = ("original", samples_of(scheme))
    played = (D, ROWS, credits, Table())
    return (
        leader_groups(LEADERS, *played, *how),
        follower_groups(FOLLOWERS, *played, *how, LEADERS),
    )


def moved(group: Group, **settings: object) -> np.ndarray:
    usable = np.ones(len(group.credits), bool)
    return advantages(
        group.credits, group.failed, usable, GrpoConfig(**settings),
        by_pair=group.by_pair, others=group.others,
    )  # fmt: skip


def test_each_pair_is_a_sample_of_its_destroy() -> None:
    (one, two), repairs = grouped("shared-pair-samples")
    # Pairs of 1, 3 and 5 have a mean of 3; d0 sums -2 and 0, d1 has 2; two answers for three pairs.
    np.testing.assert_allclose(moved(one), [-2 * 2 / 3, 2 * 2 / 3, NAN])
    # d2 with 7, d0 with 1 and 3: a mean of 11/3.
    np.testing.assert_allclose(moved(two), [(7 - 11 / 3) * 2 / 3, (4 - 22 / 3) * 2 / 3])
    # The repairs' groups are the paper's.
    np.testing.assert_allclose(moved(repairs[0]), [-1, 1])
    np.testing.assert_allclose(moved(repairs[1]), [0])


def test_both_roles_are_compared_with_the_mean_of_their_pairs() -> None:
    (one, _), repairs = grouped("shared-one-advantage")
    np.testing.assert_allclose(moved(one), [-2 * 2 / 3, 2 * 2 / 3, NAN])
    # Of the context of d0 and d1; d2 is alone in the other but for d0, whose context is the first.
    np.testing.assert_allclose(moved(repairs[0]), [-2, 0])
    np.testing.assert_allclose(moved(repairs[1]), [2])
    np.testing.assert_allclose(moved(repairs[2]), [0, NAN])


def test_a_standard_deviation_is_that_of_all_samples() -> None:
    _, repairs = grouped("shared-one-advantage")
    deviation = np.std([1.0, 3.0, 5.0])
    found = moved(repairs[0], advantage=standardised)
    np.testing.assert_allclose(found, [-2 / deviation, 0.0])


def test_what_failed_is_worse_than_all_samples() -> None:
    """With a penalty of 1 the answer without a program earns 0, below 1, 3 and 5."""
    (one, _), _ = grouped("shared-pair-samples")
    scale = 3 / 4  # three answers, four samples; their mean is 9 / 4
    due = [(4 - 4.5) * scale, (5 - 2.25) * scale, -2.25 * scale]
    np.testing.assert_allclose(moved(one, failure_penalty=1.0), due)


def test_pairs_weigh_as_copies_of_their_answer_would() -> None:
    rng = np.random.default_rng(0)
    by_pair = rng.random((3, 4))
    by_pair[0, 1:] = by_pair[2, 3] = NAN
    texts = [np.array([1 + n], np.int32) for n in range(3)]
    logs = [np.zeros(1, np.float32)] * 3
    prompt = np.array([9], np.int32)
    group = TokenGroup("x", prompt, texts, logs, np.nanmean(by_pair, axis=1), by_pair=by_pair)
    copies = [(texts[i], credit) for i, row in enumerate(by_pair) for credit in row[row == row]]
    repeated = TokenGroup(
        "x", prompt, [text for text, _ in copies], [logs[0]] * len(copies),
        np.array([credit for _, credit in copies]),
    )  # fmt: skip

    def pull(group: TokenGroup) -> np.ndarray:
        found = np.zeros(4)
        for rows in select([group], GrpoConfig(), 10).samples:
            for row in rows:
                found[int(row.tokens[0])] += row.advantage * row.weight
        return found

    np.testing.assert_allclose(pull(group), pull(repeated), atol=1e-15)


def test_programs_are_the_samples_of_all_other_schemes() -> None:
    own = {name for name in CREDITS if samples_of(CREDITS[name]) != "programs"}
    assert own == {"shared-pair-samples", "shared-one-advantage"}
    (one, _), repairs = grouped("shared")
    assert one.by_pair is None
    assert not any(len(group.others) for group in (one, *repairs))
    np.testing.assert_allclose(moved(one), [-1.5, 1.5, NAN])


def test_a_scheme_of_ones_own_says_what_its_samples_are() -> None:
    @sampling("pairs")
    def mine(payoff: Payoff, *, top: int = 2) -> Credits:
        return shared(payoff, top=top)

    assert samples_of(mine) == "pairs"
    with pytest.raises(InputError, match="samples are one of programs, pairs, one-group"):
        sampling("rows")  # type: ignore[arg-type]
