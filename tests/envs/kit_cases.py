"""Calls of the kits' functions: drawn at random for the comparison of the two implementations.

Only standard modules, since a fuzzer under a sanitizer imports this file too.
"""

import math
from random import Random
from typing import Any

Call = tuple[str, list[Any], dict[str, Any]]

TSP = [
    "best_position", "cost", "greedy_insertion", "lin_kernighan", "nearest", "neighbors", "or_opt",
    "ordered_insertion", "radial_removal", "random_removal", "regret_insertion", "related_removal",
    "remove", "savings", "segment_removal", "string_removal", "two_opt", "worst_removal",
]  # fmt: skip
_ROUTES = [
    *(name for name in TSP if name != "lin_kernighan"),
    "loads",
    "route_removal",
    "two_opt_star",
]
CVRP = sorted([*_ROUTES, "slack", "vehicles"])
VRPTW = sorted([*_ROUTES, "begins", "exchange", "timely_removal"])


def matrix(draw: Random, size: int) -> tuple[tuple[float, ...], ...]:
    """Distances: of integer points on a small grid, with many ties, of points, the same made longer
    or shorter by direction, or any numbers.
    """
    kind = draw.randrange(6)
    if kind == 3:
        numbers = [0.0, 1.0, 1.0, 2.0, draw.random(), draw.uniform(-1, 1), draw.random() * 1e9]
        return tuple(tuple(draw.choice(numbers) for _ in range(size)) for _ in range(size))
    if kind == 0:
        points = [(draw.randrange(4), draw.randrange(4)) for _ in range(size)]
        return tuple(tuple(float(abs(a - c) + abs(b - d)) for c, d in points) for a, b in points)
    scale = 12 if kind in (2, 5) else 1
    points = [(draw.random() * scale, draw.random() * scale) for _ in range(size)]
    if kind == 2:
        points = [(round(a), round(b)) for a, b in points]
    dist = tuple(tuple(math.hypot(a - c, b - d) for c, d in points) for a, b in points)
    if kind < 4:
        return dist
    rows = [[each * draw.uniform(0.5, 1.5) for each in row] for row in dist]
    return tuple(tuple(float(round(each)) if kind == 5 else each for each in row) for row in rows)


def split(draw: Random, nodes: list[int]) -> list[list[int]]:
    """Routes of all nodes, now and then with empty ones."""
    routes: list[list[int]] = []
    at = 0
    while at < len(nodes):
        size = draw.randrange(0, 9)
        routes.append(nodes[at : at + size])
        at += size
    return routes + [[]] * (draw.random() < 0.1)


def count(draw: Random, size: int) -> int:
    return draw.choice([0, 1, 2, 3, draw.randrange(size + 1), size, size + 5, 10**30])


def options(draw: Random, choices: dict[str, list[Any]], rng: Any) -> dict[str, Any]:
    """Some of the keyword arguments, and the rng where it is needed (and now and then else)."""
    given = {name: draw.choice(values) for name, values in choices.items() if draw.random() < 0.4}
    if given.get("noise") or given.get("blink") or draw.random() < 0.1:
        given["rng"] = rng
    return given


INSERT = {
    "bound": [math.inf, 5.0, 20.0, 100, 0.0, -math.inf],
    "near": [0, 1, 2, 5, 8, 64, 100, 10**30],
    "noise": [0.0, 0.1, 2.0, 1],
}
REGRET = INSERT | {"k": [1, 2, 3, 4, 9, 70, 10**30], "weight": [0.0, 1.0, -1.0, 0.3, 2]}
ORDERED = INSERT | {"blink": [0.0, 0.1, 1.0, 1]}
SEARCH = {"near": [0, 1, 3, 10, 10**30], "moves": [0, 1, 2, 5, 40]}
FRESH = {"fresh": [1.0, math.inf, 0.0, 2.5]}


def tsp(draw: Random, name: str, dist: Any, rng: Any) -> Call:
    """Arguments of a function of the TSP's kit; dist [N, N]."""
    size = len(dist)
    nodes = list(range(size))
    draw.shuffle(nodes)
    cut = draw.randrange(size + 1)
    tour, out = nodes[:cut], nodes[cut:]
    some = draw.sample(tour, draw.randrange(len(tour) + 1))
    power = {"power": draw.choice([1.0, 3, 6.5])} if draw.random() < 0.5 else {}
    inside = draw.choice(tour or [0])
    k = count(draw, size)
    anyone = draw.randrange(max(1, size))
    calls: dict[str, tuple[list[Any], dict[str, Any]]] = {
        "best_position": ([dist, tour, draw.choice(out or [0])], {}),
        "cost": ([dist, tour], {}),
        "greedy_insertion": ([dist, tour, out], options(draw, INSERT, rng)),
        "lin_kernighan": ([dist, tour, some], options(draw, SEARCH, rng)),
        "nearest": ([dist, anyone, some, k], {}),
        "neighbors": ([dist, k], {}),
        "or_opt": ([dist, tour, some], options(draw, SEARCH | {"length": [1, 2, 3, 10**30]}, rng)),
        "ordered_insertion": ([dist, tour, out], options(draw, ORDERED, rng)),
        "radial_removal": ([dist, tour, anyone, k], {}),
        "random_removal": ([tour, k, rng], {}),
        "regret_insertion": ([dist, tour, out], options(draw, REGRET, rng)),
        "related_removal": ([dist, tour, inside, k, rng], power),
        "remove": ([tour, [*draw.sample(nodes, draw.randrange(size + 1)), -1, 10**30]], {}),
        "savings": ([dist, tour], {}),
        "segment_removal": ([tour, inside, k], {}),
        "string_removal": (
            [dist, tour, anyone, k, rng],
            {"length": draw.choice([1, 4, 10**30])} if draw.random() < 0.5 else {},
        ),
        "two_opt": ([dist, tour, some], options(draw, SEARCH, rng)),
        "worst_removal": ([dist, tour, k, rng], power),
    }
    args, named = calls[name]
    if name in ("two_opt", "or_opt", "lin_kernighan"):
        named.pop("rng", None)
    return name, args, named


def cvrp(draw: Random, name: str, dist: Any, rng: Any) -> Call:
    """Arguments of a function of the CVRP's kit; dist [N, N], node 0 is the depot."""
    size = len(dist)
    nodes = list(range(1, size))
    draw.shuffle(nodes)
    cut = draw.randrange(len(nodes) + 1)
    served, out = nodes[:cut], nodes[cut:]
    routes = split(draw, served)
    lowest = -1 if draw.random() < 0.02 else 1
    demands = (0, *(draw.randrange(lowest, 9) for _ in nodes))
    capacity = draw.choice([5, 12, 25, 40, 200, 10**30, 0])
    some = draw.sample(served, draw.randrange(len(served) + 1))
    inside = draw.choice(served or [1])
    k = count(draw, size)
    anyone = draw.randrange(max(1, size))
    power = {"power": draw.choice([1.0, 3, 6.5])} if draw.random() < 0.5 else {}
    base = [dist, demands, capacity, routes]
    calls: dict[str, tuple[list[Any], dict[str, Any]]] = {
        "best_position": ([*base, draw.choice(out or [0])], {}),
        "cost": ([dist, routes], {}),
        "greedy_insertion": ([*base, out], options(draw, INSERT | FRESH, rng)),
        "loads": ([demands, routes], {}),
        "nearest": ([dist, anyone, some, k], {}),
        "neighbors": ([dist, k], {}),
        "or_opt": ([*base, some], options(draw, SEARCH | {"length": [1, 2, 3, 10**30]}, rng)),
        "ordered_insertion": ([*base, out], options(draw, ORDERED | FRESH, rng)),
        "radial_removal": ([dist, routes, anyone, k], {}),
        "random_removal": ([routes, k, rng], {}),
        "regret_insertion": ([*base, out], options(draw, REGRET | FRESH, rng)),
        "related_removal": (
            [dist, demands, routes, inside, k, rng],
            power
            | {
                name: draw.choice([0.0, 0.5, 2, -1.0])
                for name in ("by_demand", "by_route")
                if draw.random() < 0.5
            },
        ),
        "remove": ([routes, [*draw.sample(nodes, draw.randrange(len(nodes) + 1)), -1, 10**30]], {}),
        "route_removal": ([dist, routes, anyone, k], {}),
        "savings": ([dist, routes], {}),
        "segment_removal": ([routes, inside, k], {}),
        "slack": ([dist, routes, *([anyone] if draw.random() < 0.5 else [])], {}),
        "string_removal": (
            [dist, routes, anyone, k, rng],
            {
                name: draw.choice(values)
                for name, values in (("length", [1, 4, 10**30]), ("gap", [0, 1, 3, 10**30]))
                if draw.random() < 0.5
            },
        ),
        "two_opt": ([dist, routes, some], options(draw, SEARCH, rng)),
        "two_opt_star": ([*base, some], options(draw, SEARCH, rng)),
        "vehicles": ([dist], {}),
        "worst_removal": ([dist, routes, k, rng], power),
    }
    args, named = calls[name]
    if name in ("two_opt", "or_opt", "two_opt_star"):
        named.pop("rng", None)
    return name, args, named


def times(draw: Random, size: int) -> list[tuple[float, ...]]:
    """ready, due and service of the nodes: windows wide, narrow and out of reach."""
    far = draw.choice([1.0, 4.0, 12.0])
    horizon = far * draw.choice([1.0, 3.0, 8.0])
    width = horizon * draw.choice([0.2, 0.5, 1.0])
    opens = [draw.random() * horizon for _ in range(size)]
    ready = [0.0, *(round(each) if far > 2 else each for each in opens[1:])]
    due = [each + width * draw.random() for each in ready]
    service = [0.0, *(draw.choice([0.0, 0.1 * far * draw.random()]) for _ in opens[1:])]
    if draw.random() < 0.9:
        due[0] = horizon * 1.5
    return [tuple(map(float, each[:size])) for each in (ready, due, service)]


def vrptw(draw: Random, name: str, dist: Any, rng: Any) -> Call:
    """Arguments of a function of the VRPTW's kit; dist [N, N], node 0 is the depot."""
    own = {"begins": "cost", "exchange": "or_opt", "timely_removal": "related_removal"}
    _, args, named = cvrp(draw, own.get(name, name), dist, rng)
    ready, due, service = times(draw, len(dist))
    if name == "begins":
        return name, [dist, ready, service, args[1]], {}
    if name == "timely_removal":
        _, _, routes, center, k, _ = args
        by_time = {"by_time": draw.choice([0.0, 0.5, 3])} if draw.random() < 0.5 else {}
        return name, [dist, ready, service, routes, center, k], by_time
    if name == "related_removal":
        if draw.random() < 0.7:
            named["by_time"] = draw.choice([0.0, 0.5, 3])
        return name, [*args[:2], ready, service, *args[2:]], named
    if name == "two_opt":
        demands = (0, *(draw.randrange(1, 9) for _ in range(len(dist) - 1)))
        return name, [dist, demands, draw.choice([9, 40]), ready, due, service, *args[1:]], named
    timed = name.endswith(("insertion", "position", "opt", "star")) or name == "exchange"
    return name, [*args[:3], ready, due, service, *args[3:]] if timed else args, named


def outcome(kit: Any, call: Call) -> Any:
    """What a function returns, floats as their bits in hexadecimal, or the kind of its error."""
    name, args, named = call
    try:
        return exact(getattr(kit, name)(*args, **named))
    except IndexError:
        return ValueError  # the reference: no node at all
    except Exception as error:
        return type(error)


def exact(value: Any) -> Any:
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, (list, tuple)):
        return type(value), [exact(each) for each in value]
    return value if value is None else (type(value), value)
