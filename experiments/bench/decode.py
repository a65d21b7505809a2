"""Tokens a second of the sampler, their share of what memory allows, and transformers beside it.

    python experiments/bench/decode.py                          # a tiny shape
    python experiments/bench/decode.py --transformers           # the same through transformers
    python experiments/bench/decode.py --transformers --sizes embedded --prompt 210 --tokens 100
    python experiments/bench/decode.py --sizes 0.8B 9B --rows 64

Weights are random but for the model that ships, prompts are too, and no row stops early. The bound
counts what a step must read: weights, the delta nets' state, and keys and values (of a prompt once
for all its samples), at the rate at which the device copies a large array here and now. A step
takes what tokens beyond the first add to the time of a call. Targets: 2,000 tokens a second and 3
times transformers at the tiny shape with 32 rows on two CPU cores; 0.6 of the bound at 9B with 64
rows on a GPU.
"""

import argparse
import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

# Two frameworks take turns on one card.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import numpy as np
import shapes
from flax import nnx

from spo_jax.rl.embedded import FOLDER
from spo_jax.rl.qwen import Qwen, load_pretrained, save_pretrained
from spo_jax.rl.qwen.config import FULL
from spo_jax.rl.sampling import SamplingConfig, sample


def copy_rate() -> float:
    """Bytes a second, read and written, of adding one to a large array; the best of some turns."""
    size = 2**28 if jax.default_backend() == "cpu" else 2**31
    array = jnp.zeros(size // 4, jnp.float32)
    add = jax.jit(lambda x: x + 1)
    spent = [seconds(lambda: jax.block_until_ready(add(array))) for _ in range(8)]
    return 2 * size / min(spent[1:])


def bytes_read(model: Qwen, prompts: int, rows: int, prompt: int, tokens: int) -> int:
    """What a step reads, in the middle of `tokens`."""
    config, size = model.config, model.dtype.itemsize
    weights = sum(leaf.nbytes for leaf in jax.tree.leaves(nnx.state(model)))
    if not config.tie_word_embeddings:
        weights -= model.embed_tokens[...].nbytes  # of which a step looks up a row for each token
    full = config.layer_types.count(FULL)
    kept = 2 * config.num_key_value_heads * config.head_dim * size
    memory = config.value_dim * config.linear_key_head_dim * 4
    tail = (config.linear_conv_kernel_dim - 1) * config.conv_dim * size
    return (
        weights
        + full * kept * (prompts * prompt + rows * tokens // 2)
        + (config.num_layers - full) * rows * (memory + tail)
    )


def seconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def through_transformers(
    folder: str, prompts: np.ndarray, options: argparse.Namespace, dtype: str
) -> float:
    """Median seconds of transformers.generate on the same weights and prompts."""
    import torch
    from transformers import AutoModelForCausalLM

    device = "cpu" if jax.default_backend() == "cpu" else "cuda"
    loaded: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype))
    model = loaded.to(device)
    tokens = torch.tensor(prompts).long().to(device)

    def generate(count: int) -> None:
        out = model.generate(
            tokens,
            attention_mask=torch.ones_like(tokens),
            do_sample=True,
            temperature=0.8,
            top_p=0.95,
            top_k=0,
            eos_token_id=None,
            pad_token_id=0,
            max_new_tokens=count,
            num_return_sequences=options.samples,
        )
        assert out.shape == (options.rows, prompts.shape[1] + count)
        out.cpu()

    generate(2)
    turns = [seconds(lambda: generate(options.tokens)) for _ in range(options.turns)]
    return statistics.median(turns)


def measure(size: str, options: argparse.Namespace) -> None:
    dtype = options.dtype or shapes.compute_dtype().name
    if size == "embedded":
        model = load_pretrained(FOLDER, jnp.dtype(dtype))
    else:
        model = shapes.random_model(shapes.config_of(size), jnp.dtype(dtype))
    parameters = sum(leaf.size for leaf in jax.tree.leaves(nnx.state(model)))
    count = options.rows // options.samples
    prompts = np.random.default_rng(0).integers(
        0, model.config.vocab_size, (count, options.prompt), dtype=np.int32
    )

    def run(tokens: int) -> None:
        settings = SamplingConfig(max_new_tokens=tokens, max_rows=options.rows)
        sample(model, list(prompts), options.samples, jax.random.key(0), settings)

    first = seconds(lambda: run(options.tokens))
    run(1)
    whole, prefill = [], []
    for _ in range(options.turns):
        prefill.append(seconds(lambda: run(1)))
        whole.append(seconds(lambda: run(options.tokens)))
    step = (statistics.median(whole) - statistics.median(prefill)) / (options.tokens - 1)
    read = bytes_read(model, count, options.rows, options.prompt, options.tokens)
    bound = read / copy_rate()
    rate = options.rows * options.tokens / statistics.median(whole)
    print(
        f"{size} ({parameters / 1e6:,.1f} M, {dtype}), {count} prompts of {options.prompt} x "
        f"{options.samples} samples of {options.tokens}: {rate:,.0f} tokens/s with the prefill, "
        f"{options.rows / step:,.0f} without; {first:.0f} s the first time"
    )
    print(
        f"  a step reads {read / 1e6:,.1f} MB in {1000 * step:.2f} ms; at the copy rate of "
        f"{read / bound / 1e9:,.1f} GB/s it would take {1000 * bound:.2f} ms: {bound / step:.2f} "
        f"of the bound"
    )
    if options.transformers:
        with tempfile.TemporaryDirectory() as folder:
            save_pretrained(model, f"{folder}/model")
            del model, run
            gc.collect()
            theirs = through_transformers(f"{folder}/model", prompts, options, dtype)
        ratio = theirs / statistics.median(whole)
        other = options.rows * options.tokens / theirs
        print(
            f"  transformers: {other:,.0f} tokens/s with the prefill; we are {ratio:.1f} x as fast"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--sizes", nargs="+", default=["tiny"], help="embedded, tiny, small, 0.8B, 4B, 9B, 27B"
    )
    parser.add_argument("--rows", type=int, default=32, help="completions side by side")
    parser.add_argument("--samples", type=int, default=4, help="completions of a prompt")
    parser.add_argument("--prompt", type=int, default=512, help="tokens of a prompt")
    parser.add_argument("--tokens", type=int, default=256, help="tokens of a completion")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--transformers", action="store_true", help="run transformers.generate too")
    options = parser.parse_args()
    if options.rows % options.samples:
        parser.error("--rows must be a multiple of --samples")
    print(f"on {shapes.device_name()}, {os.cpu_count()} CPU cores")
    for size in options.sizes:
        measure(size, options)


if __name__ == "__main__":
    main()
