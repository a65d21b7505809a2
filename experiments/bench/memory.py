"""What sampling and a GRPO update need on a card, without the card and the weights: bytes, kernels.

    python experiments/bench/memory.py                         # 9B, compiled for this device
    python experiments/bench/memory.py --card a100-40          # compiled for that card

Shapes alone: nothing is allocated. What lives from round to round is counted from the shapes; what
an update adds, or the programs of the sampler, is XLA's own plan for them. `--card` compiles for a
GPU that is not there, from its description in cards/; it needs the packages jax-cuda12-plugin and
jax-cuda12-pjrt of jaxlib's version, and no CUDA. A CPU's plan is larger than a GPU's: it computes
in float32 and keeps converted copies of bfloat16 arrays, of all weights where it samples.
"""

import argparse
import os
from functools import partial
from pathlib import Path
from typing import Any

# Without a card there is nothing to try kernels on, and compiling must not claim a device.
os.environ["XLA_FLAGS"] = "--xla_gpu_autotune_level=0 " + os.environ.get("XLA_FLAGS", "")
os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")  # nor look for CUDA

import jax
import jax.numpy as jnp
import shapes
from flax import nnx
from launches import launches

from spo_jax.rl import sampling
from spo_jax.rl.gradients import accumulate
from spo_jax.rl.lora import MLP, LoraConfig, init_adapter
from spo_jax.rl.qwen import Qwen, logprobs
from spo_jax.rl.qwen.config import ATTENTION
from spo_jax.rl.sampling import SamplingConfig
from spo_jax.rl.updates.batches import Batch
from spo_jax.rl.updates.grpo import GrpoConfig
from spo_jax.rl.updates.trainer import Trainer

CARDS = Path(__file__).parent / "cards"
KERNELS = "kernels that it starts"  # of a GPU; loops on a CPU say little
GROUP = 6  # samples of a prompt in the paper
# Appendix A.4, as the paper presets have it: targets and the micro-batch.
CASES = {"TSP": (ATTENTION, 3), "CVRP": ((*ATTENTION, *MLP), 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", default="9B", help="tiny, small, 0.8B, 4B, 9B or 27B")
    parser.add_argument("--card", choices=sorted(path.stem for path in CARDS.glob("*.txt")))
    parser.add_argument("--prompt", type=int, default=6144, help="tokens of a prompt")
    parser.add_argument("--completion", type=int, default=2048, help="tokens of a completion")
    parser.add_argument("--rows", type=int, default=48, help="completions decoded side by side")
    parser.add_argument("--only", choices=["sampling", "update"], help="one of the two tables")
    options = parser.parse_args()
    if options.rows % GROUP:
        parser.error(f"--rows must be a multiple of {GROUP}, the completions of a prompt")
    device = described(options.card) if options.card else jax.devices()[0]
    config = shapes.config_of(options.size)
    model = nnx.eval_shape(lambda: Qwen(config, dtype=jnp.bfloat16, rngs=nnx.Rngs(0)))
    parameters = sum(leaf.size for leaf in jax.tree.leaves(nnx.state(model)))
    print(f"{options.size}: {parameters:,} parameters in bfloat16; {options.prompt} tokens of a")
    print(f"prompt and {options.completion} of a completion; compiled for {device.device_kind}; GB")
    if options.only != "update":
        tables = [
            sampling_table(model, LoraConfig(targets=targets), options, device)
            for targets, _ in CASES.values()
        ]
        show(f"sampling, {options.rows} rows", list(CASES), tables)
    if options.only == "sampling":
        return
    columns = [
        (f"{problem}, {size}" + (" shared" if share else ""), targets, size, share)
        for problem, (targets, size) in CASES.items()
        for share in (False, True)
    ]
    tables = [
        table(model, LoraConfig(targets=targets), size, share, options, device)
        for _, targets, size, share in columns
    ]
    show("at the paper's micro-batches", [name for name, *_ in columns], tables)


def show(title: str, names: list[str], tables: list[dict[str, int]]) -> None:
    print(f"\n| {title} | {' | '.join(names)} |")
    print("| --- |" + " ---: |" * len(names))
    for row in tables[0]:
        count = row == KERNELS
        values = (f"{one[row]:,}" if count else f"{one[row] / 1e9:.2f}" for one in tables)
        print(f"| {row} | {' | '.join(values)} |")


def table(
    model: Qwen,
    lora: LoraConfig,
    micro_batch: int,
    share: bool,
    options: argparse.Namespace,
    device: Any,
) -> dict[str, int]:
    """Bytes by what they are for, and the kernels of a call."""
    config = model.config
    trainer = Trainer(model, lora, GrpoConfig(share_prompts=share, micro_batch=micro_batch))
    adapter = jax.eval_shape(lambda: init_adapter(jax.random.key(0), lora, config))
    placed = partial(on, device)
    weights = placed(nnx.state(model))
    batch = placed(batch_shapes(micro_batch, share, options.prompt, options.completion))
    program = accumulate.trace(
        trainer._settings, weights, placed(adapter), placed(adapter), batch
    ).lower()
    compiled = program.compile()
    temporary = compiled.memory_analysis().temp_size_in_bytes

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
        KERNELS: launches(compiled.as_text()),
    }


def sampling_table(
    model: Qwen, lora: LoraConfig, options: argparse.Namespace, device: Any
) -> dict[str, int]:
    """Bytes by what they are for, when completions are near their longest."""
    config = model.config
    adapter = jax.eval_shape(lambda: init_adapter(jax.random.key(0), lora, config))
    prefill, grow, segment, carry = sampling_plans(
        model, jax.eval_shape(lambda own: own.scaled(lora.scale), adapter), options, device
    )
    base, one, held = size_of(nnx.state(model)), size_of(adapter), size_of(carry)
    growing = grow.argument_size_in_bytes + grow.output_size_in_bytes + grow.temp_size_in_bytes
    steps = segment.output_size_in_bytes - held  # what each step has drawn
    phases = (
        prefill.output_size_in_bytes + prefill.temp_size_in_bytes,
        growing,
        held + steps + segment.temp_size_in_bytes,
    )
    return {
        "frozen base": base,
        "two adapters": 2 * one,
        "their optimizer states": 4 * one,
        "keys, values and states of the rows": held,
        "a prefill's temporaries": prefill.temp_size_in_bytes,
        "while the rows' buffers grow": growing,
        "a segment's temporaries": segment.temp_size_in_bytes,
        "together": base + 7 * one + max(phases),  # one adapter is there scaled, too
    }


def sampling_plans(
    model: Qwen, adapter: Any, options: argparse.Namespace, device: Any
) -> tuple[Any, Any, Any, Any]:
    """The plans of a prefill, of the last growth and of the last segment, and its carry's shapes.

    model, adapter (scaled): shapes will do.
    """
    placed = partial(on, device)
    graph, abstract = nnx.split(model)
    splits = [nnx.split(layer) for layer in model.block.layers()]
    graphs = tuple(one for one, _ in splits) * model.config.repeats
    unstacked = [
        jax.tree.map(lambda w: jax.ShapeDtypeStruct(w.shape[1:], w.dtype), own) for _, own in splits
    ]
    layers = placed(tuple(unstacked) * model.config.repeats)
    weights, adapter = placed(abstract), placed(adapter)
    rows, limit = options.rows, options.completion
    prompt = (rows // GROUP, options.prompt)
    ids, valid = jnp.int32, jnp.bool_
    given = [
        *(jax.ShapeDtypeStruct(prompt, kind) for kind in (ids, valid)),
        jax.eval_shape(lambda: jax.random.key(0)),
        jax.ShapeDtypeStruct((rows, 2), ids),
        jax.ShapeDtypeStruct((rows,), valid),
    ]
    sizes = sampling.capacities(limit)
    settings = SamplingConfig(max_new_tokens=limit, stop_tokens=(0,))

    def plan(program: Any, *arguments: Any) -> Any:
        return program.trace(*arguments).lower().compile().memory_analysis()

    first = (graph, sizes[0], weights, adapter, *placed(given))
    carry = sampling._prefill.eval_shape(*first)
    prefill = plan(sampling._prefill, *first)
    for size in sizes[1:-1]:
        carry = sampling._next.eval_shape(size, carry, None)
    last = sampling._next.eval_shape(limit, carry, None)
    grow = plan(sampling._next, limit, placed(carry), None)
    steps = limit - sizes[-2] if len(sizes) > 1 else limit
    segment = plan(
        sampling._segment, (graph, graphs), settings, steps, weights, layers, adapter, placed(last)
    )
    return prefill, grow, segment, last


def on(device: Any, tree: Any) -> Any:
    """Shapes as if the arrays were on a device."""
    sharding = jax.sharding.SingleDeviceSharding(device)
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), tree)


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
