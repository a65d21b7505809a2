"""The gradient of samples that answered different prompts, as mended answers do."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from spo_jax.errors import InputError
from spo_jax.rl.updates.batches import TokenGroup, select
from spo_jax.rl.updates.grpo import GrpoConfig
from tests.rl.test_trainer import gradient, largest, make, make_groups, moved

CREDITS = np.array([1.0, 0.0])
PLAIN = GrpoConfig(on_policy=True)
AS_GIVEN = replace(PLAIN, advantage=lambda credits: credits)


def two() -> tuple[TokenGroup, list[np.ndarray]]:
    """A group of two samples, and two prompts."""
    [group, other] = make_groups(2, 2, seed=3)
    return replace(group, credits=CREDITS), [group.prompt, other.prompt]


@pytest.mark.slow
@pytest.mark.parametrize("share", [False, True])
def test_each_sample_moves_the_policy_after_its_own_prompt(share: bool) -> None:
    """eq:grpo by hand: the sum over samples of A_i / 2 grad log pi(y_i | x_i), A = (0.5, -0.5)."""
    group, (one, other) = two()
    mended = replace(group, prompts=[one, other])
    runner = make(replace(PLAIN, share_prompts=share))
    learner = moved(runner.init(jax.random.key(0)))
    found, objective = gradient(runner, learner, [mended])
    alone = make(AS_GIVEN)
    parts = [
        gradient(alone, learner, [replace(group, prompt=prompt, credits=np.array(credits))])[0]
        for prompt, credits in ((one, [0.5, 0.0]), (other, [0.0, -0.5]))
    ]
    wanted = jax.tree.map(lambda a, b: a + b, *parts)
    assert largest(wanted) > 1e-4
    assert largest(jax.tree.map(lambda a, b: a - b, found, wanted)) < 1e-6 + 1e-4 * largest(wanted)
    assert objective == pytest.approx(0.0, abs=1e-6)  # ratios are 1, and advantages centred
    # The prompt matters: as samples of one prompt they pull elsewhere.
    plain, _ = gradient(runner, learner, [group])
    assert largest(jax.tree.map(lambda a, b: a - b, found, plain)) > 1e-4


@pytest.mark.long
def test_one_sample_of_its_own_prompt_moves_nothing() -> None:
    [group] = make_groups(1, 1)
    runner = make(PLAIN)
    learner = moved(runner.init(jax.random.key(0)))
    found, _ = gradient(runner, learner, [replace(group, prompts=[group.prompt])])
    assert largest(found) == 0.0


@pytest.mark.long
@pytest.mark.parametrize("share", [False, True])
def test_the_same_prompt_for_each_is_one_prompt(share: bool) -> None:
    group, (one, _) = two()
    runner = make(replace(PLAIN, share_prompts=share))
    learner = moved(runner.init(jax.random.key(0)))
    plain, _ = gradient(runner, learner, [group])
    found, _ = gradient(runner, learner, [replace(group, prompts=[one, one])])
    assert largest(jax.tree.map(lambda a, b: a - b, found, plain)) < 1e-6 + 1e-4 * largest(plain)


def test_what_such_a_group_must_be() -> None:
    group, (one, other) = two()
    with pytest.raises(InputError, match="credits differ in number"):
        replace(group, prompts=[one])
    with pytest.raises(InputError, match="its prompt is empty"):
        replace(group, prompts=[one, other[:0]])
    long = replace(group, prompts=[one, np.resize(other, 511)])
    with pytest.raises(InputError, match=r"sample 1 is .* tokens long with its prompt"):
        select([long], PLAIN, 512)
