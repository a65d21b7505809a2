"""How far the adapters of a run have moved from the base, by role and round.

    python experiments/divergence.py runs/grpo-0
    python experiments/divergence.py runs/grpo-0 --rounds 0 8 9 10

After a round, by default round 0 (before the first update) and each with a checkpoint, both roles'
policies answer one prompt, which is the same in all rounds: that of a first round, which shows no
parents, for a repair with the problem's trivial destroy. Answers are sampled as in the run.
Printed, by role and round:

- divergence: KL(policy || base) in nats per token, over the whole vocabulary at temperature 1, the
  mean over the tokens of the policy's own answers; 0 before the first update;
- entropy: of the policy, in nats per token, at the same places;
- norm: the Frobenius norm of all products b a of the adapter, with its scale;
- cut: the share of answers that ended at the limit of tokens.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from common import cli
from common.policies import first_prompts, kept_rounds, policy_at
from common.tables import markdown
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError
from spo_jax.program import ROLES, Prompt, Role, load_pair
from spo_jax.rl.lora import LowRank
from spo_jax.rl.policy import Policy
from spo_jax.rl.qwen import Qwen
from spo_jax.runs.run import Run, load_run
from spo_jax.seeding import derive

ROOM = 128  # lengths are rounded up to this, so that few programs are compiled


@nnx.jit
def distributions(
    model: Qwen,
    layers: Sequence[dict[str, LowRank]],
    tokens: jax.Array,
    mask: jax.Array,
    places: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """KL(policy || base) and the policy's entropy behind some tokens of a text.

    Args:
        model: The base.
        layers: The adapter, scaled.
        tokens: [T] int32.
        mask: [T] bool, true where `tokens` is no padding.
        places: [A] int32, indices of the tokens.

    Returns:
        Two float32 arrays [A] in nats, of the distributions of the tokens that come next.
    """

    def logs(adapter: Sequence[dict[str, LowRank]] | None) -> jax.Array:
        hidden, _ = model.hidden(tokens[None], mask[None], adapter)
        return jax.nn.log_softmax(model.logits(hidden[0, places]))

    policy, base = logs(layers), logs(None)
    chance = jnp.exp(policy)
    return jnp.sum(chance * (policy - base), axis=1), -jnp.sum(chance * policy, axis=1)


def moved(policy: Policy, role: Role, prompt: Prompt, count: int, seed: int) -> list[float]:
    """Divergence, entropy, norm and share cut of one role's policy."""
    scaled = policy.learners[role].adapter.scaled(policy.lora.scale)
    before = policy.tokens_of(prompt)
    [answers] = policy.generate([prompt], count, seed)
    room = _rounded(max(len(answer.tokens) for answer in answers))
    size = _rounded(len(before) + room)
    found = []
    for answer in answers:
        tokens = np.concatenate([before, answer.tokens])
        padded = jnp.asarray(np.pad(tokens, (0, size - len(tokens))), jnp.int32)
        mask = jnp.arange(size) < len(tokens)
        places = len(before) - 1 + jnp.arange(room)
        both = distributions(policy.model, scaled, padded, mask, places)
        found.append(np.array(both)[:, : len(answer.tokens)])
    divergence, entropy = np.concatenate(found, axis=1).mean(axis=1)
    cut = np.mean([not answer.finished for answer in answers])
    return [float(divergence), float(entropy), norm(scaled), float(cut)]


def _rounded(length: int) -> int:
    return -(-length // ROOM) * ROOM


def norm(layers: Sequence[dict[str, LowRank]]) -> float:
    """The Frobenius norm of the products b a of all layers and targets."""
    squares = 0.0
    for layer in layers:
        for low_rank in layer.values():
            # |b a|^2 is the trace of (b' b)(a a'), two matrices of the rank's size.
            inner = jnp.einsum("nor,nos->nrs", low_rank.b, low_rank.b)
            outer = jnp.einsum("nri,nsi->nrs", low_rank.a, low_rank.a)
            squares += float(jnp.sum(inner * outer))
    return squares**0.5


def prompts_of(run: Run) -> dict[Role, Prompt]:
    """The prompt of each role that all rounds answer."""
    problem = get_problem(run.config.problem)
    if not problem.simple:
        raise InputError(f"{problem.name} has no trivial pair, whose destroy the repairs answer")
    prompt = first_prompts(run)
    simple = load_pair(problem.simple, problem.interface.game)
    return {"destroy": prompt("destroy", None), "repair": prompt("repair", simple.destroy)}


def measured(run: Run, number: int, count: int, seed: int) -> list[list[Any]]:
    """A row for each role: role, round, divergence, entropy, norm, share cut."""
    policy = policy_at(run, number)
    if not isinstance(policy, Policy):
        raise InputError(f"the writer of {run.path} has no adapters")
    prompts = prompts_of(run)
    return [[role, number, *moved(policy, role, prompts[role], count, seed)] for role in ROLES]


def run(args: argparse.Namespace) -> None:
    if args.answers < 1:
        raise InputError(f"--answers {args.answers}: ask for one at least")
    known = load_run(args.run)
    numbers = args.rounds
    if numbers is None:
        numbers = kept_rounds(known)
    seed = derive("divergence", args.seed)
    # One seed for all rounds: differences are those of the policies.
    rows = [row for number in numbers for row in measured(known, number, args.answers, seed)]
    rows.sort(key=lambda row: (ROLES.index(row[0]), row[1]))
    heads = ["role", "round", "divergence", "entropy", "norm", "cut"]
    shown = [
        [a, str(b), f"{c:.4f}", f"{d:.4f}", f"{e:.3f}", f"{f:.0%}"] for a, b, c, d, e, f in rows
    ]
    print(markdown(heads, shown))


def main() -> int:
    parser = cli.plain_parser(__doc__)
    parser.add_argument("run", metavar="RUN", help="the folder of a run")
    parser.add_argument(
        "--rounds", nargs="+", type=int, metavar="N", help="default: 0 and all kept"
    )
    parser.add_argument("--answers", type=int, default=6, metavar="N", help="of each role")
    parser.add_argument("--seed", type=int, default=0)
    return cli.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
