"""The removal mechanisms of destroy grammars of routes: each a helper function and its phrase.

A helper gets `routes`, the non-empty routes of the customers that are still there, and `count`, at
most their number, and returns between one and `count` distinct customers of them.
"""

from collections.abc import Mapping

from spo_jax.program.grammar.base import Choices, Weights
from spo_jax.program.grammar.pieces import NEAREST, STATE, amount, fill, function, indent

MECHANISMS: Weights = {
    "string": 6.0,
    "shaw": 2.0,
    "radial": 2.0,
    "border": 1.2,
    "spoke": 1.0,
    "tail": 1.0,
    "segment": 1.0,
    "thinned": 1.0,
    "route": 0.4,
    "worst": 0.6,
    "random": 0.4,
}
UNSEEDED = ("random",)

_LEFT = "left = [node for route in routes for node in route]"
_HOME = "home = {node: r for r, route in enumerate(routes) for node in route}"

# mechanism -> its phrase, then the lines of its helper
BODIES: Mapping[str, str] = {
    "radial": """
        the customers nearest to $around
        $left
        $seed
        $nearest
        return left[:count]
        """,
    "thinned": """
        a random one in $spread of the customers around $around
        $left
        $seed
        $nearest
        left = left[: $spread * count]
        return rng.sample(left, count)
        """,
    "segment": """
        the longest stretch that fits from the route of $around, going on in the next nearest routes
        $left
        $seed
        row = dist[seed]
        chosen = []
        for route in sorted(routes, key=lambda route: min(row[node] for node in route)):
            length = min(len(route), count - len(chosen))
            start = rng.randint(0, len(route) - length)
            chosen += route[start : start + length]
            if len(chosen) >= count:
                break
        return chosen
        """,
    "cut": """
        $phrase
        $home
        left = list(home)
        $seed
        $nearest
        chosen, cut = [], set()
        for node in left:
            if home[node] in cut:
                continue
            cut.add(home[node])
            route = routes[home[node]]
            where = route.index(node)
            $cut
            if len(chosen) >= count:
                break
        return chosen
        """,
    "route": """
        as many whole routes as fit, those $which
        $rank
        routes = sorted(routes, key=lambda route: $key)
        chosen = routes[0][:count]
        for route in routes[1:]:
            if len(chosen) + len(route) > count:
                break
            chosen += route
        return chosen
        """,
    "shaw": """
        customers related by $how to those chosen before, starting from $around
        $pool
        $seed
        $nearest
        pool = left[: 4 * count]
        $scale
        chosen = [seed]
        pool.remove(seed)
        while pool and len(chosen) < count:
            pivot = rng.choice(chosen)
            row = dist[pivot]
            $rank
            chosen.append(pool.pop(int(len(pool) * rng.random() ** $power)))
        return chosen
        """,
    "border": """
        of the $spread times as many customers around $around, those that lie closest to a stop of \
another route
        $home
        left = list(home)
        $seed
        $nearest
        left = left[: $spread * count]
        gap = {}
        for node in left:
            row = dist[node]
            others = [row[other] for other in left if home[other] != home[node]]
            gap[node] = min(others, default=float("inf"))
        left.sort(key=lambda node: gap[node])
        return left[:count]
        """,
    "spoke": """
        the customers closest to the line from the depot to $around
        $left
        $seed
        row, hub = dist[seed], dist[0]
        left.sort(key=lambda node: row[node] + hub[node])
        return left[:count]
        """,
    "worst": """
        the customers whose removal saves most$where, ranked with noise
        gain = {}
        for route in routes:
            for before, node, after in zip([0] + route, route, route[1:] + [0]):
                saving = dist[before][node] + dist[node][after] - dist[before][after]
                gain[node] = saving * (1 + $noise * rng.random())
        left = list(gain)
        $area
        left.sort(key=lambda node: -gain[node])
        return left[:count]
        """,
    "random": """
        customers drawn uniformly from all routes
        $left
        return rng.sample(left, count)
        """,
}


def removal(
    name: str, choices: Choices, bodies: Mapping[str, str], rows: tuple[str, ...]
) -> tuple[str, str, str]:
    """(helper function, its call, phrase) of a mechanism.

    bodies: the templates by mechanism. rows: the arguments of the instance besides the distances.
    """
    values: dict[str, object] = {**choices, "left": [_LEFT], "home": [_HOME], "nearest": NEAREST}
    seed, around = _seed(str(choices["seed"])) if "seed" in choices else ([], "")
    values |= {"seed": seed, "around": around}
    if name in _VALUES:
        values |= _VALUES[name](choices, seed, around)
    template = "cut" if name in ("string", "tail") else name
    phrase, *body = fill(bodies[template], **values)
    text = "\n".join(body)
    names = ["dist", *rows, "routes", "count", STATE, "rng"]
    used = [n for n in names if n in ("dist", "routes", "count", "rng") or n in text]
    signature = f"take_{name}({', '.join(used)})"
    return function(f"def {signature}:", body), signature, phrase


def _seed(rule: str) -> tuple[list[str], str]:
    """(lines that set `seed` from `left` or `routes`, phrase)."""
    kind, _, value = rule.partition(" ")
    if kind == "random":
        return ["seed = rng.choice(left)"], "a random customer"
    if kind == "far":
        line = f"seed = max(rng.choices(left, k={value}), key=lambda node: dist[0][node])"
        return [line], f"the one of {value} random customers that is farthest from the depot"
    if kind == "small":
        line = f"seed = rng.choice(min(rng.choices(routes, k={value}), key=len))"
        return [line], f"a customer of the route with fewest stops among {value} random ones"
    if kind == "leg":
        return [
            "route = [0] + rng.choice(routes)",
            "legs = zip(route, route[1:])",
            "seed = max(legs, key=lambda leg: dist[leg[0]][leg[1]])[1]",
        ], "the end of the longest leg of a random route"
    if kind == "sweep":
        return (
            [f"seed = left[({value} * {STATE} + rng.randrange({value})) % len(left)]"],
            f"a seed that moves {value} customers along the routes with every step without"
            " improvement",
        )
    return [
        f"draws = 1 if {STATE} < {value} else 4",
        "seed = max(rng.choices(left, k=draws), key=lambda node: dist[0][node])",
    ], (
        f"a random customer, or after {value} steps without improvement the one of 4 that is"
        " farthest from the depot"
    )


# --- what is computed for a template --------------------------------------------------------------


def _string(choices: Choices, seed: list[str], around: str) -> dict[str, object]:
    length, phrase = amount(choices, "length")
    phrase = f"strings of consecutive stops (length {phrase}) through the routes around {around}"
    take = [f"length = min({length}, len(route), count - len(chosen))"]
    gap = choices["gap"]
    if gap == 0:
        take += [
            "start = rng.randint(max(0, where - length + 1), min(where, len(route) - length))",
            "chosen += route[start : start + length]",
        ]
    else:
        take += [
            f"gap = min({gap}, len(route) - length) if rng.random() < 0.5 else 0",
            "window = length + gap",
            "start = rng.randint(max(0, where - window + 1), min(where, len(route) - window))",
            "split = rng.randint(1, length)",
            "chosen += route[start : start + split]",
            "chosen += route[start + split + gap : start + window]",
        ]
        phrase += f", half of them with up to {gap} stops kept inside"
    return {"cut": take, "phrase": phrase}


def _tail(choices: Choices, seed: list[str], around: str) -> dict[str, object]:
    length, phrase = amount(choices, "length")
    phrase = (
        f"up to so many stops (length {phrase}) from the point of each route that is nearest"
        f" to {around} towards one of its ends"
    )
    take = [
        "tail = route[where:] if rng.random() < 0.5 else route[where::-1]",
        f"length = min({length}, count - len(chosen))",
        "chosen += tail[:length]",
    ]
    return {"cut": take, "phrase": phrase}


def _route(choices: Choices, seed: list[str], around: str) -> dict[str, object]:
    if choices["pick"] == "near":
        key = "min(row[node] for node in route)"
        return {
            "rank": [_LEFT, *seed, "row = dist[seed]"],
            "key": key,
            "which": f"nearest to {around}",
        }
    if choices["pick"] == "small":
        rank, key, which = [], "len(route)", "few stops"
    else:
        rank = ["def load(route):", "    return sum(demands[node] for node in route)", ""]
        key, which = "load(route)", "little load"
    return {
        "rank": rank,
        "key": f"{key} * (0.5 + rng.random())",
        "which": f"with {which} (drawn with a random factor)",
    }


def _shaw(choices: Choices, seed: list[str], around: str) -> dict[str, object]:
    by_demand, by_route = float(choices["by_demand"]), float(choices["by_route"])
    by_time = float(choices.get("by_time", 0.0))  # of problems with time windows
    key, words = ["key[node] = row[node]"], ["distance"]
    scale: list[str] = []
    if by_demand:
        scale = ["scale = dist[seed][pool[-1]] / max(demands)"]
        key.append(f"key[node] += {by_demand} * scale * abs(demands[node] - demands[pivot])")
        words.append("demand")
    if by_time:
        apart = "ready[node] + due[node] - ready[pivot] - due[pivot]"
        key.append(f"key[node] += {by_time / 2} * abs({apart})")
        words.append("time window")
    if by_route:
        scale += ["bonus = 0.3 * dist[seed][pool[-1]]"]
        test = "!=" if by_route > 0 else "=="
        key.append(f"key[node] += bonus * (home[node] {test} home[pivot])")
        words.append("membership of the same route" if by_route > 0 else "being on another route")
    rank = ["pool.sort(key=lambda node: row[node])"]
    if len(key) > 1:
        rank = ["key = {}", "for node in pool:", *indent(key)]
        rank.append("pool.sort(key=lambda node: key[node])")
    return {
        "pool": [_HOME, "left = list(home)"] if by_route else [_LEFT],
        "scale": scale,
        "rank": rank,
        "how": words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}",
    }


def _worst(choices: Choices, seed: list[str], around: str) -> dict[str, object]:
    area = choices["area"]
    if not area:
        return {"area": [], "where": ""}
    lines = [*seed, *NEAREST, f"left = left[: {area} * count]"]
    return {"area": lines, "where": f" among the {area} times as many around {around}"}


_VALUES = {"string": _string, "tail": _tail, "route": _route, "shaw": _shaw, "worst": _worst}
