"""How many kernels a compiled program starts, from XLA's text of it."""

import re

HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")
KERNEL = re.compile(
    r"= .*? (fusion|custom-call|copy|dot|convolution|reduce|transpose|sort|scatter|gather"
    r"|dynamic-slice|dynamic-update-slice|broadcast|concatenate|while|call|conditional)\("
)
BODY = re.compile(r"body=%?([\w.\-]+)")
CALLED = re.compile(r"to_apply=%?([\w.\-]+)")
BRANCH = re.compile(r"%([\w.\-]+)")
TRIPS = re.compile(r'known_trip_count":\{"n":"(\d+)"')


def launches(text: str) -> int:
    """Kernels of a program for a GPU, those in a loop as often as it runs.

    text: of `Compiled.as_text`. A loop of unknown length counts once, and of branches the largest.
    """
    bodies: dict[str, list[str]] = {}
    entry = inside = ""
    for line in text.splitlines():
        if head := HEAD.match(line):
            inside = head[2]
            bodies[inside] = []
            entry = inside if head[1] else entry
        elif inside:
            bodies[inside].append(line)
    return _of(entry, bodies, {})


def _of(name: str, bodies: dict[str, list[str]], known: dict[str, int]) -> int:
    if name not in known:
        known[name] = sum(_line(line, bodies, known) for line in bodies[name])
    return known[name]


def _line(line: str, bodies: dict[str, list[str]], known: dict[str, int]) -> int:
    kind = KERNEL.search(line)
    if kind is None:
        return 0
    if kind[1] == "while" and (body := BODY.search(line)):
        trips = TRIPS.search(line)
        return (int(trips[1]) if trips else 1) * _of(body[1], bodies, known)
    if kind[1] == "call" and (called := CALLED.search(line)):
        return _of(called[1], bodies, known)
    if kind[1] == "conditional":
        branches = [
            b for b in BRANCH.findall(line.partition("branch_computations")[2]) if b in bodies
        ]
        return max((_of(branch, bodies, known) for branch in branches), default=0)
    return 1
