"""The prompts of HSEvo that are answered in prose, and how their answers are read."""

import re
from collections.abc import Mapping, Sequence
from string import Template

from spo_jax.program import Pair, Program, Prompt
from spo_jax.program.constants import Constant
from spo_jax.search.writing.prompts import Templates

# A label stands in one line, and no part of a pattern takes what the next could: a text of blanks
# or digits is read once, not from each of its places again.
_EXPERIENCE = re.compile(r"(?im)^[ \t*#_-]*experience[ \t*_]*:[\s*_]*")
_ANALYSIS = re.compile(r"(?im)^[ \t*#_-]*analysis[ \t*_]*:[\s*_]*")
_FARTHEST = 1e9
_NUMBER = r"([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)"
_RANGE = re.compile(
    rf"(?m)^[ \t*`#(-]*(\d+)[ \t)`*]*[:.=][ \t]*(?:[\[(][ \t]*)?{_NUMBER}[ \t]*(?:,|to|\.\.)[ \t]*"
    rf"{_NUMBER}"
)


def flash_prompt(
    templates: Templates, problem: str, ranked: Sequence[Pair], words: int, sources: bool = True
) -> Prompt:
    """Asks for an analysis of pairs, the best first, and for what it teaches in under `words`.

    sources: whether it shows their code; else their strategies.
    """
    designs = "\n\n".join(
        f"Design {n}\n"
        + "\n".join(_half(templates, each, sources) for each in (pair.destroy, pair.repair))
        for n, pair in enumerate(ranked, 1)
    )
    return _prompt(templates, problem, "flash-reflection", designs=designs, words=str(words))


def comprehensive_prompt(
    templates: Templates,
    problem: str,
    experience: str,
    good: Sequence[str],
    bad: Sequence[str],
    words: int,
) -> Prompt:
    """Asks for advice of fewer than `words` words, from the experience of this generation, that of
    generations that found a new best (`good`), and that of the others (`bad`).
    """
    return _prompt(
        templates, problem, "comprehensive-reflection", words=str(words),
        experience="\n".join((experience, *good)), bad="\n".join(bad) or "(none)",
    )  # fmt: skip


def ranges_prompt(
    templates: Templates, problem: str, program: Program, constants: Sequence[Constant]
) -> Prompt:
    """Asks which of a program's numbers are parameters, and for the range of each."""
    listed = "\n".join(
        f"{n}: {each.value!r} in line {each.line}" for n, each in enumerate(constants, 1)
    )
    return _prompt(
        templates, problem, "hsevo-ranges", "hsevo-system-ranges.txt",
        role=templates.game.named(program.role), source=program.source.strip("\n"), numbers=listed,
    )  # fmt: skip


def _prompt(
    templates: Templates,
    problem: str,
    form: str,
    system: str = "hsevo-system-reflector.txt",
    **values: str,
) -> Prompt:
    def fill(file: str, **values: str) -> str:
        return Template(templates.texts[file]).substitute(values).strip("\n")

    text = fill(f"{form}.txt", problem=problem.upper(), **values)
    return Prompt(problem, "destroy", form, text + "\n", system=fill(system))


def _half(templates: Templates, program: Program, source: bool) -> str:
    if source:
        return f"```python\n{program.source.strip(chr(10))}\n```"
    return f"{templates.game.named(program.role)}: {program.strategy or '(none given)'}"


def read_flash(text: str) -> tuple[str, str]:
    """(analysis, experience) of an answer; all of it is experience where it names none."""
    found = _EXPERIENCE.search(text)
    if found is None:
        return "", text
    before = _ANALYSIS.search(text, 0, found.start())
    return text[before.end() if before else 0 : found.start()], text[found.end() :]


def read_ranges(text: str, constants: Sequence[Constant]) -> Mapping[Constant, tuple[float, float]]:
    """The ranges in an answer by constant, in their order; what is no range is passed over."""
    found: dict[int, tuple[float, float]] = {}
    for number, low, high in _RANGE.findall(text):
        bounds = float(low), float(high)
        known = len(number) < 6 and 1 <= int(number) <= len(constants)
        if known and -_FARTHEST < bounds[0] < bounds[1] < _FARTHEST:
            found.setdefault(int(number) - 1, bounds)
    return {each: found[n] for n, each in enumerate(constants) if n in found}
