"""What the small model that ships is trained on: its tokenizer, and batches of its corpus.

Pieces of the tokenizer are whole lines, and each line of our prompt templates is one token. The
corpus is drawn on the way (`corpus.py`); a batch follows from the seed and its number alone.
"""

import json
import queue
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import corpus
from spo_jax.program import Program
from spo_jax.program.grammar.base import FORMS
from spo_jax.rl.tokens import Tokenizer
from spo_jax.search.writing.prompts import SHOW_DESTROY, built_in, templates_of

VOCABULARY = 4096
LENGTH = 4096  # tokens of the longest text
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
# A piece is a line with the indentation of the next one.
LINE = r"[^\n]*\n+ *|[^\n]+"
TEMPLATE = """\
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"
)  # fmt: skip
WIDTHS = (192, 256, 320, 384, 448, 512, 640, 896, 1280)  # tokens of a batch's rows
WINDOW = 768  # examples that are sorted into batches together
PARENTS = 0.5  # weight of a token of a parent, against one of the answer


# --- the tokenizer --------------------------------------------------------------------------------


def train_tokenizer(folder: Path, seed: int, answers: int) -> None:
    """tokenizer.json, its config, the chat template and the generation config in `folder`."""
    from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers, trainers
    from tokenizers import Tokenizer as Fast

    lines = template_lines()
    tokenizer = Fast(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(LINE), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(lines) - len(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=240,
        show_progress=False,
    )
    tokenizer.train_from_iterator(_texts(seed, answers), trainer)
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.add_tokens([AddedToken(line, normalized=False) for line in lines])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "model_max_length": LENGTH,
        "clean_up_tokenization_spaces": False,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")
    ends = [tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>")]
    generation = {"eos_token_id": ends, "do_sample": True, "temperature": 0.8, "top_p": 0.95}
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")


def _texts(seed: int, count: int) -> Iterator[str]:
    for number in range(count):
        example = corpus.draw(seed, number)
        yield example.answer
        if not example.near:
            yield from (parent.source for parent in example.prompt.parents)


def template_lines() -> list[str]:
    """The long lines that our templates give every prompt, whatever programs it shows."""
    marks = [f"@{letter}@" for letter in "abcdef"]

    def program(role: Any, i: int) -> Program:
        return Program.from_source(role, marks[i], marks[i + 1])

    found: dict[str, None] = {}
    for problem in corpus.PROBLEMS:
        for role, form, kit, state, shown in product(
            corpus.ROLES, FORMS, (False, True), (True, False), SHOW_DESTROY
        ):
            parents = [program(role, 2 * i) for i in range(built_in().form(form).parents[0])]
            destroy = program("destroy", 4) if role == "repair" else None
            prompt = templates_of(problem, kit).render(
                problem, role, form, parents, destroy, state=state, show_destroy=shown
            )
            lines = re.findall(r"[^\n]+\n+", prompt.text)
            found |= {
                line: None
                for line in lines
                if not line.startswith("```") and not any(m in line for m in marks)
            }
    return list(found)


# --- batches --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """tokens [B, T] int32, mask [B, T] bool, weights [B, T] float32 of each token's own loss."""

    tokens: np.ndarray
    mask: np.ndarray
    weights: np.ndarray


class Data:
    """Batches by their number: windows of examples, each sorted into rows of similar length."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        seed: int,
        tokens: int,
        novice: bool = False,
        widths: Sequence[int] | None = None,
    ) -> None:
        self._tokenizer, self._seed, self._tokens = tokenizer, seed, tokens
        self._novice, self._widths = novice, tuple(widths or WIDTHS)
        self._first_line = min(tokenizer.encode(line)[0] for line in template_lines())

    def batches(self, window: int) -> list[Rows]:
        rng = np.random.default_rng([self._seed, window])
        rows = [self._row(window * WINDOW + i) for i in range(WINDOW)]
        out = []
        for low, width in zip((0, *self._widths), self._widths, strict=False):
            fitting = [row for row in rows if low < len(row[0]) <= width]
            size = self._tokens // width
            out += [
                _padded(fitting[start : start + size], size, width)
                for start in range(0, len(fitting), size)
            ]
        return [out[i] for i in rng.permutation(len(out))]

    def _row(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        example = corpus.draw(self._seed, number, self._novice)
        prompt = self._tokenizer.prompt(example.prompt.text)
        answer = self._tokenizer.encode(example.answer)
        ends = np.array([self._tokenizer.stops[0]], np.int32)
        weights = np.ones(len(prompt) + len(answer) + 1, np.float32)
        weights[: len(prompt)] = np.where(prompt >= self._first_line, 0.0, PARENTS)
        return np.concatenate([prompt, answer, ends]), weights


def _padded(rows: list[tuple[np.ndarray, np.ndarray]], size: int, width: int) -> Rows:
    tokens = np.zeros((size, width), np.int32)
    weights = np.zeros((size, width), np.float32)
    mask = np.zeros((size, width), bool)
    for i, (row, weight) in enumerate(rows):
        tokens[i, : len(row)], weights[i, : len(row)], mask[i, : len(row)] = row, weight, True
    return Rows(tokens, mask, weights)


def stream(data: Data, window: int, skip: int) -> Iterator[tuple[int, int, Rows]]:
    """(window, place in it, batch) from there on, drawn a little ahead by a thread."""
    ahead: queue.Queue[tuple[int, int, Rows]] = queue.Queue(64)

    def work() -> None:
        number, first = window, skip
        while True:
            for place, batch in enumerate(data.batches(number)):
                if place >= first:
                    ahead.put((number, place, batch))
            number, first = number + 1, 0

    threading.Thread(target=work, daemon=True).start()
    while True:
        yield ahead.get()
