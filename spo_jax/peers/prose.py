"""Answers in prose that methods ask for beside programs: reflections, aligned thoughts.

No budget of programs counts them. The metric `reflections` has their number.
"""

from collections.abc import Sequence

from spo_jax.program import Prompt
from spo_jax.search.parts import Parts
from spo_jax.search.rounds import Answers
from spo_jax.search.sampling.sample import complete, written
from spo_jax.seeding import derive

LONGEST = 600  # characters of an answer that are kept


class Prose:
    """Asks a writer of prose in round k."""

    def __init__(self, parts: Parts, k: int):
        self._parts, self._k = parts, k
        self._answers: list[Answers] = []

    @property
    def able(self) -> bool:
        """Whether this run's writer reads prose."""
        return self._parts.generator.writes_prose

    @property
    def metrics(self) -> dict[str, float]:
        """How many answers there were, and their tokens."""
        counted = {"reflections": float(len(self._answers))} if self.able else {}
        return counted | written(self._answers, self._parts.config, "reflection")

    def ask(self, prompts: Sequence[Prompt], *stream: str) -> list[str]:
        """The answers as they came, without the thinking before them.

        stream: names the random stream within the round.
        """
        if not prompts:
            return []
        parts, look = self._parts, self._parts.observer
        look.stage(self._k, "reflection", len(prompts))
        seed = derive(parts.config.seed, "round", self._k, "reflections", *stream)
        with look.working("sampling"):
            completions = complete(parts.generator, prompts, 1, seed)
        self._answers += [
            Answers(prompt, group, (None,) * len(group))
            for prompt, group in zip(prompts, completions, strict=True)
        ]
        return [group[0].text.rpartition("</think>")[2] for group in completions]


def tidy(text: str) -> str:
    """An answer on one line, cut to what is kept."""
    return " ".join(text.split())[:LONGEST]
