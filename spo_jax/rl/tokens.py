"""Text to tokens and back, with the tokenizer and chat template of a Hugging Face folder."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spo_jax.errors import InputError
from spo_jax.program import Turn, conversation
from spo_jax.rl.tensor_files import read_json


class Tokenizer:
    """A model folder's tokenizer.json, chat template and stop tokens.

    stops: tokens that end an answer. size: of the vocabulary, with added tokens.
    """

    def __init__(self, tokenizer: Any, template: Any, stops: Sequence[int]) -> None:
        self._tokenizer, self._template = tokenizer, template
        self.stops = tuple(stops)
        self.size: int = tokenizer.get_vocab_size()

    @classmethod
    def load(cls, folder: str | Path) -> "Tokenizer":
        """Raises InputError for a folder without a tokenizer, chat template or stop token."""
        from tokenizers import Tokenizer as Fast

        folder = Path(folder)
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise InputError(f"{folder} has no tokenizer.json; name a Hugging Face model folder")
        try:
            tokenizer = Fast.from_file(str(path))
        except Exception as error:  # the library has no specific exception
            raise InputError(f"cannot read {path}: {error}") from None
        tokenizer.no_truncation()  # the file may contain settings of its training
        tokenizer.no_padding()
        settings = _json(folder / "tokenizer_config.json")
        template = _template(folder, settings)
        found = cls(tokenizer, template, _stops(folder, settings, tokenizer))
        found.prompt("")  # report an unusable template before a run begins
        return found

    def prompt(self, text: str, system: str = "", turns: Sequence[Turn] = ()) -> np.ndarray:
        """[T] int32: `text` as a user's message, ready for an answer without thinking.

        system: a system message before it, if there is one. turns: what followed it.

        Raises InputError if the template fails.
        """
        from jinja2 import TemplateError

        try:
            whole = self._template.render(
                messages=conversation(text, system, turns),
                add_generation_prompt=True,
                enable_thinking=False,
            )
        except TemplateError as error:
            raise InputError(f"the model's chat template cannot make a prompt: {error}") from None
        return self.encode(whole)

    def encode(self, text: str) -> np.ndarray:
        """[T] int32; special tokens in the text count as such, none is added."""
        return np.array(self._tokenizer.encode(text, add_special_tokens=False).ids, np.int32)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        """The text of tokens, without special tokens."""
        return self._tokenizer.decode([int(token) for token in tokens], skip_special_tokens=True)


def _json(path: Path) -> dict[str, Any]:
    """A JSON object of the folder; empty if the file is missing."""
    return read_json(path) if path.is_file() else {}


def _template(folder: Path, settings: dict[str, Any]) -> Any:
    """The folder's chat template, compiled as in transformers."""
    from jinja2 import TemplateError
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(message: str) -> None:
        raise TemplateError(message)

    def as_json(value: Any, ensure_ascii: bool = False, **layout: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **layout)

    class Generation(Extension):
        """{% generation %}: the part that a trainer learns from, rendered as it stands."""

        tags = {"generation"}  # noqa: RUF012  (jinja2 declares it so)

        def parse(self, parser: Any) -> Any:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    path = folder / "chat_template.jinja"
    source = path.read_text("utf-8") if path.is_file() else settings.get("chat_template")
    if not isinstance(source, str):
        raise InputError(f"{folder} has no chat template: use an instruction-tuned model")
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, Generation]
    )
    environment.filters["tojson"] = as_json
    environment.globals["raise_exception"] = refuse
    names = ("bos_token", "eos_token", "pad_token", "unk_token")
    special = {name: _content(settings[name]) for name in names if settings.get(name)}
    try:
        return environment.from_string(source, globals=special)
    except TemplateError as error:
        raise InputError(f"the chat template of {folder} cannot be read: {error}") from None


def _stops(folder: Path, settings: dict[str, Any], tokenizer: Any) -> tuple[int, ...]:
    """The end-of-sequence tokens of the generation config and the tokenizer."""
    listed = _json(folder / "generation_config.json").get("eos_token_id")
    stops = listed if isinstance(listed, list) else [] if listed is None else [listed]
    if settings.get("eos_token"):
        stops = [*stops, tokenizer.token_to_id(_content(settings["eos_token"]))]
    known = [int(stop) for stop in stops if stop is not None]
    if not known:
        raise InputError(f"{folder} names no eos_token, so an answer would never end")
    return tuple(dict.fromkeys(known))


def _content(token: Any) -> str:
    """A special token as text; some folders store it with properties."""
    return str(token["content"]) if isinstance(token, dict) else str(token)
