"""The model against transformers: every sublayer, logits, padding, dtypes, and its size."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
from flax import nnx

from spo_jax.rl.qwen import Qwen, load_pretrained, named_config
from spo_jax.rl.qwen.config import FULL, LINEAR
from spo_jax.rl.qwen.layers import Rotation
from spo_jax.rl.qwen.model import Layer
from tests.oracles import oracle

CLOSE = {"atol": 1e-4, "rtol": 0}


@pytest.mark.long
@pytest.mark.parametrize("length", [1, 63, 64, 65, 200])
def test_logits_are_those_of_transformers(length: int) -> None:
    theirs, ours = tiny.pair()
    tokens = tiny.tokens(length, 2, length)
    want = tiny.torch_logits(theirs, tokens)
    assert np.abs(want).mean() > 0.3
    np.testing.assert_allclose(tiny.logits(ours, tokens), want, **CLOSE)


SIX = (LINEAR, FULL, FULL, LINEAR, FULL, FULL)


@pytest.mark.long
@pytest.mark.parametrize(
    ("changes", "block", "repeats"),
    [
        ({"tie_word_embeddings": True}, 4, 2),
        ({"num_hidden_layers": 2, "linear_num_value_heads": 2}, 1, 2),
        ({"num_hidden_layers": 6, "layer_types": SIX, "linear_num_value_heads": 6}, 3, 2),
        ({"num_hidden_layers": 3, "layer_types": (FULL, LINEAR, LINEAR)}, 3, 1),
    ],
    ids=["tied", "only-linear", "linear-full-full", "not-periodic"],
)
def test_other_shapes(changes: dict[str, Any], block: int, repeats: int) -> None:
    theirs, ours = tiny.pair(**changes)
    assert (len(ours.config.block), ours.config.repeats) == (block, repeats)
    tokens = tiny.tokens(1, 2, 65)
    np.testing.assert_allclose(
        tiny.logits(ours, tokens), tiny.torch_logits(theirs, tokens), **CLOSE
    )


@pytest.mark.long
@pytest.mark.parametrize("tied", [False, True])
def test_the_text_part_of_a_multimodal_checkpoint(tied: bool, tmp_path: Path) -> None:
    theirs = tiny.torch_model(multimodal=True, tie_word_embeddings=tied)
    theirs.save_pretrained(tmp_path)
    tokens = tiny.tokens(2, 2, 65)
    got = tiny.logits(load_pretrained(tmp_path), tokens)
    np.testing.assert_allclose(got, tiny.torch_logits(theirs, tokens), **CLOSE)


@pytest.mark.long
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_changes_nothing(side: str) -> None:
    theirs, ours = tiny.pair()
    lengths = (130, 1, 63, 64, 65)
    mask = tiny.padded(lengths, 130, side)
    tokens = tiny.tokens(3, len(lengths), 130)
    got = tiny.logits(ours, tokens, mask)
    np.testing.assert_allclose(got[mask], tiny.torch_logits(theirs, tokens, mask)[mask], **CLOSE)
    for row, valid in enumerate(mask):
        alone = tiny.torch_logits(theirs, tokens[row, valid][None])[0]
        np.testing.assert_allclose(got[row, valid], alone, **CLOSE)
    assert np.isfinite(got).all()


def test_many_blocks_of_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention in blocks of queries, the last one not full."""
    monkeypatch.setattr("spo_jax.rl.qwen.attention.QUERY_BLOCK", 32)
    theirs, ours = tiny.pair(num_hidden_layers=1, layer_types=(FULL,))
    tokens, mask = tiny.tokens(4, 2, 75), tiny.padded((75, 50), 75, "left")
    got = tiny.logits(ours, tokens, mask)
    np.testing.assert_allclose(got[mask], tiny.torch_logits(theirs, tokens, mask)[mask], **CLOSE)


@contextmanager
def recorded(model: Any) -> Iterator[dict[str, tuple[np.ndarray, np.ndarray]]]:
    """Input and output of every module of a torch model, by name."""
    seen: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    handles = []
    for name, module in model.named_modules():

        def hook(_: Any, args: Any, kwargs: Any, out: Any, name: str = name) -> None:
            given = args[0] if args else kwargs.get("hidden_states")
            result = out[0] if isinstance(out, tuple) else out
            if hasattr(given, "numpy") and hasattr(result, "numpy"):
                seen[name] = given.numpy().copy(), result.numpy().copy()

        handles.append(module.register_forward_hook(hook, with_kwargs=True))
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@partial(jax.jit, static_argnums=0, compiler_options=tiny.QUICK)
def sublayers(
    graph: Any, weights: Any, given: dict[str, jax.Array], mask: jax.Array, rotation: Rotation
) -> dict[str, jax.Array]:
    """What each part of a layer makes of what transformers' part was given."""
    layer: Layer = nnx.merge(graph, weights)
    out = {
        "input_layernorm": layer.input_layernorm(given["input_layernorm"]),
        "post_attention_layernorm": layer.post_attention_layernorm(
            given["post_attention_layernorm"]
        ),
        "mlp": layer.mlp(given["mlp"], {}),
    }
    if layer.kind == FULL:
        mixer = layer.self_attn
        out["self_attn"], _ = mixer(given["self_attn"], mask, rotation, {})
        out["self_attn.q_norm"] = mixer.q_norm(given["self_attn.q_norm"])
        out["self_attn.k_norm"] = mixer.k_norm(given["self_attn.k_norm"])
    else:
        out["linear_attn"], _ = layer.linear_attn(given["linear_attn"], mask, {})
    out[""], _ = layer(given[""], mask, rotation, {}, None, None)
    return out


@pytest.mark.long
@pytest.mark.parametrize("side", ["left", "right"])
def test_every_sublayer_is_that_of_transformers(side: str) -> None:
    theirs, ours = tiny.pair()
    tokens, mask = tiny.tokens(5, 2, 65), tiny.padded((65, 30), 65, side)
    with recorded(theirs.model) as seen:
        tiny.torch_logits(theirs, tokens, mask)
    positions = jnp.maximum(jnp.cumsum(mask, axis=1) - 1, 0)
    rotation = Rotation.at(positions, ours.config)
    compared = 0
    for number, layer in enumerate(ours.unstacked()):
        prefix = f"layers.{number}"
        own = {
            name.removeprefix(prefix).removeprefix("."): both
            for name, both in seen.items()
            if f"{name}.".startswith(f"{prefix}.")
        }
        given = {name: x for name, (x, _) in own.items() if x.shape[:2] == mask.shape}
        for name, got in sublayers(*nnx.split(layer), given, mask, rotation).items():
            want = own[name][1]
            np.testing.assert_allclose(
                np.asarray(got)[mask], want[mask], **CLOSE, err_msg=f"{prefix}.{name}"
            )
            assert np.abs(want[mask]).mean() > 0.05, name
            compared += 1
    assert compared == 6 * 5 + 2 * 7
    np.testing.assert_allclose(ours.embed_tokens[...][tokens], seen["embed_tokens"][1], **CLOSE)
    np.testing.assert_allclose(ours.norm(jnp.asarray(seen["norm"][0])), seen["norm"][1], **CLOSE)


@pytest.mark.long
def test_bfloat16_errs_no_more_than_transformers_does(tmp_path: Path) -> None:
    """Error: the mean over all logits of the distance to transformers in float32."""
    torch = oracle("torch")

    tokens = tiny.tokens(6, 4, 100)
    theirs = tiny.torch_model()
    exact = tiny.torch_logits(theirs, tokens)
    theirs.to(torch.bfloat16).save_pretrained(tmp_path)
    model = load_pretrained(tmp_path)
    assert model.dtype == jnp.bfloat16
    own_error = np.abs(tiny.logits(model, tokens) - exact).mean()
    their_error = np.abs(tiny.torch_logits(theirs, tokens) - exact).mean()
    assert their_error / 10 < own_error <= their_error


def test_the_9b_model_has_the_published_number_of_parameters() -> None:
    model = nnx.eval_shape(lambda: Qwen(named_config("9B"), rngs=nnx.Rngs(0)))
    shapes = [leaf.shape for leaf in jax.tree.leaves(nnx.state(model))]
    assert sum(map(math.prod, shapes)) == 8_953_803_264
