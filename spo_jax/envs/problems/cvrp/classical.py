"""Five fixed classical CVRP destroy operators: the unevolved half of the repair panel (A.5).

The paper names neither the operators nor their parameters. These are the standard ones of the
literature on adaptive large neighbourhood search (random, worst, radial and related removal: Shaw
1998, Ropke and Pisinger 2006) and of slack induction by string removals (Christiaens and Vanden
Berghe 2020), written as programs that obey the same contract as evolved ones. None of them reads
steps_since_improvement: a repair is scored against leaders that do not adapt.
"""

from spo_jax.program import Program

SIZE = """\
    n = len(dist) - 1
    limit = max(1, int(0.35 * n))
    low = max(1, min(limit, 30, n // 10))
    size = rng.randint(low, max(low, min(limit, 60)))
"""

SPLIT = """\
    removed = set(chosen)
    partial_routes = [[node for node in route if node not in removed] for route in current_routes]
    return partial_routes, chosen
"""

_RANDOM = f"""\
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
{SIZE}\
    customers = [node for route in current_routes for node in route]
    chosen = rng.sample(customers, size)
{SPLIT}"""

_WORST = f"""\
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
{SIZE}\
    routes = [route[:] for route in current_routes]
    chosen = []
    while len(chosen) < size:
        saving = {{}}
        for route in routes:
            for before, node, after in zip([0] + route, route, route[1:] + [0]):
                saving[node] = dist[before][node] + dist[node][after] - dist[before][after]
        ranked = sorted(saving, key=lambda node: -saving[node])
        worst = ranked[int(len(ranked) * rng.random() ** 3)]
        chosen.append(worst)
        routes = [[node for node in route if node != worst] for route in routes]
{SPLIT}"""

_RADIAL = f"""\
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
{SIZE}\
    customers = [node for route in current_routes for node in route]
    row = dist[rng.choice(customers)]
    chosen = sorted(customers, key=lambda node: row[node])[:size]
{SPLIT}"""

_SHAW = f"""\
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
{SIZE}\
    home = {{node: r for r, route in enumerate(current_routes) for node in route}}
    farthest, largest = max(dist[0]), max(demands)
    waiting = list(home)
    chosen = [waiting.pop(rng.randrange(len(waiting)))]
    while len(chosen) < size:
        pivot = rng.choice(chosen)
        row = dist[pivot]
        unlike = {{}}
        for node in waiting:
            gap = abs(demands[node] - demands[pivot]) / largest
            apart = home[node] != home[pivot]
            unlike[node] = row[node] / max(farthest, 1e-9) + 0.25 * gap + 0.25 * apart
        waiting.sort(key=lambda node: unlike[node])
        chosen.append(waiting.pop(int(len(waiting) * rng.random() ** 6)))
{SPLIT}"""

_STRING = f"""\
def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    n = len(dist) - 1
    limit = max(1, int(0.35 * n))
    routes = [route for route in current_routes if route]
    home = {{node: route for route in routes for node in route}}
    longest = min(10, max(1, n // len(routes)))
    strings = rng.randint(1, max(1, 40 // (1 + longest)))
    row = dist[rng.choice(list(home))]
    chosen, cut = [], set()
    for node in sorted(home, key=lambda node: row[node]):
        route = home[node]
        if len(cut) == strings or len(chosen) == limit:
            break
        if route[0] not in cut:
            cut.add(route[0])
            length = min(rng.randint(1, longest), len(route), limit - len(chosen))
            where = route.index(node)
            start = rng.randint(max(0, where - length + 1), min(where, len(route) - length))
            chosen += route[start : start + length]
{SPLIT}"""

_STRATEGIES = {
    _RANDOM: "Remove between a tenth (at most 30) and 35% (at most 60) of the customers, drawn"
    " uniformly.",
    _WORST: "Remove between a tenth (at most 30) and 35% (at most 60) of the customers one by one,"
    " each time one whose removal saves much, the rank drawn as the cube of a uniform number.",
    _RADIAL: "Remove the customers nearest to a random one: between a tenth (at most 30) and 35%"
    " (at most 60) of all.",
    _SHAW: "Remove between a tenth (at most 30) and 35% (at most 60) of the customers, each related"
    " by distance, demand and route to a random one already removed.",
    _STRING: "Remove a random number of strings of at most 10 consecutive customers, one from each"
    " of the routes that pass nearest to a random customer.",
}

CVRP_DESTROYS: tuple[Program, ...] = tuple(
    Program.from_source("destroy", source, strategy, form="classical")
    for source, strategy in _STRATEGIES.items()
)
"""The panel in the order random, worst, radial, related, adjacent strings."""
