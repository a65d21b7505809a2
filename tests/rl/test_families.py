"""Dense Qwen2 and Qwen3 against transformers and PEFT: config, logits, adapters, text, learning.

What all families share is tested with Qwen3.5; here is what depends on the family.
"""

import json
import math
import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from safetensors import safe_open
from safetensors.numpy import load_file

from spo_jax.config import Settings
from spo_jax.errors import InputError
from spo_jax.program import Group, Prompt
from spo_jax.rl.lora import ATTENTION, MLP, TARGET_SETS, Adapter, LoraConfig, init_adapter
from spo_jax.rl.peft import CONFIG, TENSORS, export_peft, import_peft
from spo_jax.rl.policy import Policy, lora_of, require_fitting
from spo_jax.rl.qwen import Qwen, QwenConfig, load_pretrained, save_pretrained
from spo_jax.rl.qwen.config import FULL, SLIDING
from spo_jax.rl.qwen.weights import checkpoint_names
from spo_jax.rl.sampling import SamplingConfig, sample
from tests.oracles import oracle
from tests.rl import speaker, tiny

CLOSE = {"atol": 1e-4, "rtol": 0}
DENSE = ("qwen2", "qwen3")
TOKENS = tiny.tokens(0, 2, 70)
MASK = tiny.padded((70, 50), 70, "left")
ALL = LoraConfig(rank=4, alpha=6.0, targets=(*ATTENTION, *MLP))

# Head sizes given and by default, keys and values of one, two and all heads, both heads of the
# vocabulary, biases of all projections, of three or of none.
SHAPES: list[tuple[str, dict[str, Any]]] = [
    ("qwen2", {}),
    ("qwen2", {"tie_word_embeddings": True, "num_key_value_heads": 1, "num_hidden_layers": 1}),
    ("qwen2", {"head_dim": 24, "num_key_value_heads": 4, "rms_norm_eps": 1e-3}),
    ("qwen3", {}),
    ("qwen3", {"tie_word_embeddings": True, "num_key_value_heads": 4, "num_hidden_layers": 1}),
    ("qwen3", {"attention_bias": True, "head_dim": 16, "num_key_value_heads": 1}),
]


# --- logits and checkpoints -----------------------------------------------------------------------


@pytest.mark.parametrize(("family", "changes"), SHAPES)
def test_logits_are_those_of_transformers(family: str, changes: dict[str, Any]) -> None:
    theirs, ours = tiny.pair(model_type=family, **changes)
    assert ours.config.block == (FULL,)
    want = tiny.torch_logits(theirs, TOKENS, MASK)[MASK]
    assert np.abs(want).mean() > 0.3
    np.testing.assert_allclose(tiny.logits(ours, TOKENS, MASK)[MASK], want, **CLOSE)


@pytest.mark.parametrize("family", DENSE)
def test_every_tensor_has_an_effect(family: str) -> None:
    """So that agreement with transformers is agreement about each of them."""
    _, ours = tiny.pair(model_type=family, num_hidden_layers=1)
    before, rng = tiny.logits(ours, TOKENS[:1, :20]), np.random.default_rng(0)
    graph, weights = nnx.split(ours)
    flat = nnx.to_flat_state(weights)
    names = {".".join(map(str, path)) for path, _ in flat}
    assert {"qwen2": 15, "qwen3": 14}[family] == len(names)
    assert ("block.layer0.self_attn.v_proj.bias" in names) == (family == "qwen2")
    assert ("block.layer0.self_attn.q_norm.weight" in names) == (family == "qwen3")
    for path, leaf in flat:
        moved = leaf.replace(leaf[...] + 0.3 * rng.standard_normal(leaf.shape, np.float32))
        changed = nnx.from_flat_state(
            (other, moved if other == path else one) for other, one in flat
        )
        after = tiny.logits(nnx.merge(graph, changed), TOKENS[:1, :20])
        assert np.abs(after - before).max() > 1e-3, path


@pytest.mark.parametrize("family", DENSE)
def test_bfloat16_errs_about_as_much_as_transformers_does(family: str, tmp_path: Path) -> None:
    torch = oracle("torch")

    theirs = tiny.torch_model(model_type=family)
    exact = tiny.torch_logits(theirs, TOKENS)
    theirs.to(torch.bfloat16).save_pretrained(tmp_path)
    model = load_pretrained(tmp_path)
    assert model.dtype == jnp.bfloat16
    own_error = np.abs(tiny.logits(model, TOKENS) - exact).mean()
    their_error = np.abs(tiny.torch_logits(theirs, TOKENS) - exact).mean()
    assert their_error / 10 < own_error < 1.1 * their_error


@pytest.mark.parametrize(("family", "changes"), SHAPES)
def test_transformers_loads_what_is_written(
    family: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    hf = oracle("transformers")

    theirs, ours = tiny.pair(model_type=family, **changes)
    theirs.save_pretrained(tmp_path / "theirs", max_shard_size="100KB")
    assert len(list((tmp_path / "theirs").glob("*.safetensors"))) > 1
    sharded = load_pretrained(tmp_path / "theirs")
    save_pretrained(sharded, tmp_path / "ours")
    again, report = hf.AutoModelForCausalLM.from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    assert type(again) is type(theirs)
    assert not any(report.values())
    np.testing.assert_array_equal(
        tiny.torch_logits(again, TOKENS), tiny.torch_logits(theirs, TOKENS)
    )
    assert load_pretrained(tmp_path / "ours").config == ours.config
    with safe_open(tmp_path / "ours" / "model.safetensors", "numpy") as tensors:
        tied = ours.config.tie_word_embeddings
        assert ("lm_head.weight" in tensors.keys()) != tied  # noqa: SIM118


# --- config.json ----------------------------------------------------------------------------------


def read(folder: Path, family: str, **changes: Any) -> QwenConfig:
    values = {"model_type": family, **tiny.SHAPES[family], **changes}
    values = {name: value for name, value in values.items() if value is not ...}
    (folder / "config.json").write_text(json.dumps(values))
    return QwenConfig.from_json(folder)


@pytest.mark.parametrize("family", DENSE)
def test_a_config_as_published(family: str, tmp_path: Path) -> None:
    """rope_theta beside the sizes, and a sliding window that no layer uses."""
    found = read(
        tmp_path, family, rope_parameters=..., rope_theta=1e6, rope_scaling=None,
        use_sliding_window=False, sliding_window=131072, max_window_layers=2,
    )  # fmt: skip
    assert (found.rope_theta, found.layer_types) == (1e6, (FULL,) * 3)
    assert found.rotary_dim == found.head_dim == {"qwen2": 16, "qwen3": 32}[family]
    assert found.query_dim == 4 * found.head_dim


@pytest.mark.parametrize("family", DENSE)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"use_sliding_window": True, "sliding_window": 64, "max_window_layers": 1},
            "2 of 3 layers attend within a sliding_window of 64 tokens (use_sliding_window)",
        ),
        (
            {"layer_types": [FULL, SLIDING, FULL], "sliding_window": 64},
            "1 of 3 layers attend within a sliding_window of 64 tokens",
        ),
        (
            {"rope_scaling": {"type": "yarn", "factor": 4.0}},
            "rope_scaling has rope_type 'yarn'; only 'default' is supported",
        ),
        (
            {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}},
            "rope_parameters has rope_type 'linear'; only 'default' is supported",
        ),
        ({"rope_parameters": ...}, "lacks 'rope_theta'"),
        ({"max_position_embeddings": ...}, "lacks 'max_position_embeddings'"),
        ({"layer_types": ["linear_attention"] * 3}, "'linear_attention'; supported: full_att"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'; only 'silu' is supported"),
        ({"attention_bias": "yes"}, "attention_bias is 'yes'"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5; only 1.0 is supported"),
    ],
)
def test_what_is_refused(
    family: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as error:
        read(tmp_path, family, **changes)
    assert str(error.value).startswith(str(tmp_path / "config.json"))


def test_sizes_that_only_one_family_may_leave_out(tmp_path: Path) -> None:
    assert read(tmp_path, "qwen2", head_dim=None).head_dim == 16
    with pytest.raises(InputError, match="lacks 'head_dim'"):
        read(tmp_path, "qwen3", head_dim=...)
    with pytest.raises(InputError, match="attention_bias is False; only True is supported"):
        read(tmp_path, "qwen2", attention_bias=False)


def test_a_window_behind_the_last_layer_is_none(tmp_path: Path) -> None:
    hf = oracle("transformers")

    window = {"use_sliding_window": True, "sliding_window": 64, "max_window_layers": 3}
    assert read(tmp_path, "qwen2", **window).layer_types == (FULL,) * 3
    assert hf.AutoConfig.from_pretrained(tmp_path).layer_types == [FULL] * 3


# As published, but for what transformers adds.
PUBLISHED = {
    "Qwen2.5-Coder-1.5B-Instruct": {
        "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
        "eos_token_id": 151645, "hidden_act": "silu", "hidden_size": 1536,
        "initializer_range": 0.02, "intermediate_size": 8960, "max_position_embeddings": 32768,
        "max_window_layers": 28, "model_type": "qwen2", "num_attention_heads": 12,
        "num_hidden_layers": 28, "num_key_value_heads": 2, "rms_norm_eps": 1e-06,
        "rope_theta": 1000000.0, "sliding_window": 131072, "tie_word_embeddings": True,
        "torch_dtype": "bfloat16", "use_cache": True, "use_sliding_window": False,
        "vocab_size": 151936,
    },
    "Qwen3-0.6B": {
        "architectures": ["Qwen3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu",
        "hidden_size": 1024, "initializer_range": 0.02, "intermediate_size": 3072,
        "max_position_embeddings": 40960, "max_window_layers": 28, "model_type": "qwen3",
        "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8,
        "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 1000000,
        "sliding_window": None, "tie_word_embeddings": True, "torch_dtype": "bfloat16",
        "use_cache": True, "use_sliding_window": False, "vocab_size": 151936,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models_have_the_tensors_of_transformers(name: str, tmp_path: Path) -> None:
    """Names and shapes, without weights."""
    hf, torch = oracle("transformers"), oracle("torch")

    (tmp_path / "config.json").write_text(json.dumps(PUBLISHED[name]))
    config = QwenConfig.from_json(tmp_path)
    model = nnx.eval_shape(lambda: Qwen(config, rngs=nnx.Rngs(0)))
    ours = {
        each: list(leaf.shape[1:] if path[0] == "block" else leaf.shape)
        for path, leaf in nnx.to_flat_state(nnx.state(model))
        for each in checkpoint_names(path, config)
    }
    with torch.device("meta"):
        theirs = hf.AutoModelForCausalLM.from_config(hf.AutoConfig.from_pretrained(tmp_path))
    assert ours == {name: list(tensor.shape) for name, tensor in theirs.named_parameters()}
    sizes = {"Qwen2.5-Coder-1.5B-Instruct": 1_543_714_304, "Qwen3-0.6B": 596_049_920}
    assert sum(map(math.prod, ours.values())) == sizes[name]


# --- adapters -------------------------------------------------------------------------------------


def drawn(lora: LoraConfig, config: QwenConfig) -> Adapter:
    """An adapter with a B that is not zero."""
    rng = np.random.default_rng(0)
    empty = init_adapter(jax.random.key(0), lora, config)
    return jax.tree.map(lambda x: jnp.asarray(0.1 * rng.standard_normal(x.shape), x.dtype), empty)


@pytest.mark.long
@pytest.mark.parametrize("family", DENSE)
def test_an_export_in_peft(family: str, tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """Attached and merged, without a key mapping; and back to the same adapter."""
    peft = oracle("peft")

    _, ours = tiny.pair(model_type=family)
    adapter = drawn(ALL, ours.config)
    export_peft(adapter, ALL, ours.config, tmp_path / "adapter")
    name = "base_model.model.model.layers.2.self_attn.q_proj.lora_B.weight"
    stored = load_file(tmp_path / "adapter" / TENSORS)
    np.testing.assert_array_equal(stored[name], adapter.layers[0]["q_proj"].b[2])

    theirs = peft.PeftModel.from_pretrained(
        tiny.torch_model(model_type=family), tmp_path / "adapter"
    ).eval()
    assert not [str(one.message) for one in recwarn if one.category is UserWarning]
    got = tiny.logits(ours, TOKENS, MASK, adapter.scaled(ALL.scale))[MASK]
    np.testing.assert_allclose(got, tiny.torch_logits(theirs, TOKENS, MASK)[MASK], **CLOSE)
    merged = theirs.merge_and_unload()
    np.testing.assert_allclose(got, tiny.torch_logits(merged, TOKENS, MASK)[MASK], **CLOSE)
    assert np.abs(got - tiny.logits(ours, TOKENS, MASK)[MASK]).mean() > 0.1

    again, lora = import_peft(tmp_path / "adapter", ours.config)
    assert lora == ALL
    jax.tree.map(np.testing.assert_array_equal, again, adapter)


@pytest.mark.parametrize("family", DENSE)
def test_what_peft_writes_is_imported(family: str, tmp_path: Path) -> None:
    peft, torch = oracle("peft"), oracle("torch")

    torch.manual_seed(0)
    settings = peft.LoraConfig(
        r=3, lora_alpha=8, target_modules=list(ATTENTION), init_lora_weights=False
    )
    theirs = peft.get_peft_model(tiny.torch_model(model_type=family), settings).eval()
    theirs.save_pretrained(tmp_path)
    _, ours = tiny.pair(model_type=family)
    adapter, lora = import_peft(tmp_path, ours.config)
    assert lora == LoraConfig(3, 8.0, ATTENTION)
    got = tiny.logits(ours, TOKENS, MASK, adapter.scaled(lora.scale))[MASK]
    np.testing.assert_allclose(got, tiny.torch_logits(theirs, TOKENS, MASK)[MASK], **CLOSE)


def test_the_names_of_the_paper_are_literal(tmp_path: Path) -> None:
    """Without delta nets, the paper's set is its four names, and an export names no others."""
    config = tiny.config("qwen2")
    by_name = lora_of(Settings.make(lora_targets="q_proj,k_proj,v_proj,o_proj"))
    by_set = lora_of(Settings.make(lora_targets="mixers"))
    one, other = (init_adapter(jax.random.key(3), lora, config) for lora in (by_name, by_set))
    assert [set(layer) for layer in one.layers] == [set(ATTENTION)]
    jax.tree.map(np.testing.assert_array_equal, one, other)
    export_peft(other, by_set, config, tmp_path / "out")
    named = json.loads((tmp_path / "out" / CONFIG).read_text())["target_modules"]
    assert named == sorted(ATTENTION)
    assert by_set.targets == TARGET_SETS["mixers"]


def test_targets_that_no_layer_has_are_refused_before_a_run(tmp_path: Path) -> None:
    read(tmp_path, "qwen3")
    settings = Settings.make(
        generator="model", model=str(tmp_path), lora_targets="in_proj_qkv,out_proj",
        max_new_tokens=8,
    )  # fmt: skip
    with pytest.raises(InputError, match="no layer of this qwen3 model has the target in_proj_qkv"):
        require_fitting(settings)
    require_fitting(settings.replace(lora_targets="q_proj,out_proj"))


# --- decoding and learning ------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("family", DENSE)
def test_greedy_text_is_that_of_transformers(family: str) -> None:
    torch = oracle("torch")

    theirs, ours = tiny.pair(model_type=family)
    prompts = [tiny.tokens(i, 1, length)[0] for i, length in enumerate((40, 7, 63))]
    settings = SamplingConfig(temperature=0.0, max_new_tokens=24, context=512)
    found = sample(ours, prompts, 2, jax.random.key(0), settings)
    for prompt, group in zip(prompts, found, strict=True):
        want = theirs.generate(
            torch.tensor(prompt)[None].long(), do_sample=False, max_new_tokens=24, eos_token_id=None
        )[0, len(prompt) :]
        for one in group:
            assert one.tokens.tolist() == want.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("family", DENSE)
def test_updates_make_the_better_answer_likelier(family: str, tmp_path: Path) -> None:
    """Three steps of GRPO on two answers, through a run's policy; the base stays as it was."""
    folder = speaker.write(tmp_path, (FULL, FULL), family=family)
    policy = Policy.load(
        Settings.make(
            generator="model", model=str(folder), max_new_tokens=3, context=60, sample_rows=4,
            lora_rank=2, lora_targets="q_proj,k_proj,v_proj,o_proj", learning_rate=0.02,
        )
    )  # fmt: skip
    before = jax.tree.map(np.asarray, nnx.state(policy.model))
    asked = Prompt("tsp", "destroy", "simplification", "word\n\nword\n\nword")
    answers = policy.generate([asked], 2, 0)[0]
    assert answers[0].text != answers[1].text
    tokens = policy._tokenizer.prompt(asked.text)

    def likelihood(answer: Any) -> float:
        whole = np.concatenate([tokens, answer.tokens])[None]
        adapter = policy.learners["destroy"].adapter.scaled(policy.lora.scale)
        logs = jax.nn.log_softmax(tiny.logits(policy.model, whole, adapter=adapter)[0])
        places = np.arange(len(tokens) - 1, whole.shape[1] - 1)
        return float(logs[places, answer.tokens].sum())

    def gap() -> float:
        return likelihood(answers[0]) - likelihood(answers[1])

    first = gap()
    group = Group(asked, answers, np.array([1.0, 0.0]), np.array([False, False]))
    for _ in range(3):
        metrics = policy.update({"destroy": [group], "repair": []})
    assert gap() > first + 0.1, metrics
    learned = policy.learners["destroy"].adapter
    assert {name for layer in learned.layers for name in layer} == set(ATTENTION)
    assert all(np.abs(low.b).max() > 0 for layer in learned.layers for low in layer.values())
    jax.tree.map(np.testing.assert_array_equal, nnx.state(policy.model), before)
