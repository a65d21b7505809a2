"""Text to tokens as transformers does it, and folders that lack something."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spo_jax.errors import InputError
from spo_jax.rl.tokens import Tokenizer
from tests.oracles import oracle

# Everything that templates of instruction-tuned models use: whitespace control, loops with
# controls, filters, special tokens, the switch for thinking.
TEMPLATE = """\
{%- if not messages %}
    {{- raise_exception('no messages') }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'system' %}
        {%- continue %}
    {%- endif %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content | trim + '<|im_end|>' + '\\n' }}
{%- endfor %}
{{- {'done': true} | tojson + eos_token }}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""
TEXT = "Write a destroy operator: n = 5,\n    größer als 4.\n\n```python\npass\n```"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tokenizers import AddedToken, decoders, models, pre_tokenizers, trainers
    from tokenizers import Tokenizer as Fast

    tokenizer = Fast(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator([TEXT, "an operator, one operator"], trainer)
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>", "<|endoftext|>"])
    tokenizer.add_tokens([AddedToken("Write a destroy operator", normalized=False)])
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen3_5_text"}))
    return folder


@pytest.fixture(scope="module")
def theirs(folder: Path) -> Any:
    transformers = oracle("transformers")

    return transformers.PreTrainedTokenizerFast.from_pretrained(folder)


def changed(folder: Path, tmp_path: Path, **files: Any) -> Path:
    """A copy of the folder with other JSON files; None leaves one out."""
    for path in folder.iterdir():
        if files.get(path.stem, "") is not None:
            (tmp_path / path.name).write_bytes(path.read_bytes())
    for stem, values in files.items():
        if values is not None:
            (tmp_path / f"{stem}.json").write_text(json.dumps(values))
    return tmp_path


def test_a_prompt_is_what_transformers_makes_of_it(folder: Path, theirs: Any) -> None:
    ours = Tokenizer.load(folder)
    message = [{"role": "user", "content": TEXT}]
    expected = theirs.apply_chat_template(
        message, add_generation_prompt=True, enable_thinking=False, return_dict=False
    )
    found = ours.prompt(TEXT)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, expected)
    assert "<think>\n\n</think>" in theirs.decode(expected)
    both = [{"role": "system", "content": "Be brief."}, *message]
    expected = theirs.apply_chat_template(
        both, add_generation_prompt=True, enable_thinking=False, return_dict=False
    )
    np.testing.assert_array_equal(ours.prompt(TEXT, "Be brief."), expected)


@pytest.mark.parametrize("text", [TEXT, "", " two  spaces ", "<|im_end|>", "é\u200d🙂"])
def test_text_is_encoded_and_decoded_as_transformers_does(
    text: str, folder: Path, theirs: Any
) -> None:
    ours = Tokenizer.load(folder)
    tokens = ours.encode(text)
    np.testing.assert_array_equal(tokens, theirs.encode(text, add_special_tokens=False))
    assert ours.decode(tokens) == theirs.decode(tokens, skip_special_tokens=True)
    assert ours.decode(tokens) == text.replace("<|im_end|>", "")


def test_stop_tokens_come_from_both_configs(folder: Path, tmp_path: Path) -> None:
    ids = {t: Tokenizer.load(folder).encode(t)[0] for t in ("<|im_end|>", "<|endoftext|>")}
    assert Tokenizer.load(folder).stops == (ids["<|im_end|>"],)
    values = {"eos_token_id": [int(ids["<|endoftext|>"]), int(ids["<|im_end|>"])]}
    both = changed(folder, tmp_path, generation_config=values)
    assert Tokenizer.load(both).stops == (ids["<|endoftext|>"], ids["<|im_end|>"])


def test_a_template_within_the_config(folder: Path, tmp_path: Path) -> None:
    settings = {"chat_template": TEMPLATE, "eos_token": {"content": "<|im_end|>", "special": True}}
    other = changed(folder, tmp_path, chat_template=None, tokenizer_config=settings)
    found = Tokenizer.load(other).prompt(TEXT)
    np.testing.assert_array_equal(found, Tokenizer.load(folder).prompt(TEXT))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"tokenizer": None}, "has no tokenizer.json"),
        ({"tokenizer": {"no": "tokenizer"}}, "cannot read"),
        ({"chat_template": None}, "has no chat template"),
        ({"tokenizer_config": {}}, "names no eos_token"),
        ({"tokenizer_config": ["a list"]}, "holds no JSON object"),
    ],
)
def test_what_a_folder_lacks_is_reported(
    files: dict[str, Any], message: str, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        Tokenizer.load(changed(folder, tmp_path, **files))


def test_a_template_that_is_no_template(folder: Path, tmp_path: Path) -> None:
    settings = {"chat_template": "{% for %}", "eos_token": "<|im_end|>"}
    other = changed(folder, tmp_path, chat_template=None, tokenizer_config=settings)
    with pytest.raises(InputError, match=r"chat template of .* cannot be read"):
        Tokenizer.load(other)


def test_templates_for_training_render(folder: Path, tmp_path: Path) -> None:
    """As that of TRL for Qwen3.5: the part to learn from is marked, and JSON has a layout."""
    hf = oracle("transformers")

    source = (
        "{% for m in messages %}{% generation %}{{ m | tojson(ensure_ascii=False, indent=2, "
        "separators=(',', ':'), sort_keys=True) }}{% endgeneration %}\n{% endfor %}"
    )
    settings = {"chat_template": source, "eos_token": "<|im_end|>"}
    other = changed(folder, tmp_path, chat_template=None, tokenizer_config=settings)
    theirs = hf.AutoTokenizer.from_pretrained(other)
    conversation = [{"role": "user", "content": "größer < 3"}]
    expected = theirs.apply_chat_template(conversation, add_generation_prompt=True, tokenize=False)
    found = Tokenizer.load(other)
    assert found.decode(found.prompt("größer < 3")) == expected


@pytest.mark.parametrize(
    ("source", "words"),
    [("{{ raise_exception('no system message') }}", "no system message"),
     ("{{ strftime_now('%d') }}", "'strftime_now' is undefined")],
)  # fmt: skip
def test_a_template_that_refuses(source: str, words: str, folder: Path, tmp_path: Path) -> None:
    settings = {"chat_template": source, "eos_token": "<|im_end|>"}
    other = changed(folder, tmp_path, chat_template=None, tokenizer_config=settings)
    with pytest.raises(InputError, match=f"chat template cannot make a prompt: {words}"):
        Tokenizer.load(other)


def test_a_tokenizer_neither_cuts_nor_pads(folder: Path, tmp_path: Path) -> None:
    stored = json.loads((folder / "tokenizer.json").read_text())
    stored["truncation"] = {
        "direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0
    }  # fmt: skip
    stored["padding"] = {
        "strategy": {"Fixed": 4096}, "direction": "Right", "pad_to_multiple_of": None,
        "pad_id": 0, "pad_type_id": 0, "pad_token": "<|endoftext|>",
    }  # fmt: skip
    found = Tokenizer.load(changed(folder, tmp_path, tokenizer=stored)).prompt(TEXT)
    np.testing.assert_array_equal(found, Tokenizer.load(folder).prompt(TEXT))
