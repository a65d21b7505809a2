"""The removal mechanisms of the TSP destroy grammar: each a helper function and its phrase.

A helper gets `left`, its own list of the nodes that are still in the tour (in tour order), and
`count` <= len(left), and returns `count` distinct nodes of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from spo_jax.program.grammar.base import Choice, Choices
from spo_jax.program.grammar.pieces import NEAREST, STATE, amount, fill, function

MECHANISMS: Mapping[Choice, float] = {
    "radial": 5.0,
    "thinned": 2.0,
    "segment": 1.5,
    "string": 3.0,
    "shaw": 1.5,
    "corridor": 1.5,
    "bridge": 1.5,
    "edges": 1.0,
    "worst": 0.6,
    "random": 0.4,
}
UNSEEDED = ("edges", "worst", "random")

# mechanism -> its phrase, then the lines of its helper
_BODIES = {
    "radial": """
        the nodes nearest to $around
        $seed
        $nearest
        return left[:count]
        """,
    "thinned": """
        a random one in $spread of the nodes around $around
        $seed
        $nearest
        return rng.sample(left[: $spread * count], count)
        """,
    "segment": """
        a stretch of consecutive nodes around $around
        $seed
        start = left.index(seed) - count // 2
        return [left[(start + i) % len(left)] for i in range(count)]
        """,
    "string": """
        strings of $length_phrase consecutive nodes through the tour near $around
        $seed
        row = dist[seed]
        chosen = {}
        for node in sorted(left, key=lambda node: row[node]):
            if node not in chosen:
                string = $length
                start = left.index(node) - rng.randrange(string)
                for i in range(string):
                    chosen[left[(start + i) % len(left)]] = True
            if len(chosen) >= count:
                break
        return list(chosen)[:count]
        """,
    "shaw": """
        nodes related to those chosen before them, starting from $around
        $seed
        $nearest
        pool = [node for node in left[: 4 * count] if node != seed]
        chosen = [seed]
        while len(chosen) < count:
            row = dist[rng.choice(chosen)]
            pool.sort(key=lambda node: row[node])
            chosen.append(pool.pop(int(len(pool) * rng.random() ** $power)))
        return chosen
        """,
    "corridor": """
        the nodes closest to the line from $around to $other
        $seed
        row = dist[seed]
        end = $end
        far = dist[end]
        left.sort(key=lambda node: row[node] + far[node])
        return left[:count]
        """,
    "bridge": """
        two facing stretches of the tour, one of them through $around
        $seed
        half = (count + 1) // 2
        start = left.index(seed) - half // 2
        chosen = [left[(start + i) % len(left)] for i in range(half)]
        rest = [node for node in left if node not in chosen]
        if len(chosen) < count:
            row = dist[seed]
            facing = min(rest, key=lambda node: row[node])
            start = rest.index(facing) - half // 2
            chosen += [rest[(start + i) % len(rest)] for i in range(count - half)]
        return chosen
        """,
    "edges": """
        the ends of long tour edges, drawn with a random factor
        drawn = {}
        for i, node in enumerate(left):
            drawn[node] = dist[left[i - 1]][node] * rng.random()
        left.sort(key=lambda node: -drawn[node])
        return left[:count]
        """,
    "worst": """
        the nodes whose removal shortens the tour most, ranked with noise
        gain = {}
        for i, node in enumerate(left):
            a, b = left[i - 1], left[(i + 1) % len(left)]
            saving = dist[a][node] + dist[node][b] - dist[a][b]
            gain[node] = saving * (1 + $noise * rng.random())
        left.sort(key=lambda node: -gain[node])
        return left[:count]
        """,
    "random": """
        nodes drawn uniformly from the tour
        return rng.sample(left, count)
        """,
}


@dataclass(frozen=True)
class Removal:
    """Source of one mechanism. body: its lines, the last of which returns the nodes."""

    call: str
    body: list[str]
    phrase: str

    def helper(self) -> str:
        return function(f"def {self.call}:", self.body)

    def inline(self) -> list[str]:
        return [*self.body[:-1], self.body[-1].replace("return", "picked =")]


def removal(name: str, choices: Choices) -> Removal:
    """A mechanism's source, with the seed rule and the amounts of a derivation."""
    values: dict[str, object] = {**choices, "nearest": NEAREST}
    if name not in UNSEEDED:
        values["seed"], values["around"] = _seed(str(choices["seed"]))
    if name == "string":
        values["length"], values["length_phrase"] = amount(choices, "length")
    contest = choices.get("contest")
    values |= {"end": "rng.choice(left)", "other": "another random node"}
    if contest != 1:
        end = f"max(rng.sample(left, min({contest}, len(left))), key=lambda node: row[node])"
        values |= {"end": end, "other": f"the farthest of {contest} others"}
    phrase, *body = fill(_BODIES[name], **values)
    state = f"{STATE}, " if any(STATE in line for line in body) else ""
    return Removal(f"take_{name}(dist, left, count, {state}rng)", body, phrase)


def _seed(rule: str) -> tuple[list[str], str]:
    kind, *values = rule.split()
    if kind == "random":
        return ["seed = rng.choice(left)"], "a random node"
    if kind == "sweep":
        step = values[0]
        return (
            [
                f"shift = {step} * {STATE} + rng.randrange({step})",
                "seed = left[shift % len(left)]",
            ],
            f"a seed that moves {step} places along the tour with every step without improvement",
        )
    longest = "seed = left[max(spots, key=lambda i: dist[left[i - 1]][left[i]])]"
    if kind == "edge":
        return (
            [f"spots = [rng.randrange(len(left)) for _ in range({values[0]})]", longest],
            f"the end of the longest of {values[0]} random tour edges",
        )
    after = values[1]
    return (
        [
            f"tested = 1 if {STATE} < {after} else 4",
            "spots = [rng.randrange(len(left)) for _ in range(tested)]",
            longest,
        ],
        f"a random node, or after {after} steps without improvement the end of the longest of 4"
        " random tour edges",
    )
