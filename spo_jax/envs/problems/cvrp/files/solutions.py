"""CVRPLIB's solutions (.sol) as the field's programs write them.

A line `Route #k: ...` for each route, its customers counted from 1 after the depot, and a line
`Cost ...`. Letters may be small, the # may be missing, a route may begin and end with the depot 0,
and what follows a # is a remark. The tests hold this reading against `vrplib`.
"""

import re
from pathlib import Path
from typing import NoReturn

from spo_jax.envs.files.textfiles import not_a_number, read_text, shown
from spo_jax.envs.problems.cvrp.rules import Routes
from spo_jax.errors import InputError

_ROUTE = re.compile(r"route\s*#?\s*[0-9]+\s*:([^#]*)(#.*)?", re.IGNORECASE)
_COST = re.compile(r"cost\s*[:=]?\s*([^\s#]+)\s*(#.*)?", re.IGNORECASE)
# Lines about the solution, as SINTEF's files begin, which ask for nothing.
_ABOUT = re.compile(
    r"(instance|name|authors?|date|reference|comment|solver|seed|(cpu )?time|iterations?)\b.*"
    r"|solution\s*:?",
    re.IGNORECASE,
)
_CUSTOMER = re.compile("-?[0-9]{1,9}")


def parse(path: str | Path) -> tuple[Routes, str | None]:
    """The routes of a file without the depot, and its cost as it is written, or None.

    Empty routes are dropped. Raises InputError, also for a line that says something else.
    """

    def fail(what: str, line: int | None = None) -> NoReturn:
        where = "" if line is None else f"line {line}: "
        raise InputError(f"{path} is not a CVRPLIB solution: {where}{what}")

    routes: Routes = []
    cost, seen = None, False
    strange: tuple[int, str] | None = None
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", read_text(path)), 1):
        line = raw.strip()
        if not line or line.startswith("#") or _ABOUT.fullmatch(line):
            continue
        if found := _ROUTE.fullmatch(line):
            seen = True
            words = found[1].split()
            wrong = next((word for word in words if not _CUSTOMER.fullmatch(word)), None)
            if wrong is not None:
                fail(f"{shown(wrong)} is no customer", number)
            route = [int(word) for word in words]
            if len(route) > 1 and route[0] == route[-1] == 0:
                route = route[1:-1]
            routes += [route] if route else []
        elif (found := _COST.fullmatch(line)) and not not_a_number(found[1]):
            if cost is not None:
                fail("a second cost", number)
            cost = found[1]
        else:
            strange = strange or (number, line)
    if not seen:
        fail("there is no line 'Route #k: ...'")
    if strange:
        fail(f"expected 'Route #k: ...' or 'Cost ...', not {shown(strange[1])}", strange[0])
    return routes, cost
