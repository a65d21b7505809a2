"""What one GRPO update needs on a card, in bytes, without the card and without the weights.

    python experiments/bench/memory.py                         # 9B, compiled for this device
    python experiments/bench/memory.py --card a100-40          # compiled for that card

Shapes alone: nothing is allocated. What lives from round to round is counted from the shapes; what
an update adds is XLA's own plan for the compiled program. `--card` compiles for a GPU that is not
there, from its description in cards/; it needs the packages jax-cuda12-plugin and
jax-cuda12-pjrt of jaxlib's version, and no CUDA. A CPU's plan is larger than a GPU's: it computes
in float32 and keeps converted copies of bfloat16 arrays.
"""

import argparse
import os
from functools import partial
from pathlib import Path
from typing import Any

# Without a card there is nothing to try kernels on, and compiling must not claim a device.
os.environ["XLA_FLAGS"] = "--xla_gpu_autotune_level=0 " + os.environ.get("XLA_FLAGS", "")

import jax
import jax.numpy as jnp
import shapes
from flax import nnx

from spo_jax.rl import logprobs
from spo_jax.rl.batches import Batch
from spo_jax.rl.grpo import GrpoConfig
from spo_jax.rl.lora import TARGETS_OF, LoraConfig, init_adapter
from spo_jax.rl.qwen3_5 import Qwen3_5
from spo_jax.rl.trainer import Trainer, accumulate

CARDS = Path(__file__).parent / "cards"
GROUP = 6  # samples of a prompt in the paper
CASES = (("tsp", 3), ("cvrp", 2))  # Appendix A.4: the problem's micro-batch


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", default="9B", help="tiny, small, 0.8B, 4B, 9B or 27B")
    parser.add_argument("--card", choices=sorted(path.stem for path in CARDS.glob("*.txt")))
    parser.add_argument("--prompt", type=int, default=6144, help="tokens of a prompt")
    parser.add_argument("--completion", type=int, default=2048, help="tokens of a completion")
    options = parser.parse_args()
    device = described(options.card) if options.card else jax.devices()[0]
    config = shapes.config_of(options.size)
    model = nnx.eval_shape(lambda: Qwen3_5(config, dtype=jnp.bfloat16, rngs=nnx.Rngs(0)))
    parameters = sum(leaf.size for leaf in jax.tree.leaves(nnx.state(model)))
    print(f"{options.size}: {parameters:,} parameters in bfloat16; {options.prompt} tokens of a")
    print(f"prompt and {options.completion} of a completion; compiled for {device.device_kind}; GB")
    print()
    columns = [
        (f"{problem}, {size}" + (" shared" if share else ""), problem, size, share)
        for problem, size in CASES
        for share in (False, True)
    ]
    tables = [
        table(model, LoraConfig(targets=TARGETS_OF[problem]), size, share, options, device)
        for _, problem, size, share in columns
    ]
    print("| at the problem's micro-batch | " + " | ".join(name for name, *_ in columns) + " |")
    print("| --- |" + " ---: |" * len(columns))
    for row in tables[0]:
        values = " | ".join(f"{one[row] / 1e9:.2f}" for one in tables)
        print(f"| {row} | {values} |")


def table(
    model: Qwen3_5,
    lora: LoraConfig,
    micro_batch: int,
    share: bool,
    options: argparse.Namespace,
    device: Any,
) -> dict[str, int]:
    """Bytes by what they are for."""
    config = model.config
    trainer = Trainer(model, lora, GrpoConfig(share_prompts=share, micro_batch=micro_batch))
    adapter = jax.eval_shape(lambda: init_adapter(jax.random.key(0), lora, config))
    placed = partial(
        jax.tree.map,
        lambda x: jax.ShapeDtypeStruct(
            x.shape, x.dtype, sharding=jax.sharding.SingleDeviceSharding(device)
        ),
    )
    weights = placed(nnx.state(model))
    batch = placed(batch_shapes(micro_batch, share, options.prompt, options.completion))
    program = accumulate.trace(
        trainer._settings, weights, placed(adapter), placed(adapter), batch
    ).lower()
    temporary = program.compile().memory_analysis().temp_size_in_bytes

    base, one = size_of(weights), size_of(adapter)
    sequence = options.completion if share else options.prompt + options.completion
    rows = micro_batch * sequence + (options.prompt if share else 0)
    inputs = config.num_layers * config.hidden_size * rows * 2
    block = min(logprobs.BLOCK, micro_batch * options.completion)
    logits = block * config.vocab_size * 4
    resident = base + 2 * one + 4 * one + one
    return {
        "frozen base": base,
        "two adapters": 2 * one,
        "their optimizer states": 4 * one,
        "gradients": one,
        "batch": size_of(batch),
        "an update's temporaries": temporary,
        "of which layers' inputs": inputs,
        "of which a block of logits": logits,
        "together": resident + size_of(batch) + temporary,
    }


def batch_shapes(micro_batch: int, share: bool, prompt: int, completion: int) -> Batch:
    """Rows as `rl.batches.plan` forms them from a group of six."""
    prompts = 1 if share else micro_batch
    rounds = -(-GROUP // micro_batch) if share else 1
    ids, valid, real = jnp.int32, jnp.bool_, jnp.float32
    kinds: list[tuple[tuple[int, ...], Any]] = [
        ((prompts, prompt), ids),
        ((prompts, prompt), valid),
        ((rounds, micro_batch, completion), ids),
        ((rounds, micro_batch, completion), valid),
        ((rounds, micro_batch, completion), real),
        ((rounds, micro_batch), real),
        ((rounds, micro_batch), real),
    ]
    leaves: list[Any] = [jax.ShapeDtypeStruct(shape, kind) for shape, kind in kinds]
    return Batch(*leaves)


def size_of(tree: Any) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def described(card: str) -> Any:
    """A device of the card that cards/ describes, for compiling only."""
    from jax.experimental import topologies

    jax.devices()  # backends first, or the plugin is looked for too early
    target = (CARDS / f"{card}.txt").read_text()
    try:
        topology = topologies.get_topology_desc(
            platform="cuda", topology_name="card", topology="1x1x1", target_config=target
        )
    except Exception as error:
        raise SystemExit(
            f"compiling for {card} needs jax-cuda12-plugin and jax-cuda12-pjrt: {error}"
        ) from None
    return topology.devices[0]


if __name__ == "__main__":
    main()
