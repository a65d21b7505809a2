"""Blocks of source for repair grammars of routes: insertion orders, tries, places and regret.

A program keeps its routes as tuples of customers, so that the cheapest place of a customer in a
route is computed once a call and looked up afterwards: tries share it, and after an insertion only
the changed route costs anything new. The last route is always an empty one, so that opening a
route is an ordinary place, at twice the distance to the depot: the fleet is free.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from spo_jax.program.grammar.base import Choices
from spo_jax.program.grammar.pieces import NONE, STATE, amount, condition, function, indent

Keyed = Mapping[str, tuple[str, str]]  # order -> (sort key, phrase)


@dataclass(frozen=True)
class Places:
    """How the repair programs of one problem of routes insert a customer.

    helpers: functions. prepare: lines before the tries. find: the call, with {} for the route, that
    returns what `node` costs at its cheapest feasible place there and the place, or infinity.
    keyed: orders by a sort key.
    """

    helpers: tuple[str, ...]
    prepare: tuple[str, ...]
    find: str
    keyed: Keyed


FIND_PLACE = function(
    "def find_place(dist, route, node):",
    [
        "row = dist[node]",
        'cheapest, place, before = float("inf"), 0, 0',
        "for i, after in enumerate((*route, 0)):",
        "    cost = row[before] + row[after] - dist[before][after]",
        "    if cost < cheapest:",
        "        cheapest, place = cost, i",
        "    before = after",
        "return cheapest, place",
    ],
)
ROUTES = [
    "routes = [tuple(route) for route in partial_routes if route]",
    "room = [capacity - sum(demands[node] for node in route) for route in routes]",
]
RESULT = "return [list(route) for route in {} if route]"

# --- insertion orders -----------------------------------------------------------------------------

KEYED: Keyed = {
    "far": ("-dist[0][node]", "by decreasing distance from the depot"),
    "near": ("dist[0][node]", "by increasing distance from the depot"),
    "demand": ("-demands[node]", "by decreasing demand"),
    "bulky": (
        "-demands[node] * dist[0][node]",
        "by decreasing product of demand and depot distance",
    ),
    "regret": ("-stake[node]", "by decreasing gap between their two cheapest routes"),
    "costly": ("-stake[node]", "by decreasing insertion cost"),
    "lonely": ("-stake[node]", "by decreasing distance from the other removed customers"),
}
CVRP_PLACES = Places((FIND_PLACE,), (), "find_place(dist, {}, node)", KEYED)
STAKED = ("regret", "costly", "lonely")  # orders by what `_stake` computes


def _stake(name: str, places: Places) -> list[str]:
    """Lines that compute stake[node]."""
    if name == "regret":
        return [
            "open_routes = [r for r, route in enumerate(routes) if room[r] >= demands[node]]",
            f"costs = [{places.find.format('routes[r]')}[0] for r in open_routes]",
            "costs = sorted(costs + 2 * [2 * dist[0][node]])",
            "stake[node] = costs[1] - costs[0]",
        ]
    if name == "costly":
        return [
            f"costs = [{places.find.format('route')}[0] for route in routes]",
            "stake[node] = min(costs, default=0.0)",
        ]
    return ["row = dist[node]", "stake[node] = sum(row[other] for other in removed_customers)"]


_SHUFFLE = ["order = removed_customers[:]", "rng.shuffle(order)"]


def _key(name: str, jitter: float, keyed: Keyed) -> str:
    expression = keyed[name][0]
    return f"{expression} * rng.uniform({1 - jitter:g}, {1 + jitter:g})" if jitter else expression


def _one_order(name: str, jitter: float, keyed: Keyed) -> tuple[list[str], str]:
    """(lines that set `order`, phrase)"""
    if name == "random":
        return _SHUFFLE, "in random order"
    if name == "given":
        lines = ["k = rng.randrange(len(removed_customers))"]
        lines += ["order = removed_customers[k:] + removed_customers[:k]"]
        return lines, "in the order of the old routes from a random customer on"
    if name == "chain":
        return [
            "waiting = removed_customers[:]",
            "order = [waiting.pop(rng.randrange(len(waiting)))]",
            "while waiting:",
            "    row = dist[order[-1]]",
            "    i = min(range(len(waiting)), key=lambda i: row[waiting[i]])",
            "    order.append(waiting.pop(i))",
        ], "each followed by the removed customer nearest to it, from a random one on"
    lines = ["order = removed_customers[:]"]
    lines += [f"order.sort(key=lambda node: {_key(name, jitter, keyed)})"]
    noisy = " (with a random factor)" if jitter else ""
    return lines, f"{keyed[name][1]}{noisy}"


def order_lines(choices: Choices, places: Places) -> tuple[list[str], list[str], str]:
    """(lines before the tries, lines that set `order`, phrase)."""
    jitter, keyed = float(choices.get("jitter", 0)), places.keyed
    name, second = str(choices["order"]), str(choices.get("order_2", NONE))
    if name == "turns":
        rules = str(choices["rules"]).split()
        lines, phrase = _turns(rules, str(choices["turn_by"]), jitter, keyed)
        return _stakes(rules, places), lines, phrase
    lines, phrase = _one_order(name, jitter, keyed)
    if second != NONE:
        test, when = condition(str(choices["order_mix"]))
        others, other_phrase = _one_order(second, jitter, keyed)
        lines = [f"if {test}:", *indent(lines), "else:", *indent(others)]
        phrase = f"{phrase}, or {when} {other_phrase}"
    return _stakes([name, second], places), lines, phrase


def _turns(rules: list[str], by: str, jitter: float, keyed: Keyed) -> tuple[list[str], str]:
    """Several orders in turn; "random" is always the first of `rules`."""
    lines = [*_SHUFFLE, f"turn = {'attempt' if by == 'attempt' else STATE} % {len(rules)}"]
    for i, name in enumerate(rules[1:], start=1):
        lines.append(f"{'if' if i == 1 else 'elif'} turn == {i}:")
        lines.append(f"    order.sort(key=lambda node: {_key(name, jitter, keyed)})")
    named = ", ".join(keyed[name][1] for name in rules[1:])
    every = "from try to try" if by == "attempt" else "with every step without improvement"
    return lines, f"in an order that changes {every} (random, {named})"


def _stakes(names: list[str], places: Places) -> list[str]:
    name = next((name for name in names if name in STAKED), None)
    if name is None:
        return []
    return ["stake = {}", "for node in removed_customers:", *indent(_stake(name, places))]


def change_lines(choices: Choices) -> tuple[list[str], str]:
    """(lines that alter `order`, a copy of the best order so far; phrase)."""
    retry = str(choices["retry"])
    if retry == "rotate":
        return [
            "k = rng.randrange(len(order))",
            "order = order[k:] + order[:k]",
        ], "start the best order so far at another customer"
    if retry == "reverse":
        return [
            "i = rng.randrange(len(order))",
            "j = i + rng.randint(2, 6)",
            "order[i:j] = order[i:j][::-1]",
        ], "reverse a short stretch of the best order so far"
    count, count_phrase = amount(choices, "moves")
    if retry == "promote":
        body = [
            "node = max(rng.choices(order, k=3), key=lambda node: best_paid[node])",
            "i = order.index(node)",
            "order.insert(rng.randrange(i + 1), order.pop(i))",
        ]
        phrase = f"bring expensive customers (how many: {count_phrase}) forward in the best order"
    elif retry == "swap":
        body = [
            "i, j = rng.randrange(len(order)), rng.randrange(len(order))",
            "order[i], order[j] = order[j], order[i]",
        ]
        phrase = f"swap customers (pairs: {count_phrase}) of the best order so far"
    else:
        body = ["order.insert(rng.randrange(len(order)), order.pop(rng.randrange(len(order))))"]
        phrase = f"move customers (how many: {count_phrase}) within the best order so far"
    return (body if count == "1" else [f"for _ in range({count}):", *indent(body)]), phrase


# --- the place of one customer --------------------------------------------------------------------


def near_lines(choices: Choices) -> tuple[list[str], str]:
    """(lines that list each removed customer's neighbours, phrase) of a limited scope."""
    width, phrase = amount(choices, "width")
    return [
        f"width = {width}",
        "near = {}",
        "for node in removed_customers:",
        "    row = dist[node]",
        "    near[node] = sorted(range(1, len(dist)), key=lambda other: row[other])[:width]",
        "homes = {node: r for r, route in enumerate(routes) for node in route}",
    ], f"in a route that visits one of its nearest customers (how many: {phrase})"


def _blink(choices: Choices) -> str:
    return " or (route and rng.random() < blink)" if choices.get("scope") == "blink" else ""


def _score_lines(choices: Choices) -> list[str]:
    """Lines that set `score`, by which places are compared; none where it is the cost itself."""
    lines = []
    if choices["fresh"] != "1":
        lines.append(f"score = cost if route else {choices['fresh']} * cost")
    if choices["noise"] != "0":
        value = "cost * (1 + noise * rng.random())"
        lines.append(f"score *= {value[7:]}" if lines else f"score = {value}")
    if choices["fit"] != NONE:
        sign = "+" if choices["fit"] == "tight" else "-"
        term = f"{choices['fit_weight']} * dist[0][node] * (left[r] - need) / capacity"
        lines.append(f"score {sign}= {term}" if lines else f"score = cost {sign} {term}")
    return lines


def _look_up(result: str, several: bool, places: Places) -> list[str]:
    found = places.find.format("route")
    if not several:
        return [f"{result} = {found}"]
    return [
        "if (node, route) not in known:",
        f"    known[node, route] = {found}",
        f"{result} = known[node, route]",
    ]


def insert_lines(choices: Choices, several: bool, own: Places) -> list[str]:
    """Insert every customer of `order` into `trial`, with several tries adding up `total`."""
    near, score = choices["scope"] == "near", _score_lines(choices)
    promote = choices["retry"] == "promote"
    if score:
        paid = "cheapest"
        compare = [*score, "if score < lowest:"]
        compare += ["    lowest, cheapest, chosen, at = score, cost, r, place"]
    else:
        paid = "lowest"
        compare = ["if cost < lowest:", "    lowest, chosen, at = cost, r, place"]
    places = [
        f"if left[r] < need{_blink(choices)}:",
        "    continue",
        *_look_up("cost, place", several, own),
        *compare,
    ]
    loop = ["for r, route in enumerate(trial):"]
    if near:
        loop = ["nearby = {home[other] for other in near[node] if other in home}"]
        loop += ["for r in [*nearby, len(trial) - 1]:"]
        places = ["route = trial[r]", *places]
    body = ["need = demands[node]", 'lowest = float("inf")', *loop, *indent(places)]
    if several:
        body += [f"total += {paid}", "if total > best_cost:", "    break"]
        body += [f"paid[node] = {paid}"] if promote else []
    body += [
        "route = trial[chosen]",
        "trial[chosen] = (*route[:at], node, *route[at:])",
        "left[chosen] -= need",
        *(["home[node] = chosen"] if near else []),
        "if not route:",
        "    trial.append(())",
        "    left.append(capacity)",
    ]
    start = ["trial, left = [*routes, ()], [*room, capacity]"]
    start += ["home = dict(homes)"] if near else []
    start += ["total = 0.0"] if several else []
    start += ["paid = {}"] if several and promote else []
    return [*start, "for node in order:", *indent(body)]


# --- insertion by regret --------------------------------------------------------------------------


def criterion(choices: Choices) -> tuple[list[str], int, str]:
    """(lines that set `score` from the sorted `costs`, how many costs it needs, phrase)."""
    kind, _, value = str(choices["criterion"]).partition(" ")
    if kind == "cheapest":
        score, depth, phrase = "-costs[0]", 1, "the lowest insertion cost"
    elif kind == "dearest":
        score, depth, phrase = "costs[0]", 1, "the highest insertion cost"
    elif kind == "weighted":
        score, depth = f"costs[1] - {1 + float(value):g} * costs[0]", 2
        phrase = f"the largest regret less {value} of its insertion cost"
    elif value == "2":
        score, depth = "costs[1] - costs[0]", 2
        phrase = "the largest gap between its two cheapest routes"
    else:
        depth = int(value)
        score = f"sum(costs[1:{depth}]) - {depth - 1} * costs[0]"
        phrase = f"the largest regret over its {value} cheapest routes"
    lines = [f"score = {score}"]
    if choices.get("heavy", "0") != "0":
        power = "" if choices["heavy"] == "1" else f" ** {choices['heavy']}"
        lines.append(f"score *= demands[node]{power}")
        phrase += f" times its demand{' to the power ' + power[4:] if power else ''}"
    if choices["noise"] != "0":
        lines.append("score *= 1 + noise * rng.random()")
        phrase += " (with a random factor)"
    return lines, depth, phrase


def regret_lines(choices: Choices, several: bool, own: Places) -> list[str]:
    """Insert all removed customers into `trial`, the highest score first."""
    score, depth, _ = criterion(choices)
    costs = "[cost for cost, place in places.values()]"
    if depth > 1:  # the fleet is free, so there are always more new routes
        costs += f" + {depth - 1} * [2 * dist[0][node]]"
    step = [
        'highest = -float("inf")',
        "for node, places in waiting.items():",
        "    for r in changed:",
        "        route = trial[r]",
        "        places.pop(r, None)",
        f"        if left[r] < demands[node]{_blink(choices)}:",
        "            continue",
        *indent(_look_up("places[r]", several, own), 2),
        f"    costs = sorted({costs})",
        *indent(score),
        "    if score > highest:",
        "        highest, chosen = score, node",
        "places = waiting.pop(chosen)",
        "r = min(places, key=places.get)",
        "cost, at = places[r]",
        *(["total += cost", "if total > best_cost:", "    break"] if several else []),
        "route = trial[r]",
        "trial[r] = (*route[:at], chosen, *route[at:])",
        "left[r] -= demands[chosen]",
        "changed = [r]",
        "if not route:",
        "    trial.append(())",
        "    left.append(capacity)",
        "    changed.append(r + 1)",
    ]
    return [
        "trial, left = [*routes, ()], [*room, capacity]",
        *(["total = 0.0"] if several else []),
        "waiting = {node: {} for node in removed_customers}",
        "changed = range(len(trial))",
        "while waiting:",
        *indent(step),
    ]
