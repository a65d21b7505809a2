"""Reads tests/programs: one hostile or lawful program a file, with what is expected of it.

A file starts with comments `# role:`, `# problem:`, `# expect:`, `# why:` and optionally
`# reason:` (a word that the rejection must name). The program is the text after them, in which
@TMP@ is a folder to write to, @PORT@ a port of 127.0.0.1 to connect to, @NUL@ and @SURROGATE@
characters that a file cannot hold, @CR@ a carriage return, and `@REPEAT 3 ab@` is ababab.

What may be expected: `ok` (lawful), the name of a status, `any-failure`, or `contained`: refused,
failed, or without any effect, which is to say exactly the result of the plain program of its role.
`unstable` is lawful too, but its result hangs on memory addresses or on memory that nobody wrote,
which nothing promises to be the same twice.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from spo_jax.errors import Rejection
from spo_jax.program import Pair, Program

FOLDER = Path(__file__).resolve().parent.parent / "programs"
PROBLEMS = ("tsp", "cvrp")
SIZE, STEPS, SEEDS = 20, 20, (0,)
ROLLOUT_SECONDS = 0.6  # what fills the memory or the stack gets there
CPU_SECONDS = ROLLOUT_SECONDS * 500 / STEPS
# Enough for the others, and all that what never ends needs to be stopped.
SHORT_ROLLOUT_SECONDS = 0.3
SHORT_CPU_SECONDS = SHORT_ROLLOUT_SECONDS * 500 / STEPS

_HEADER = re.compile(r"\A(?:# (?:role|problem|expect|why|reason): .*\n)+")
_FIELD = re.compile(r"^# (\w+): (.*)$", re.MULTILINE)
_REPEAT = re.compile(r"@REPEAT (\d+) ([^@]*)@")

PARTNERS = {
    ("tsp", "destroy"): """
def destroy(dist, current_tour, steps_since_improvement, rng):
    removed = rng.sample(current_tour, 4)
    return [v for v in current_tour if v not in removed], removed
""",
    ("tsp", "repair"): """
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    for v in removed_nodes:
        row = dist[v]
        edges = list(zip(tour[-1:] + tour[:-1], tour))
        costs = [row[a] + row[b] - dist[a][b] for a, b in edges]
        tour.insert(costs.index(min(costs)), v)
    return tour
""",
    ("cvrp", "destroy"): """
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    removed = rng.sample([c for route in current_routes for c in route], 4)
    return [[c for c in route if c not in removed] for route in current_routes], removed
""",
    ("cvrp", "repair"): """
def repair(dist, demands, capacity, partial_routes, removed, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes]
    for c in removed:
        best, where = 2 * dist[0][c], None
        for route in routes:
            if sum(demands[x] for x in route) + demands[c] <= capacity:
                path = [0, *route, 0]
                for i in range(len(route) + 1):
                    a, b = path[i], path[i + 1]
                    if dist[a][c] + dist[c][b] - dist[a][b] < best:
                        best, where = dist[a][c] + dist[c][b] - dist[a][b], (route, i)
        if where is None:
            routes.append([c])
        else:
            where[0].insert(where[1], c)
    return routes
""",
}


@dataclass(frozen=True)
class Specimen:
    """One file of the collection."""

    kind: str  # "hostile" or "lawful"
    name: str
    fields: dict[str, str]
    text: str

    @cached_property
    def expect(self) -> str:
        return self.fields["expect"]

    def program(self, tmp: str = "/nowhere", port: int = 9) -> Program:
        """The program; raises Rejection where already its text is refused."""
        text = _REPEAT.sub(lambda m: m[2] * int(m[1]), self.text)
        for mark, value in (
            ("@TMP@", tmp),
            ("@PORT@", str(port)),
            ("@NUL@", "\0"),
            ("@SURROGATE@", "\ud800"),
            ("@CR@", "\r"),
        ):
            text = text.replace(mark, value)
        return Program.from_source(self.fields["role"], text)  # type: ignore[arg-type]

    def pair(self, tmp: str = "/nowhere", port: int = 9) -> Pair | None:
        """The program beside a plain partner, or None where its text is refused."""
        problem, role = self.fields["problem"], self.fields["role"]
        try:
            program = self.program(tmp, port)
        except Rejection:
            return None
        if role == "destroy":
            return Pair(program, Program.from_source("repair", PARTNERS[problem, "repair"]))
        return Pair(Program.from_source("destroy", PARTNERS[problem, "destroy"]), program)


def good_pair(problem: str) -> Pair:
    """The two partners together."""
    return Pair(
        Program.from_source("destroy", PARTNERS[problem, "destroy"]),
        Program.from_source("repair", PARTNERS[problem, "repair"]),
    )


def specimens(kind: str) -> list[Specimen]:
    """All programs of a kind, in the order of their names."""
    found = []
    for path in sorted((FOLDER / kind).glob("*.py")):
        text = path.read_text(encoding="utf-8")
        header = _HEADER.match(text)
        if header is None:
            raise ValueError(f"{path}: no header")
        fields = dict(_FIELD.findall(header[0]))
        found.append(Specimen(kind, path.stem, fields, text[header.end() :]))
    return found
