"""Blocks of source for the CVRP repair grammar: insertion orders, tries, places and regret.

A program keeps its routes as tuples of customers, so that the cheapest place of a customer in a
route is computed once a call and looked up afterwards: tries share it, and after an insertion only
the changed route costs anything new. A new route is one more place, at twice the distance to the
depot: the fleet is free.
"""

from spo_jax.search.grammar.base import Choices
from spo_jax.search.grammar.cvrp_pieces import NONE, STATE, condition
from spo_jax.search.grammar.tsp_pieces import amount, function, indent

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
RESULT = "return [list(route) for route in {}]"

# --- insertion orders -----------------------------------------------------------------------------

# order -> (sort key, lines that compute stake[node] from `row`, phrase)
KEYED: dict[str, tuple[str, list[str], str]] = {
    "far": ("-dist[0][node]", [], "by decreasing distance from the depot"),
    "near": ("dist[0][node]", [], "by increasing distance from the depot"),
    "demand": ("-demands[node]", [], "by decreasing demand"),
    "bulky": (
        "-demands[node] * dist[0][node]",
        [],
        "by decreasing product of demand and depot distance",
    ),
    "regret": (
        "-stake[node]",
        [
            "open_routes = [r for r, route in enumerate(routes) if room[r] >= demands[node]]",
            "costs = sorted(find_place(dist, routes[r], node)[0] for r in open_routes)",
            "costs += 2 * [2 * dist[0][node]]",
            "stake[node] = costs[1] - costs[0]",
        ],
        "by decreasing gap between their two cheapest routes",
    ),
    "costly": (
        "-stake[node]",
        [
            "costs = [find_place(dist, route, node)[0] for route in routes]",
            "stake[node] = min(costs, default=0.0)",
        ],
        "by decreasing insertion cost",
    ),
    "lonely": (
        "-stake[node]",
        ["stake[node] = sum(row[other] for other in removed_customers)"],
        "by decreasing distance from the other removed customers",
    ),
}
STAKED = ("regret", "costly", "lonely")
_SHUFFLE = ["order = removed_customers[:]", "rng.shuffle(order)"]


def _key(name: str, jitter: float) -> str:
    expression = KEYED[name][0]
    return f"{expression} * rng.uniform({1 - jitter:g}, {1 + jitter:g})" if jitter else expression


def _one_order(name: str, jitter: float) -> tuple[list[str], str]:
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
    lines += [f"order.sort(key=lambda node: {_key(name, jitter)})"]
    noisy = " (with a random factor)" if jitter else ""
    return lines, f"{KEYED[name][2]}{noisy}"


def order_lines(choices: Choices) -> tuple[list[str], list[str], str]:
    """(lines before the tries, lines that set `order`, phrase)."""
    jitter = float(choices.get("jitter", 0))
    name, second = str(choices["order"]), str(choices.get("order_2", NONE))
    if name == "turns":
        rules = str(choices["rules"]).split()
        lines, phrase = _turns(rules, str(choices["turn_by"]), jitter)
        return _stakes(rules), lines, phrase
    lines, phrase = _one_order(name, jitter)
    if second != NONE:
        test, when = condition(str(choices["order_mix"]))
        others, other_phrase = _one_order(second, jitter)
        lines = [f"if {test}:", *indent(lines), "else:", *indent(others)]
        phrase = f"{phrase}, or {when} {other_phrase}"
    return _stakes([name, second]), lines, phrase


def _turns(rules: list[str], by: str, jitter: float) -> tuple[list[str], str]:
    """Several orders in turn; "random" is always the first of `rules`."""
    lines = [*_SHUFFLE, f"turn = {'attempt' if by == 'attempt' else STATE} % {len(rules)}"]
    for i, name in enumerate(rules[1:], start=1):
        lines.append(f"{'if' if i == 1 else 'elif'} turn == {i}:")
        lines.append(f"    order.sort(key=lambda node: {_key(name, jitter)})")
    named = ", ".join(KEYED[name][2] for name in rules[1:])
    every = "from try to try" if by == "attempt" else "with every step without improvement"
    return lines, f"in an order that changes {every} (random, {named})"


def _stakes(names: list[str]) -> list[str]:
    name = next((name for name in names if name in STAKED), None)
    if name is None:
        return []
    body = KEYED[name][1]
    row = ["row = dist[node]"] if name == "lonely" else []
    return ["stake = {}", "for node in removed_customers:", *indent([*row, *body])]


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
    return " or rng.random() < blink" if choices.get("scope") == "blink" else ""


def scored(choices: Choices) -> bool:
    """Whether places are compared by a score that is not their cost."""
    return choices["fit"] != NONE or choices["noise"] != "0"


def insert_lines(choices: Choices, several: bool) -> list[str]:
    """Insert every customer of `order` into `trial`, with several tries adding up `total`."""
    near, score = choices["scope"] == "near", scored(choices)
    dear = choices["fresh"] != "1"
    first = {"1": "cheapest", "last": 'float("inf")'}.get(
        str(choices["fresh"]), f"{choices['fresh']} * cheapest"
    )
    lowest = score or dear  # then the compared number is not the cost itself
    look_up = ["cost, place = find_place(dist, route, node)"]
    if several:
        look_up = [
            "if (node, route) not in known:",
            "    known[node, route] = find_place(dist, route, node)",
            "cost, place = known[node, route]",
        ]
    compare = ["if cost < cheapest:", "    cheapest, chosen, at = cost, r, place"]
    if lowest:
        value = "score" if score else "cost"
        compare = [*([f"score = {_score(choices)}"] if score else []), f"if {value} < lowest:"]
        compare += [f"    lowest, cheapest, chosen, at = {value}, cost, r, place"]
    places = [
        f"if left[r] < need{_blink(choices)}:",
        "    continue",
        *look_up,
        *compare,
    ]
    if near:
        loop = ["for r in {home[other] for other in near[node] if other in home}:"]
        places = ["route = trial[r]", *places]
    else:
        loop = ["for r, route in enumerate(trial):"]
    body = ["need = demands[node]"]
    if lowest:
        body += ["cheapest = 2 * dist[0][node]", f"lowest, chosen = {first}, None"]
    else:
        body += ["cheapest, chosen = 2 * dist[0][node], None"]
    body += [*loop, *indent(places)]
    if several:
        body += ["total += cheapest", "if total > best_cost:", "    break"]
        if choices["retry"] == "promote":
            body += ["paid[node] = cheapest"]
    body += [
        "if chosen is None:",
        *(["    chosen = len(trial)"] if near else []),
        "    trial.append((node,))",
        "    left.append(capacity - need)",
        "else:",
        "    route = trial[chosen]",
        "    trial[chosen] = (*route[:at], node, *route[at:])",
        "    left[chosen] -= need",
        *(["home[node] = chosen"] if near else []),
    ]
    start = ["trial, left = routes[:], room[:]"]
    if near:
        start += ["home = dict(homes)"]
    if several:
        start += ["total = 0.0", *(["paid = {}"] if choices["retry"] == "promote" else [])]
    return [*start, "for node in order:", *indent(body)]


def _score(choices: Choices) -> str:
    score = "cost" if choices["noise"] == "0" else "cost * (1 + noise * rng.random())"
    if choices["fit"] != NONE:
        sign = "+" if choices["fit"] == "tight" else "-"
        score += f" {sign} {choices['fit_weight']} * dist[0][node] * (left[r] - need) / capacity"
    return score


# --- insertion by regret --------------------------------------------------------------------------


def criterion(choices: Choices) -> tuple[list[str], str, str]:
    """(lines that set `score` from the sorted `costs`, how many costs it needs, phrase)."""
    kind, _, value = str(choices["criterion"]).partition(" ")
    if kind == "cheapest":
        score, depth, phrase = "-costs[0]", "1", "the lowest insertion cost"
    elif kind == "dearest":
        score, depth, phrase = "costs[0]", "1", "the highest insertion cost"
    elif kind == "weighted":
        score, depth = f"costs[1] - {1 + float(value):g} * costs[0]", "2"
        phrase = f"the largest regret less {value} of its insertion cost"
    elif value == "2":
        score, depth = "costs[1] - costs[0]", "2"
        phrase = "the largest gap between its two cheapest routes"
    else:
        score, depth = f"sum(costs[1:{value}]) - {int(value) - 1} * costs[0]", value
        phrase = f"the largest regret over its {value} cheapest routes"
    if choices["noise"] != "0":
        score = f"({score})" if " " in score else score
        score += " * (1 + noise * rng.random())"
        phrase += " (with a random factor)"
    return [f"score = {score}"], depth, phrase


def regret_lines(choices: Choices, several: bool) -> list[str]:
    """Insert all removed customers into `trial`, the highest score first."""
    score, depth, _ = criterion(choices)
    fresh = (
        "2 * dist[0][node]"
        if choices["fresh"] == "1"
        else f"{2 * float(str(choices['fresh'])):g} * dist[0][node]"
    )
    look_up = ["places[r] = find_place(dist, route, node)"]
    if several:
        look_up = [
            "if (node, route) not in known:",
            "    known[node, route] = find_place(dist, route, node)",
            "places[r] = known[node, route]",
        ]
    refresh = [
        "for r in changed:",
        "    route = trial[r]",
        "    places.pop(r, None)",
        f"    if left[r] < demands[node]{_blink(choices)}:",
        "        continue",
        *indent(look_up),
    ]
    rank = [
        f"fresh = {fresh}",
        f"costs = sorted([cost for cost, place in places.values()] + {depth} * [fresh])",
        *score,
        "if score > highest:",
        "    highest, chosen = score, node",
    ]
    step = [
        'highest, chosen = -float("inf"), None',
        "for node, places in waiting.items():",
        *indent([*refresh, *rank]),
        "places, need = waiting.pop(chosen), demands[chosen]",
        "r = min(places, key=places.get, default=None)",
        f"if r is None or places[r][0] > {fresh.replace('node', 'chosen')}:",
        "    r = len(trial)",
        "    trial.append((chosen,))",
        "    left.append(capacity - need)",
        *(["    total += 2 * dist[0][chosen]"] if several else []),
        "else:",
        "    cost, at = places[r]",
        "    trial[r] = (*trial[r][:at], chosen, *trial[r][at:])",
        "    left[r] -= need",
        *(["    total += cost"] if several else []),
        "changed = [r]",
        *(["if total > best_cost:", "    break"] if several else []),
    ]
    return [
        "trial, left = routes[:], room[:]",
        *(["total = 0.0"] if several else []),
        "waiting = {node: {} for node in removed_customers}",
        "changed = range(len(trial))",
        "while waiting:",
        *indent(step),
    ]
