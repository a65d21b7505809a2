"""Folders as they are published, in vLLM: dense Qwen2 and Qwen3, and a multimodal Qwen3.5."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spo_jax.constants import EMBEDDED
from spo_jax.rl.lora import ATTENTION, MLP, TARGETS
from spo_jax.rl.policy import model_folder
from spo_jax.rl.tokens import Tokenizer
from tests.live.serving import MARKS, N, apart, groups, note, opened, prompts
from tests.rl import tiny

pytestmark = MARKS

DENSE = {"lora_targets": ",".join((*ATTENTION, *MLP))}
CLASSES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # Heads of 32, the least that vLLM has for a CPU, here and below.
    "qwen2": ({"model_type": "qwen2", "num_attention_heads": 2}, DENSE),
    "qwen3": ({"model_type": "qwen3"}, DENSE),
    # Vision tower and untied head, as that of the 9B; the server leaves the tower out.
    "qwen3_5": (
        {
            "multimodal": True,
            "num_hidden_layers": 4,
            "linear_key_head_dim": 128,
            "linear_value_head_dim": 128,
        },
        {"lora_targets": ",".join(TARGETS), "vllm_args": "--language-model-only"},
    ),
}


def written(folder: Path, **changes: Any) -> Path:
    """A random model of transformers with the tokenizer of the model that ships."""
    own = model_folder(EMBEDDED)
    size = Tokenizer.load(own).size
    model = tiny.torch_model(vocab_size=size, max_position_embeddings=4096, **changes)
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        if (own / name).is_file():
            shutil.copy(own / name, folder / name)
    return folder


# The dense families differ from each other in data alone.
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("qwen2", marks=pytest.mark.slow),
        pytest.param("qwen3", marks=pytest.mark.long),
        pytest.param("qwen3_5", marks=pytest.mark.long),
    ],
)
def test_a_published_class_is_sampled_and_learns(name: str, tmp_path: Path) -> None:
    """Opening it, and the swap after an update, pass the probe of the weights."""
    changes, given = CLASSES[name]
    folder = written(tmp_path / "model", **changes)
    asked = prompts()
    policy = opened(
        tmp_path / "run", [], seed=1, model=str(folder), max_new_tokens=64, mend=0, **given
    )
    try:
        for number in range(2):
            answers = policy.generate(asked, N, number)
            pairs = [(p, c) for p, several in zip(asked, answers, strict=True) for c in several]
            own = [apart(policy, p, c, policy.learners[p.role].adapter) for p, c in pairs]
            base = [apart(policy, p, c, None) for p, c in pairs]
            note(
                f"{name}: {np.mean(own):.4f} nats per token from the trainer's with the right "
                f"adapters, {np.mean(base):.2f} from the base"
            )
            assert np.mean(own) < 0.05 < np.mean(base)
            if number == 0:
                metrics = policy.update(groups(answers, asked))
                assert metrics["destroy/gradient_norm"] > 0
    finally:
        policy.close()
