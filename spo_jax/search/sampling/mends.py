"""What becomes of answers that go back to the model: `search.sampling.mending` makes these."""

from dataclasses import dataclass
from functools import lru_cache

from spo_jax.program import Completion, Program, Prompt
from spo_jax.program.equivalence import canonical

AGAIN = "answer {}: "  # how the reasons of further answers begin
COPY = "copy"  # of an answer whose program is a parent's, but for names, comments and layout


@dataclass(frozen=True, eq=False)
class Attempt:
    """A further answer, after what was wrong with the one before.

    prompt: its last turn has the answer before and what was wrong. status: what is wrong with this
    one: "unparsable", the label of a Status, or "copy"; "" if nothing is. program: None for an
    answer without one.
    """

    prompt: Prompt
    completion: Completion
    program: Program | None = None
    status: str = ""


@dataclass(frozen=True, eq=False)
class Mend:
    """What became of an answer that was nearly right.

    status: what was wrong with it, as an attempt's. attempts: none where the conversation did not
    fit into the context.
    """

    status: str
    attempts: tuple[Attempt, ...] = ()

    @property
    def program(self) -> Program | None:
        """The program that took the original's place."""
        last = self.attempts[-1] if self.attempts else None
        return last.program if last and not last.status else None


def is_copy(program: Program, prompt: Prompt) -> bool:
    """Whether a program is a parent that its prompt shows, but for names, comments and layout."""
    entry = prompt.function or program.role
    own = _canonical(program, entry)
    return own is not None and any(own == _canonical(each, entry) for each in prompt.parents)


@lru_cache(1024)
def _canonical(program: Program, entry: str) -> tuple[object, ...] | None:
    return canonical(program.source, entry)
