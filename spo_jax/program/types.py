"""The nouns: Program, Pair, Prompt, Completion, Group; digests; reading source without running it.

Nothing here runs a program or checks its safety; the sandbox's gate does
(`spo_jax.envs.run.sandbox.gate.policy`), in a worker.
"""

import ast
import hashlib
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal, get_args

import numpy as np

from spo_jax.errors import InputError, Rejection
from spo_jax.program.syntax import parse_tree

# The keys of the first and the second mover; `spo_jax.program.game` has what games call them.
Role = Literal["destroy", "repair"]
ROLES: tuple[Role, ...] = get_args(Role)
# Labels: STRATEGY and CODE. Braces: a sentence in braces, then code. Code: that alone. Joint: the
# code of both programs.
AnswerFormat = Literal["labels", "braces", "code", "joint"]

_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# Characters. The longest completion of the paper is 2,048 tokens; the five repairs that G-LNS
# published for the TSP, as one program, have 33,571.
MAX_SOURCE = 65_536


@dataclass(frozen=True)
class Program:
    """One role's source text: a function and its helpers (the contract is in docs/programs.md).

    Attributes:
        role: "destroy" or "repair".
        source: Python text.
        strategy: The sentence that names the decision the code implements.
        parents: Digests of the programs whose text was in the prompt.
        form: The prompt form it answers ("initialization", "mechanism-replacement", ...).
        condition: For a repair, the digest of the destroy strategy it was generated for (A.5).
        derivation: A generator's own record of how it built the program, opaque to the rest.
    """

    role: Role
    source: str
    strategy: str = ""
    parents: tuple[str, ...] = ()
    form: str = ""
    condition: str = ""
    derivation: str = ""

    @classmethod
    def from_source(
        cls,
        role: Role,
        source: str | bytes,
        strategy: str | None = None,
        *,
        parents: tuple[str, ...] = (),
        form: str = "",
        condition: str = "",
        derivation: str = "",
        function: str = "",
    ) -> "Program":
        """Make a program of its source. The sandbox checks the contract later.

        Args:
            role: "destroy" or "repair".
            source: Python text; bytes are UTF-8.
            strategy: By default the docstring of the role's function.
            parents: As the attribute.
            form: Likewise.
            condition: Likewise.
            derivation: Likewise.
            function: The name of the role's function, in a game where that is not the role's.

        Returns:
            The program, with line feeds alone at the ends of lines, and the strategy on one line.

        Raises:
            InputError: There is no such role.
            Rejection: The text cannot be a program: undecodable, empty or too long.
        """
        if role not in ROLES:
            raise InputError(f"unknown role {role!r}: a role is 'destroy' or 'repair'")
        text = decode(source)
        if strategy is None:
            strategy = _docstring(text, function or role)
        return cls(role, text, one_line(strategy), parents, form, condition, derivation)

    @cached_property
    def digest(self) -> str:
        """Hex digest of role and whitespace-normalised source (Appendix A.5)."""
        return _hash(self.role, normalise(self.source))

    @cached_property
    def strategy_digest(self) -> str:
        """Hex digest of the strategy sentence: the context of conditional repairs."""
        return _hash(" ".join(self.strategy.split()))


@dataclass(frozen=True)
class Pair:
    """A destroy program and the repair program that answers it.

    Attributes:
        destroy: The leader's program.
        repair: The follower's program.

    Raises:
        InputError: A program has the other's role.
    """

    destroy: Program
    repair: Program

    def __post_init__(self) -> None:
        if (self.destroy.role, self.repair.role) != ROLES:
            raise InputError("a pair is one destroy program and one repair program, in that order")

    @cached_property
    def digest(self) -> str:
        """Hex digest of those of both programs."""
        return _hash(self.destroy.digest, self.repair.digest)


Turn = tuple[str, str]  # an answer of the model, and the user's next message


def conversation(text: str, system: str = "", turns: Sequence[Turn] = ()) -> list[dict[str, str]]:
    """The messages of a chat, as chat completions have them.

    Args:
        text: The user's first message.
        system: The system's message, which comes first, if there is one.
        turns: What followed: each an answer, and the user's next message.

    Returns:
        Each message's "role" and "content", in order.
    """
    found = [("system", system)] if system else []
    found.append(("user", text))
    for answer, message in turns:
        found += [("assistant", answer), ("user", message)]
    return [{"role": role, "content": content} for role, content in found]


@dataclass(frozen=True)
class Prompt:
    """One generation context (the paper's gamma): the request and its text.

    Attributes:
        problem: The problem's name.
        role: Of the program that is asked for.
        form: "initialization" or one of the five evolutionary forms of Table 3.
        text: The user's first message.
        parents: Same-role programs shown as context; none for "initialization".
        destroy: For a repair, the paired destroy program it answers; None for a destroy.
        state: Whether the interface offers steps_since_improvement (the paper's second ablation).
        shortened: What was omitted to fit the context: "sources" of the parents, the "parents", or
            "all", also the destroy's source; "" if nothing was.
        kit: Whether programs may import the problem's kit.
        system: The system message, if there is one.
        answer: How a program in the answer is read; see `parse_answer`.
        warmer: What is added to the temperature of sampling.
        turns: What followed `text` in the conversation: an answer, and the message that asked for
            another one, for each turn. A generator that cannot send them may answer `text` alone.
        function: The name of the function that is asked for, where it is not the role's.
    """

    problem: str
    role: Role
    form: str
    text: str
    parents: tuple[Program, ...] = ()
    destroy: Program | None = None
    state: bool = True
    shortened: str = ""
    kit: bool = False
    system: str = ""
    answer: AnswerFormat = "labels"
    warmer: float = 0.0
    turns: tuple[Turn, ...] = ()
    function: str = ""

    @property
    def messages(self) -> list[dict[str, str]]:
        """The conversation as chat completions have it: each message's "role" and "content"."""
        return conversation(self.text, self.system, self.turns)

    @property
    def whole(self) -> str:
        """All messages as one text, each under its name if there are several."""
        if not (self.system or self.turns):
            return self.text
        return "\n\n".join(f"[{each['role']}]\n{each['content']}" for each in self.messages)


@dataclass(frozen=True)
class Usage:
    """An endpoint's report on one answer.

    Attributes:
        prompt_tokens: The endpoint's count; None without one.
        completion_tokens: Likewise.
        cut: The answer reached the maximum length.
        lost: The request failed, so there is no answer.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cut: bool = False
    lost: bool = False


@dataclass(frozen=True, eq=False)
class Completion:
    """One sampled answer.

    Attributes:
        text: The answer.
        tokens: [T] int32, of the sampling policy; empty unless a local language model sampled them.
        logprobs: [T] float32, those of `tokens`; likewise.
        derivation: As of the `Program`.
        usage: Only for an endpoint's answer.
        finished: Whether it ended before the maximum length; None if unknown.
    """

    text: str
    tokens: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    logprobs: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    derivation: str = ""
    usage: Usage | None = None
    finished: bool | None = None


@dataclass(frozen=True, eq=False)
class Group:
    """The samples of one generation context and their credits.

    Attributes:
        prompt: The context.
        completions: [B] the samples.
        credits: [B] float64, one per completion, NaN without one.
        failed: [B] bool, completions without a credit by their own fault; None if unknown.
        prompts: What each completion answered, where they answered different ones, as mended
            answers do; `prompt` is what these have in common then.
        by_pair: [B, K] float64, the credits of each completion's pairs, NaN for none, where every
            pair is a sample of the group; `credits` are their means then. None: completions are the
            samples.
        others: [M] float64, finite credits that advantages are relative to besides: those of
            samples of the same group that are no completions of this prompt.
    """

    prompt: Prompt
    completions: tuple[Completion, ...]
    credits: np.ndarray
    failed: np.ndarray | None = None
    prompts: tuple[Prompt, ...] = ()
    by_pair: np.ndarray | None = None
    others: np.ndarray = field(default_factory=lambda: np.zeros(0))


def _hash(*parts: str) -> str:
    text = "\0".join(parts).encode("utf-8", "surrogatepass")  # accepts any text
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def decode(source: str | bytes) -> str:
    if isinstance(source, bytes):
        try:
            source = source.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Rejection(f"not UTF-8 text (byte {error.start})") from None
    try:
        source.encode("utf-8")
    except UnicodeEncodeError:
        raise Rejection("contains unpaired surrogates") from None
    if "\0" in source:
        raise Rejection("contains a null character")
    if not source.strip():
        raise Rejection("empty source")
    if len(source) > MAX_SOURCE:
        raise Rejection(f"source of {len(source)} characters (at most {MAX_SOURCE})")
    return source.replace("\r\n", "\n").replace("\r", "\n")


def one_line(text: str) -> str:
    """Put a text on one line.

    Returns:
        `text` with each run of white space as one space, and unpaired surrogates and control
        characters as escapes.
    """
    return _UNFIT.sub(lambda found: f"\\u{ord(found[0]):04x}", " ".join(text.split()))


@lru_cache(maxsize=1024)
def normalise(source: str) -> str:
    """Source with normalised white space: equal for programs that differ only in layout.

    Tokens are joined by single spaces and blocks by markers, so that indentation keeps its meaning
    but not its width. A text that does not tokenise is compared line by line.
    """
    marks = {tokenize.INDENT: "<indent>", tokenize.DEDENT: "<dedent>", tokenize.NEWLINE: "\n"}
    skip = {tokenize.NL, tokenize.ENDMARKER}
    try:
        return " ".join(marks.get(kind, text) for kind, text in _tokens(source) if kind not in skip)
    except (tokenize.TokenError, SyntaxError, UnicodeError, SystemError):  # the last in 3.13
        return "\n".join(line.rstrip() for line in source.splitlines() if line.strip())


def _tokens(source: str) -> Iterator[tuple[int, str]]:
    """(type, text) of each token, an f-string as one: the same on every Python.

    Since 3.12 f-strings come in parts, of which "{{ a }}" and "{ a }" have the same texts.
    """
    lines = source.split("\n")
    begin, depth = (0, 0), 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        name = tokenize.tok_name[token.type]
        if name == "FSTRING_START":
            begin, depth = (begin if depth else token.start), depth + 1
        elif name == "FSTRING_END":
            depth -= 1
            if not depth:
                (first, left), (last, right) = begin, token.end
                parts = [*lines[first - 1 : last - 1], lines[last - 1][:right]]
                yield tokenize.STRING, "\n".join(parts)[left:]
        elif not depth:
            yield token.type, token.string


def entry_function(tree: ast.Module, name: str) -> ast.FunctionDef:
    """Find the function that the harness calls: the one of its role's name, else the only one.

    Raises:
        Rejection: There is no such function, or several have the name.
    """
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    named = [node for node in functions if node.name == name]
    if len(named) > 1:
        raise Rejection(f"{name} is defined {len(named)} times")
    if named:
        return named[0]
    if len(functions) == 1:
        return functions[0]
    found = ", ".join(node.name for node in functions[:5]) or "none"
    raise Rejection(f"no function named {name} (found: {found})")


def _docstring(source: str, name: str) -> str:
    try:
        return ast.get_docstring(entry_function(parse_tree(source), name)) or ""
    except Rejection:
        return ""
