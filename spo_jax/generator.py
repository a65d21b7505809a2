"""The base classes of generators, which write programs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from spo_jax.errors import InputError
from spo_jax.program import Completion, Prompt


class Generator(ABC):
    """Writes programs: a language model, the grammar, or a class of the user's.

    Only `generate` is required. `usage` of an answer is what it cost.

    Attributes:
        writes_prose: Whether it understands any request and answers with prose where asked. One
            that does not is asked for programs by the forms of SPO's prompts alone.
        reads_prompts: Whether it reads the text of a prompt. For one that does not a problem needs
            no contract.
        on_answer: For a display; see `answered`.
        on_tokens: Likewise; see `heard`.
    """

    writes_prose: bool = False
    reads_prompts: bool = True
    on_answer: Callable[[Completion], None] | None = None
    on_tokens: Callable[[int], None] | None = None

    @abstractmethod
    def generate(
        self, prompts: Sequence[Prompt], n: int, seed: int
    ) -> list[tuple[Completion, ...]]:
        """Answer prompts; the same for the same seed.

        Args:
            prompts: What to answer.
            n: Answers to each prompt.
            seed: Of the random stream.

        Returns:
            [n] answers to each prompt, in the order of the prompts.
        """

    def stream(
        self, prompts: Sequence[Prompt], n: int, seed: int
    ) -> Iterator[Mapping[int, tuple[Completion, ...]]]:
        """The answers of `generate` in parts.

        The first answers are evaluated while later ones are written. The default is one part with
        everything.

        Args:
            prompts: What to answer.
            n: Answers to each prompt.
            seed: Of the random stream.

        Yields:
            {index of a prompt: its answers}. An empty part lets a run that is to stop do so while
            the next one is awaited.

        Raises:
            InputError: `generate` returned no sequence.
        """
        answers = self.generate(prompts, n, seed)
        if not isinstance(answers, Sequence):
            raise InputError(
                f"the generator returned {answers!r:.80}; it must return a list that holds, for "
                "each prompt in order, a tuple of spo_jax.program.Completion"
            )
        yield dict(enumerate(answers))

    def answered(self, completion: Completion) -> None:
        """Tell who watches of an answer as it comes, from any thread.

        Calling it is up to a generator whose answers take their time. It changes nothing in a run.

        Args:
            completion: The answer.
        """
        if self.on_answer is not None:
            self.on_answer(completion)

    def heard(self, tokens: int) -> None:
        """Tell who watches of tokens of answers that are being written, as `answered` does.

        Args:
            tokens: About how many.
        """
        if self.on_tokens is not None:
            self.on_tokens(tokens)

    def fits(self, text: str) -> bool:
        """Whether a prompt is short enough; one that is not shows less of its parents."""
        return True

    def takes(self, prompt: Prompt) -> bool:
        """Whether a prompt is short enough with all of its messages.

        One that mends and is not is not sent.
        """
        return self.fits(prompt.whole)

    def open(self, folder: Path, remark: Callable[[str], None]) -> None:
        """Called once before the first of a run's rounds.

        Args:
            folder: The run's, for what a generator keeps there.
            remark: Shows a person a line.
        """
        return None

    def greeting(self) -> str:
        """A line for a person before the first round, on what it writes with; "" for none."""
        return ""

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
        """As `Generator.generate`, collected from `stream`."""
        found: dict[int, tuple[Completion, ...]] = {}
        for part in self.stream(prompts, n, seed):
            found |= part
        return [found[place] for place in range(len(prompts))]
