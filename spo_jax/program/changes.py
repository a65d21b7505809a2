"""What changed from one program to another, as the lines of a unified diff, for a bounded work.

`difflib` can take a minute of CPU for two programs of 15,000 short lines. Here the longest common
subsequence comes from a table whose rows are integers, one bit a column, so that a row costs a few
operations on them (Crochemore, Iliopoulos, Pinzon and Reid, 2001). What it costs is known before.
"""

from collections.abc import Iterable, Iterator, Sequence

from spo_jax.program import MAX_SOURCE

CONTEXT = 2  # equal lines that are shown around a change
MOST_AT_ONCE = 250_000_000  # bits of a table: 30 MB, some 40 ms
LINE = 10_000  # bits that take as long as a line does otherwise
MOST_IN_ALL = 2_000_000_000  # bits of the diffs of a page, and their lines in bits
MOST_SHOWN = 20_000  # characters of a diff

Line = tuple[str, str]  # " ", "-" or "+", and the text


class Changes:
    """Compares programs. spent: the work so far, in bits of tables."""

    def __init__(self) -> None:
        self.spent = 0

    def between(self, old: str, new: str) -> tuple[str, ...]:
        """The lines of a unified diff without its head, or a sentence where that is too much."""
        count = old.count("\n") + new.count("\n")
        too_much = (f"these {count:,} lines are too many to be compared here",)
        if max(len(old), len(new)) > MAX_SOURCE or self.spent + count * LINE > MOST_IN_ALL:
            return too_much
        self.spent += count * LINE
        a, b = (text.removesuffix("\n").split("\n") for text in (old, new))
        head = _equal(a, b)
        tail = _equal(reversed(a[head:]), reversed(b[head:]))
        mine, its = a[head : len(a) - tail], b[head : len(b) - tail]
        bits = len(mine) * len(its)
        if bits > MOST_AT_ONCE or self.spent + bits > MOST_IN_ALL:
            return too_much
        self.spent += bits
        same = [(" ", line) for line in a]
        lines = [*same[:head], *differences(mine, its), *same[len(a) - tail :]]
        return tuple(_first(_hunks(lines)))


def differences(a: Sequence[str], b: Sequence[str]) -> list[Line]:
    """Both texts, line by line: those of a longest common subsequence once, the others marked."""
    at: dict[str, int] = {}  # where a line stands in b, as bits
    for j, line in enumerate(b):
        at[line] = at.get(line, 0) | 1 << j
    every = (1 << len(b)) - 1
    # Bit j of row i is 0 where b[: j + 1] has more in common with a[: i + 1] than b[:j] has.
    row, rows = every, []
    for line in a:
        common = row & at.get(line, 0)
        row = (row + common | row - common) & every
        rows.append(row)
    found: list[Line] = []
    i, j = len(a), len(b)
    while i and j:
        if rows[i - 1] >> j - 1 & 1:
            j -= 1
            found.append(("+", b[j]))
        elif i > 1 and not rows[i - 2] >> j - 1 & 1:
            i -= 1
            found.append(("-", a[i]))
        else:
            i, j = i - 1, j - 1
            found.append((" ", a[i]))
    found += [("+", line) for line in reversed(b[:j])]
    found += [("-", line) for line in reversed(a[:i])]
    return found[::-1]


def _equal(a: Iterable[str], b: Iterable[str]) -> int:
    """How many lines are equal before the first that differ."""
    count = 0
    for one, other in zip(a, b, strict=False):
        if one != other:
            break
        count += 1
    return count


def _hunks(lines: Sequence[Line]) -> Iterator[str]:
    """The changed lines with the equal ones around them, each stretch under its place."""
    places = [k for k, (mark, _) in enumerate(lines) if mark != " "]
    stretches: list[list[int]] = []
    for k in places:
        if stretches and k <= stretches[-1][1] + 2 * CONTEXT:
            stretches[-1][1] = k + 1
        else:
            stretches.append([k, k + 1])
    old = new = done = 0
    for first, last in stretches:
        begin, end = max(0, first - CONTEXT), min(len(lines), last + CONTEXT)
        for mark, _ in lines[done:begin]:
            old, new = old + (mark != "+"), new + (mark != "-")
        marks = [mark for mark, _ in lines[begin:end]]
        mine, its = len(marks) - marks.count("+"), len(marks) - marks.count("-")
        yield f"@@ -{old + 1},{mine} +{new + 1},{its} @@"
        yield from (mark + text for mark, text in lines[begin:end])
        old, new, done = old + mine, new + its, end


def _first(lines: Iterable[str]) -> Iterator[str]:
    """Lines of at most MOST_SHOWN characters in all, and how many more there are."""
    shown = left_out = 0
    for line in lines:
        shown += len(line) + 1
        if shown <= MOST_SHOWN:
            yield line
        else:
            left_out += 1
    if left_out:
        yield f"… {left_out:,} more lines"
