"""A generator without a language model: samples and edits of the grammar's derivations.

It answers the same prompts as a model does, in the same format, so that discovery does not know
the difference. A parent is edited through its derivation. One that a person or a model wrote has
no derivation, so the grammar samples a new program.
"""

import hashlib
import json
import random
import re
from collections.abc import Sequence
from dataclasses import replace

from spo_jax.envs.problem import Problem
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.states import SHOWN, SINCE, STAGNATION, parts_shown
from spo_jax.errors import InputError
from spo_jax.generator import Generator
from spo_jax.program import ROLES, Completion, Program, Prompt
from spo_jax.program.grammar.base import Choice, Choices, Grammar
from spo_jax.seeding import python_rng


class GrammarGenerator(Generator):
    """Answers prompts by the grammar of `problem`, by default of the one that a prompt names."""

    reads_prompts = False

    def __init__(self, problem: Problem | None = None, state: str = STAGNATION):
        """Raises InputError for a problem without a grammar, before any work begins.

        state: what programs are shown, a name of STATES; of the parts of another state than the
        paper's they read SINCE alone.
        """
        self._problem, self._state = problem, state
        if problem is None:
            return
        for role in ROLES:
            found: object = problem.grammar(role)
            if not isinstance(found, Grammar) or found.role != role:
                raise InputError(
                    f"problem {problem.name}: grammar({role!r}) returned {found!r:.60}; it must "
                    "return a spo_jax.program.grammar.base.Grammar of that role"
                )

    def generate(
        self, prompts: Sequence[Prompt], n: int, seed: int
    ) -> list[tuple[Completion, ...]]:
        """`n` completions of each prompt, in the format that `program.parse_response` reads.

        Sample k of prompt p is drawn from a stream named by the seed, what the prompt asks, p and
        k, so it does not depend on the other prompts. Raises InputError for a problem without a
        grammar and for an unknown prompt form.
        """
        return [
            tuple(self._complete(prompt, python_rng(seed, _digest(prompt), p, k)) for k in range(n))
            for p, prompt in enumerate(prompts)
        ]

    def _complete(self, prompt: Prompt, rng: random.Random) -> Completion:
        problem = self._problem or get_problem(prompt.problem)
        grammar = problem.grammar(prompt.role, prompt.kit)
        read = [read_derivation(parent, grammar) for parent in prompt.parents]
        parents = [choices for choices in read if choices is not None]
        written = answer(grammar, grammar.edit(prompt.form, parents, rng, prompt.state))
        parts = parts_shown(self._state)
        return (
            replace(written, text=_unpacked(written.text, prompt, [*parts])) if parts else written
        )


def _unpacked(text: str, prompt: Prompt, parts: Sequence[str]) -> str:
    """An answer whose function takes SINCE out of a state of several parts, or of one."""
    value = f"{SHOWN}[{parts.index(SINCE)}]" if len(parts) > 1 else SHOWN
    head = re.compile(
        rf"(^def {prompt.function or prompt.role}\([^)]*){SINCE}([^)]*\):\n)", re.MULTILINE
    )
    return head.sub(rf"\g<1>{SHOWN}\g<2>    {SINCE} = {value}\n", text)


def derivation(choices: Choices) -> str:
    """A derivation as the text that a Program carries."""
    return json.dumps(choices)


def read_derivation(program: Program, grammar: Grammar) -> Choices | None:
    """The choices that a program was rendered from, or None unless it is `grammar`'s own."""
    try:
        choices = json.loads(program.derivation)
    except ValueError:
        return None
    if not isinstance(choices, dict) or not choices:
        return None
    names = {slot.name for slot in grammar.slots}
    own = {k: v for k, v in choices.items() if k in names and isinstance(v, Choice)}
    return own if program.role == grammar.role and own else None


def answer(grammar: Grammar, choices: Choices) -> Completion:
    """A derivation as a model's answer."""
    strategy, source = grammar.render(choices)
    text = f"STRATEGY: {strategy}\nCODE:\n```python\n{source}```"
    return Completion(text, derivation=derivation(choices))


def _digest(prompt: Prompt) -> str:
    """What a prompt asks, whatever the wording of its templates."""
    digest = hashlib.blake2b(digest_size=16)
    parents = [parent.digest for parent in prompt.parents]
    destroy = prompt.destroy.digest if prompt.destroy else ""
    kit = ["kit"] if prompt.kit else []
    what = (prompt.problem, prompt.role, prompt.form, str(prompt.state), *kit, destroy, *parents)
    for part in what:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()
