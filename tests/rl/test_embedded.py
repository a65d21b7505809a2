"""The model that ships: what others make of its folder, and that it writes programs."""

from typing import Any

import jax
import numpy as np
import pytest
import tiny

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.program import Program, parse_response
from spo_jax.program.grammar.base import FORMS
from spo_jax.rl.embedded import FOLDER
from spo_jax.rl.qwen import Qwen, load_pretrained
from spo_jax.rl.sampling import SamplingConfig, sample
from spo_jax.rl.tokens import Tokenizer
from spo_jax.search.writing.prompts import INITIALIZATION, templates_of
from tests.oracles import oracle

PLAIN = Program.from_source(
    "destroy",
    "def destroy(dist, current_tour, steps_since_improvement, rng):\n"
    "    out = rng.sample(current_tour, max(1, len(current_tour) // 5))\n"
    "    return [v for v in current_tour if v not in out], out\n",
    "Remove a fifth of the tour at random.",
)


@pytest.fixture(scope="module")
def model() -> Qwen:
    return load_pretrained(FOLDER, np.float32)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.load(FOLDER)


def test_it_is_small_and_could_be_served(model: Qwen) -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 16e6
    assert model.config.linear_key_head_dim == model.config.linear_value_head_dim == 128


@pytest.mark.long
def test_transformers_reads_the_folder_and_agrees(model: Qwen, tokenizer: Tokenizer) -> None:
    hf = oracle("transformers")

    theirs: Any = hf.AutoModelForCausalLM.from_pretrained(FOLDER, dtype="float32").eval()
    reader = hf.AutoTokenizer.from_pretrained(FOLDER)
    text = templates_of("tsp").render("tsp", "repair", INITIALIZATION, (), PLAIN).text
    tokens = tokenizer.prompt(text)
    message = [{"role": "user", "content": text}]
    expected = reader.apply_chat_template(message, add_generation_prompt=True, return_dict=False)
    np.testing.assert_array_equal(tokens, expected)
    assert reader.eos_token_id == tokenizer.stops[0]
    found = tiny.logits(model, tokens[None])
    np.testing.assert_allclose(found, tiny.torch_logits(theirs, tokens[None]), atol=1e-3)


@pytest.mark.long
def test_its_answers_are_programs(model: Qwen, tokenizer: Tokenizer) -> None:
    """One answer to every form for a parent that it did not write; all but few pass the gate."""
    prompts = [
        templates_of("tsp").render("tsp", "destroy", form, [PLAIN] * count)
        for form, count in zip(FORMS, (0, 1, 1, 1, 2, 2), strict=True)
    ]
    settings = SamplingConfig(max_new_tokens=400, context=4096, stop_tokens=tokenizer.stops)
    tokens = [tokenizer.prompt(prompt.text) for prompt in prompts]
    drawn = sample(model, tokens, 4, jax.random.key(0), settings)
    programs = [
        parse_response("destroy", tokenizer.decode(one.tokens)) for group in drawn for one in group
    ]
    assert len({program.digest for program in programs}) > 20
    with LocalEvaluator(get_problem("tsp"), 1, seed=0) as evaluator:
        verdicts = evaluator.check(programs)
    assert sum(verdict is None for verdict in verdicts) >= 23
