"""A model folder that needs no training to write programs: its tokens are whole answers.

The tokenizer reads a prompt paragraph by paragraph and knows none of them, so prompts are short. Of
what a random model says, most is a program, some is not.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import nnx

from spo_jax.rl.qwen import Qwen, save_pretrained
from tests.rl import tiny

STOP, START, UNKNOWN = "<|im_end|>", "<|im_start|>", "<unknown>"
WORDS = ("radial", "random", "worst", "string", "related", "greedy", "noisy", "blinking")
SHAPE = {
    "hidden_size": 32,
    "intermediate_size": 32,
    "vocab_size": 96,
    "max_position_embeddings": 1024,
}
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CODE = """\
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, min({n} % 9 + 1, 35 * len(current_tour) // 100))
    removed = rng.sample(current_tour, count)
    return [node for node in current_tour if node not in removed], removed


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    for node in removed_nodes:
        costs = [
            (dist[tour[k - 1]][node] + dist[node][tour[k]] - dist[tour[k - 1]][tour[k]])
            * (1 + rng.random() * {n} / 50)
            for k in range(len(tour))
        ]
        tour.insert(costs.index(min(costs)), node)
    return tour
"""


def answer(n: int) -> str:
    """A program that serves in either role; no two numbers give the same."""
    words = f"{WORDS[n % 8]} {WORDS[n // 8 % 8]}"
    return f"STRATEGY: A {words} policy, number {n}.\nCODE:\n```python\n{CODE.format(n=n)}```\n"


BOTH = ("linear_attention", "full_attention")


def write(
    folder: Path, layers: tuple[str, ...] = BOTH, seed: int = 0, family: str = tiny.QWEN3_5
) -> Path:
    """The folder, made: config, weights in float32, tokenizer and chat template."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

    config = tiny.config(family, **SHAPE, num_hidden_layers=len(layers), layer_types=layers)
    model = nnx.eval_shape(lambda: Qwen(config, rngs=nnx.Rngs(0)))
    graph, weights = nnx.split(model)
    rng = np.random.default_rng(seed)
    save_pretrained(nnx.merge(graph, jax.tree.map(partial(_drawn, rng), weights)), folder)

    size = config.vocab_size
    vocabulary = [UNKNOWN, START, STOP, *(answer(n) for n in range(size - 13))]
    vocabulary += [f"word{n}\n" for n in range(size - len(vocabulary))]
    tokenizer = Tokenizer(models.WordLevel({text: i for i, text in enumerate(vocabulary)}, UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("\n\n"), "removed")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in (START, STOP)])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"eos_token": STOP, "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def _drawn(rng: np.random.Generator, leaf: Any) -> np.ndarray:
    """Matrices keep the size of what passes through them; the rest is small."""
    scale = leaf.shape[-1] ** -0.5 if leaf.ndim > 1 else 0.3
    return (scale * rng.standard_normal(leaf.shape)).astype(leaf.dtype)
