"""How other methods speak with a writer of prose: templates, names of functions, answers.

A prompt form belongs to a language (`#form ... language=eoh`). Its prompts have the contract and
the rules of SPO's, since programs are the same everywhere; the request, how parents are shown, the
format of the answer and the system message are the language's own, in files named after it:
eoh-parent.txt, eoh-output.txt, reevo-system.txt. SPO's language has no name.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from spo_jax.program import AnswerFormat


@dataclass(frozen=True)
class Language:
    """first: the form without parents. answer: how a program in an answer is read.

    versions: the number of the function that is asked for, as destroy_v2, while parents have the
    numbers before it; -1: as many as there are parents; None: functions have no numbers. header:
    whether the head of that function stands behind the parents, to be completed. paired: whether a
    prompt for a repair shows the destroy that it answers.
    """

    name: str
    first: str
    answer: AnswerFormat
    versions: int | None = None
    header: bool = False
    paired: bool = True

    def file(self, what: str) -> str:
        """The name of its file for `what`, as output.txt."""
        return f"{self.name}-{what}" if self.name else what

    def asked(self, parents: int) -> int | None:
        """The number of the function that a prompt with so many parents asks for, if it has one."""
        return parents if self.versions == -1 else self.versions


_ALL = (
    Language("", "initialization", "labels"),
    Language("eoh", "eoh-i1", "braces"),
    Language("funsearch", "funsearch-first", "code", versions=-1, header=True),
    Language("reevo", "reevo-first", "code", versions=2),
    Language("glns", "glns-first", "code", paired=False),
    Language("hsevo", "hsevo-first", "code", versions=2),
    Language("mcts", "mcts-i1", "braces"),
)
LANGUAGES: Mapping[str, Language] = {each.name: each for each in _ALL}
