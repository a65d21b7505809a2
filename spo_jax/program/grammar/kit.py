"""What the grammars of programs that use a kit share: how they remove, try, insert and polish.

Such programs are short, because the kit's functions (`lns`) do the inner loops. They are built like
the plain ones from whole lines with one set of variable names. Numbers that would multiply the
distinct calls stand in lines of their own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from string import Template
from types import MappingProxyType

from spo_jax.program.grammar.base import Choices, Slot, Weights, choice
from spo_jax.program.grammar.pieces import (
    amount,
    amount_slots,
    condition,
    indent,
    mechanisms,
    uses,
)

_WIDTH = 84  # longer calls are split in two lines
_RATES: Weights = {5: 1.0, 20: 1.0}


@dataclass(frozen=True)
class Words:
    """How a problem's programs call a solution and what leaves it.

    item: one of what leaves. given: the first arguments of an insertion. places: what regret
    compares.
    """

    solution: str
    partial: str
    removed: str
    item: str
    given: str
    places: str


# --- destroy --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Removal:
    """One mechanism of a destroy program.

    call: the expression of (partial solution, removed), with $all, $count and $NAME of a choice.
    before: lines before it. phrase: what it takes, with $around and $NAME. seeded: whether it
    starts from `center`.
    """

    call: str
    phrase: str
    before: tuple[str, ...] = ()
    seeded: bool = True


# What a novice removes: items one by one or a single stretch, by no more than chance and savings.
PLAIN_REMOVALS: Mapping[str, Weights] = {
    "first": {"random": 3.0, "segment": 1.0, "worst": 1.0},
    "power": {},
}


def string_slots(weights: Weights) -> tuple[Slot, ...]:
    """Slots for the length of strings."""
    return amount_slots("length", weights, when=uses("string"), plain="10:10", rates=_RATES)


def split_slots(sizes: Weights) -> tuple[Slot, ...]:
    """Slots for separate regions, each with its own center: their number, or their size.

    The slot "seed" comes before them: without a center there is but one region.
    """

    def splits(choices: Choices) -> Weights:
        whole: Weights = {"whole": 3.0}
        return {**whole, "sized": 0.7, "regions": 0.7} if "seed" in choices else whole

    return (
        choice("split", "option", splits, plain="whole"),
        *amount_slots(
            "regions",
            {"2:2": 1.0, "3:3": 1.0, "1:2": 1.5, "1:3": 2.0, "2:4": 1.0, "1:6": 0.7},
            when=lambda c: c["split"] == "regions",
            plain="2:2",
            rates=_RATES,
        ),
        choice("region_size", "control", sizes, when=lambda c: c["split"] == "sized"),
    )


def removal_lines(
    choices: Choices,
    known: Mapping[str, Removal],
    center: Callable[[Choices, str], tuple[list[str], str]],
    words: Words,
    values: Mapping[str, object] = MappingProxyType({}),
) -> tuple[list[str], str]:
    """(lines that remove `size` items from the current solution and return, phrase of what).

    known: the mechanisms. center: (lines that set `center` in a named solution, phrase) of a
    derivation. values: what stands for other $names of the mechanisms.
    """
    removals = [known[name] for name in mechanisms(choices)]
    whole = choices["split"] == "whole"
    everything, count = (
        (f"current_{words.solution}", "size") if whole else (words.solution, "count")
    )
    around = ""
    lines: list[str] = []
    if any(each.seeded for each in removals):
        lines, around = center(choices, everything)
    values = {**choices, "all": everything, "count": count, "around": around, **values}
    length, length_phrase = amount(choices, "length") if "length_range" in choices else ("", "")
    if length and not length.isdigit():
        lines = [*lines, f"length = {length}"]
        length = "length"
    target = "return " if whole else f"{words.solution}, removed = "
    takes = []
    for each in removals:
        source = _filled(each.call, {**values, "length": length})
        before = [_filled(line, values) for line in each.before]
        takes.append([*before, *_split(target + source)])
    phrases = [_filled(each.phrase, {**values, "length": length_phrase}) for each in removals]
    take, what = takes[0], phrases[0]
    if len(takes) == 2:
        test, when = condition(str(choices["mix"]))
        other = takes[1] if whole else ["else:", *indent(takes[1])]
        take = [f"if {test}:", *indent(takes[0]), *other]
        what = f"{phrases[0]}, or {when} {phrases[1]}"
    if whole:
        return [*lines, *take], what
    return _in_regions(choices, [*lines, *take], what, words)


def _split(line: str) -> list[str]:
    """A long call in several lines, with its options in the last."""
    head, comma, options = line.partition(" rng, ")
    if not comma or len(line) <= _WIDTH:
        return wrapped(line, _WIDTH)
    return [*wrapped(f"{head} rng,", _WIDTH), f"    {options}"]


def wrapped(line: str, width: int) -> list[str]:
    """A line in lines of at most `width`, those after the first set in by four."""
    margin = " " * (len(line) - len(line.lstrip()) + 4)
    lines = []
    while len(line) > width and (cut := line.rfind(", ", len(margin), width - 1)) > 0:
        lines.append(line[: cut + 1])
        line = margin + line[cut + 2 :]
    return [*lines, line]


def _in_regions(
    choices: Choices, take: list[str], what: str, words: Words
) -> tuple[list[str], str]:
    lines = [f"{words.solution}, {words.removed} = current_{words.solution}, []"]
    share = str(choices.get("region_size", "-(-size // regions)"))
    if choices["split"] == "regions":
        number, number_phrase = amount(choices, "regions")
        lines.append(f"regions = {number}")
        where = f"separate regions (how many: {number_phrase}), each of {what}"
    else:
        where = f"separate regions of {share}, each of {what}"
    loop = [
        f"count = min({share}, size - len({words.removed}))",
        *take,
        f"{words.removed} += removed",
    ]
    lines += [f"while len({words.removed}) < size:", *indent(loop)]
    return [*lines, f"return {words.solution}, {words.removed}"], where


def _filled(text: str, values: Mapping[str, object]) -> str:
    return Template(text).substitute(values)
