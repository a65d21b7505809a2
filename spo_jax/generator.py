"""The base classes of generators, which write programs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from spo_jax.errors import InputError
from spo_jax.program import Completion, Prompt


class Generator(ABC):
    """Writes programs: a language model, the grammar, or a class of the user's.

    Only `generate` is required. `usage` of an answer is what it cost.
    writes_prose: whether it understands any request and answers with prose where asked. One that
        does not is asked for programs by the forms of SPO's prompts alone.
    """

    writes_prose: bool = False
    on_answer: Callable[[Completion], None] | None = None  # for a display; see `answered`

    @abstractmethod
    def generate(
        self, prompts: Sequence[Prompt], n: int, seed: int
    ) -> list[tuple[Completion, ...]]:
        """`n` answers to each prompt, in the order of the prompts; the same for the same seed."""

    def stream(
        self, prompts: Sequence[Prompt], n: int, seed: int
    ) -> Iterator[Mapping[int, tuple[Completion, ...]]]:
        """The answers of `generate` in parts, each {index of a prompt: its answers}.

        The first answers are evaluated while later ones are written. An empty part lets a run that
        is to stop do so while the next one is awaited. The default is one part with everything.
        """
        answers = self.generate(prompts, n, seed)
        if not isinstance(answers, Sequence):
            raise InputError(
                f"the generator returned {answers!r:.80}; it must return a list that holds, for "
                "each prompt in order, a tuple of spo_jax.program.Completion"
            )
        yield dict(enumerate(answers))

    def answered(self, completion: Completion) -> None:
        """Tell who watches of an answer as it comes, from any thread; calling it is up to a
        generator whose answers take their time. It changes nothing in a run.
        """
        if self.on_answer is not None:
            self.on_answer(completion)

    def fits(self, text: str) -> bool:
        """Whether a prompt is short enough; one that is not shows less of its parents."""
        return True

    def takes(self, prompt: Prompt) -> bool:
        """Whether a prompt is short enough with all of its messages; one that mends and is not is
        not sent.
        """
        return self.fits(prompt.whole)

    def open(self, folder: Path, remark: Callable[[str], None]) -> None:
        """Called once before the first of a run's rounds.

        folder: the run's, for what a generator keeps there. remark: shows a person a line.
        """
        return None

    def close(self) -> None:
        """Called when the run ends, however it ends."""
        return None


class Streaming(Generator):
    """A generator that answers in parts: `generate` collects what `stream` yields."""

    @abstractmethod
    def stream(
        self, prompts: Sequence[Prompt], n: int, seed: int
    ) -> Iterator[dict[int, tuple[Completion, ...]]]:
        """As `Generator.stream`."""

    def generate(
        self, prompts: Sequence[Prompt], n: int, seed: int
    ) -> list[tuple[Completion, ...]]:
        found: dict[int, tuple[Completion, ...]] = {}
        for part in self.stream(prompts, n, seed):
            found |= part
        return [found[place] for place in range(len(prompts))]
