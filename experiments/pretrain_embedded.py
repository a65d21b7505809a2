"""Train the small model that ships with the package, from nothing to a Hugging Face folder.

    python experiments/pretrain_embedded.py --out runs/embedded          # goes on where it stopped
    python experiments/pretrain_embedded.py --out runs/more --begin runs/embedded/model --seed 2
    python experiments/pretrain_embedded.py --out runs/embedded --export spo_jax/rl/embedded/model

The tokenizer is trained first (`pretrain_data.py`). No example is seen twice; batch by batch the
corpus follows from the seed and the step alone, and a killed run goes on as if it had not been.
Muon updates matrices, AdamW the rest; the learning rate rises, holds and falls over the last part.
"""

import argparse
import math
import shutil
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from optax.contrib import MuonDimensionNumbers, muon

import corpus
from pretrain_data import LENGTH, TOKENIZER_FILES, VOCABULARY, Data, stream, train_tokenizer
from spo_jax.rl.checkpoint import Checkpoints
from spo_jax.rl.policy import PROBLEMS
from spo_jax.rl.qwen import Qwen, QwenConfig, load_pretrained, save_pretrained
from spo_jax.rl.qwen.config import FULL, LINEAR
from spo_jax.rl.qwen.layers import linear
from spo_jax.rl.tensor_files import read_json, write_json
from spo_jax.rl.tokens import Tokenizer


def model_config() -> QwenConfig:
    """Linear heads of 128, because nothing else can be served by vLLM."""
    return QwenConfig(
        vocab_size=VOCABULARY,
        hidden_size=192,
        intermediate_size=512,
        layer_types=(LINEAR, LINEAR, LINEAR, FULL),
        num_attention_heads=3,
        num_key_value_heads=1,
        head_dim=64,
        linear_num_key_heads=1,
        linear_num_value_heads=1,
        linear_key_head_dim=128,
        linear_value_head_dim=128,
        rotary_dim=16,
        rope_theta=1e4,
        max_position_embeddings=LENGTH,
        tie_word_embeddings=True,
    )


def fresh_model(seed: int) -> Qwen:
    """Random weights, with memories of the delta nets that fade over 10 to 1,000 tokens.

    Those that transformers draws fade within one token: nothing could be learned from farther back.
    """
    model = Qwen(model_config(), rngs=nnx.Rngs(seed))
    model.remat = False
    rng = np.random.default_rng(seed)
    for layer in model.block.layers():
        if layer.kind == LINEAR:
            net = layer.linear_attn
            step = np.exp(rng.uniform(np.log(0.001), np.log(0.1), net.dt_bias[...].shape))
            net.A_log[...] = jnp.zeros_like(net.A_log[...])
            net.dt_bias[...] = jnp.asarray(np.log(np.expm1(step)), net.dt_bias[...].dtype)
    return model


def transplant(model: Qwen, begin: Path, tokenizer: Path) -> None:
    """Give `model` the weights in `begin`, for another tokenizer.

    A token that `begin` knows keeps its embedding; any other starts with the mean embedding of the
    tokens that `begin` writes its text with.
    """
    from tokenizers import Tokenizer as Fast

    old = load_pretrained(begin, jnp.float32)
    ours = Fast.from_file(str(begin / "tokenizer.json"))
    new = Fast.from_file(str(tokenizer / "tokenizer.json"))
    known, rows = ours.get_vocab(), np.asarray(old.embed_tokens[...])
    table = np.array(model.embed_tokens[...])
    for piece, token in new.get_vocab().items():
        text = new.decode([token], skip_special_tokens=False)
        parts = [known[piece]] if piece in known else ours.encode(text).ids
        if parts:
            table[token] = rows[parts].mean(axis=0)
    weights = nnx.state(old)
    weights["embed_tokens"] = nnx.state(model)["embed_tokens"]
    nnx.update(model, weights)
    model.embed_tokens[...] = jnp.asarray(table)


# --- training -------------------------------------------------------------------------------------


def make_optimizer(rate: optax.Schedule) -> optax.GradientTransformation:
    """Muon for the layers' matrices, stacked on their first axis; AdamW for all else."""

    def dimensions(weights: Any) -> Any:
        def of(path: Any, leaf: jax.Array) -> MuonDimensionNumbers | None:
            name = jax.tree_util.keystr(path)
            matrix = leaf.ndim == 3 and "block" in name and "conv1d" not in name
            return MuonDimensionNumbers((1,), (2,)) if matrix else None

        return jax.tree_util.tree_map_with_path(of, weights)

    return optax.chain(
        optax.clip_by_global_norm(1.0),
        muon(
            rate,
            ns_steps=4,
            beta=0.95,
            weight_decay=0.01,
            adam_b2=0.98,
            adam_weight_decay=0.0,
            adam_learning_rate=rate,
            muon_weight_dimension_numbers=dimensions,
            consistent_rms=0.2,
        ),
    )


def loss_of(graph: Any, weights: Any, rows: Any) -> tuple[jax.Array, jax.Array]:
    """Weighted mean loss of the rows' tokens, and the answers' mean loss, in nats a token."""
    tokens, mask, weight = rows
    model = nnx.merge(graph, weights)
    hidden, _ = model.hidden(tokens, mask)
    logits = linear(hidden, model.head)[:, :-1]
    chosen = jnp.take_along_axis(logits, tokens[:, 1:, None], axis=-1)[..., 0]
    nats = jax.nn.logsumexp(logits, axis=-1) - chosen
    weight = weight[:, 1:]
    answer = weight == 1.0
    return jnp.sum(nats * weight) / jnp.sum(weight), jnp.sum(nats * answer) / jnp.sum(answer)


def make_step(graph: Any, optimizer: optax.GradientTransformation) -> Any:
    @partial(jax.jit, donate_argnums=(0, 1))
    def step(weights: Any, state: Any, rows: Any) -> tuple[Any, Any, jax.Array]:
        grads, answer = jax.grad(partial(loss_of, graph), has_aux=True)(weights, rows)
        updates, state = optimizer.update(grads, state, weights)
        return optax.apply_updates(weights, updates), state, answer

    return step


@dataclass
class Progress:
    """Where training stands: steps taken, the last batch's place in the corpus, real tokens."""

    weights: Any
    state: Any
    number: int = 0
    window: int = 0
    place: int = -1
    seen: int = 0

    def tree(self) -> dict[str, Any]:
        where = {name: np.int64(getattr(self, name)) for name in ("window", "place", "seen")}
        return {"weights": self.weights, "state": self.state, "where": where}

    def restored(self, checkpoints: Checkpoints) -> "Progress":
        """The newest checkpoint; itself where there is none."""
        number = checkpoints.latest()
        if number is None:
            return self
        kept = checkpoints.restore(number, like=self.tree())
        where = {name: int(value) for name, value in kept["where"].items()}
        return Progress(kept["weights"], kept["state"], number, **where)


def train(options: argparse.Namespace) -> None:
    out, steps = Path(options.out), options.steps
    tokenizer = out / "tokenizer"
    if options.begin and not options.new_tokenizer and not tokenizer.is_dir():
        tokenizer.mkdir(parents=True)
        for name in TOKENIZER_FILES:
            shutil.copy(Path(options.begin) / name, tokenizer)
    if not tokenizer.is_dir():
        print("training the tokenizer", flush=True)
        train_tokenizer(tokenizer, options.seed, options.tokenizer_answers)
    model = fresh_model(options.seed)
    if options.begin:
        transplant(model, Path(options.begin), tokenizer)
    data = Data(
        Tokenizer.load(tokenizer), options.seed + 1, options.batch, options.novice, options.widths
    )
    graph, weights = nnx.split(model)
    optimizer = make_optimizer(
        partial(_rate, peak=options.rate, warm=options.warm_up, hold=options.hold, steps=steps)
    )
    step = make_step(graph, optimizer)
    now = Progress(weights, optimizer.init(weights))
    with (
        Checkpoints(out / "checkpoints", keep=2) as checkpoints,
        (out / "loss.csv").open("a") as log,
    ):
        now = now.restored(checkpoints)
        print(f"{size_of(weights):,} parameters, from step {now.number}", flush=True)
        began, since = time.perf_counter(), now.seen
        recent: list[jax.Array] = []
        batches = stream(data, now.window, now.place + 1)
        while now.number < steps:
            now.window, now.place, rows = next(batches)
            arrays = (rows.tokens, rows.mask, rows.weights)
            now.weights, now.state, answer = step(now.weights, now.state, arrays)
            recent.append(answer)
            now.number, now.seen = now.number + 1, now.seen + int(rows.mask.sum())
            if now.number % options.report == 0 or now.number == steps:
                nats = float(np.mean(jax.device_get(recent)))
                recent.clear()
                seconds = time.perf_counter() - began
                print(
                    f"step {now.number}/{steps}  {now.seen / 1e6:.2f} M tokens  loss {nats:.4f}  "
                    f"{(now.seen - since) / seconds:,.0f} tokens/s",
                    flush=True,
                )
                log.write(f"{now.number},{now.seen},{nats:.5f},{seconds:.0f}\n")
                log.flush()
            if now.number % options.keep == 0 or now.number == steps:
                checkpoints.save(now.number, now.tree())
                checkpoints.wait()
    export(now.weights, model, tokenizer, out / "model")


def export_newest(options: argparse.Namespace) -> None:
    """What the newest checkpoint holds, as a folder for --model or for the package."""
    out = Path(options.out)
    model = fresh_model(options.seed)
    weights = nnx.state(model)
    optimizer = make_optimizer(lambda count: 0.0)
    with Checkpoints(out / "checkpoints", keep=2) as checkpoints:
        now = Progress(weights, optimizer.init(weights)).restored(checkpoints)
    export(now.weights, model, out / "tokenizer", Path(options.export))


def export(weights: Any, model: Qwen, tokenizer: Path, folder: Path) -> None:
    """A new folder with the weights in bfloat16, the config, and the tokenizer's files."""
    nnx.update(model, weights)
    with tempfile.TemporaryDirectory() as exact:
        save_pretrained(model, exact)
        # What is kept in float32 in a bfloat16 model is the loader's knowledge.
        save_pretrained(load_pretrained(exact, jnp.bfloat16), folder)
    shape = read_json(folder / "config.json")
    write_json(folder / "config.json", shape | {PROBLEMS: list(corpus.PROBLEMS)})
    shutil.copytree(tokenizer, folder, dirs_exist_ok=True)
    print(f"{folder}: {sum(path.stat().st_size for path in folder.iterdir()) / 1e6:.1f} MB")


def size_of(weights: Any) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(weights))


def _rate(count: jax.Array, *, peak: float, warm: int, hold: float, steps: int) -> jax.Array:
    """Rises for `warm` steps, holds until the share `hold` of all steps, then falls to zero."""
    rising = count / warm
    falling = (steps - count) / (steps * (1 - hold))
    return peak * jnp.clip(jnp.minimum(rising, falling), 0.0, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", default="runs/embedded", help="checkpoints, losses, the model")
    parser.add_argument("--export", help="write the newest checkpoint's model there instead")
    parser.add_argument("--begin", help="begin with the model in this folder, tokenizer and all")
    parser.add_argument("--new-tokenizer", action="store_true", help="of --begin keep the model")
    parser.add_argument("--novice", action="store_true", help="teach the novice's corpus")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--batch", type=int, default=8192, help="tokens of a batch, padding too")
    parser.add_argument("--widths", type=int, nargs="+", help="of rows; each is compiled once")
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--warm-up", type=int, default=100, help="steps")
    parser.add_argument("--hold", type=float, default=0.5, help="share of steps before the fall")
    parser.add_argument("--keep", type=int, default=250, help="steps between checkpoints")
    parser.add_argument("--report", type=int, default=25)
    parser.add_argument("--tokenizer-answers", type=int, default=30_000)
    options = parser.parse_args()
    if math.isclose(options.hold, 1.0):
        parser.error("--hold 1 leaves no time for the rate to fall")
    if options.export:
        export_newest(options)
    else:
        train(options)


if __name__ == "__main__":
    main()
