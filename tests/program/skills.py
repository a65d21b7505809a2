"""Which skills a program of the grammars has, read from its source alone."""

import re

_PATTERNS = {
    "regret": r"lns\.regret|second [-/] |\] - costs\[0\]|costs\[1:|np\.partition",
    "spatial": r"lns\.(radial|nearest|related|route)|(left|pool)\.sort\(key=lambda node: row",
    "strings": r"lns\.string|string = |cut\.add",
    "regions": r"while len\(removed",
    "centers": r"lns\.savings|spots|seed = max",
    "opening": r"sum\(dist\[current_tour\[0\]\]\)",
    "tries": r"for attempt in",
    "polish": r"lns\.(two_opt|or_opt)|reconsider",
    "blinks": r"blink|rng\.random\(\) > 0",
    "state": r"steps_since_improvement",
}


def skills(source: str) -> list[str]:
    body = re.sub(r"def \w+\([^)]*\):", "", source)
    return [name for name, pattern in _PATTERNS.items() if re.search(pattern, body)]
