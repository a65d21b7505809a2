"""The grammar of VRPTW repair programs: the CVRP's, with places that are in time.

A program knows of each route when a vehicle can leave each stop and until when it must have
arrived at the next one, so that a place is checked without going through the route. Of the orders,
two more go by time windows.
"""

from spo_jax.envs.problems.cvrp.grammar.insertions import KEYED, Places
from spo_jax.envs.problems.cvrp.grammar.repair import CVRP_RULES, Repairs
from spo_jax.program.grammar.pieces import function

_LEGS = function(
    "def legs_of(dist, ready, due, service, route):",
    [
        "latest, ends = due[0], []",
        "for node, after in zip(route[::-1], (0, *route[:0:-1])):",
        "    ends.append(latest)",
        "    latest = min(due[node], latest - dist[node][after] - service[node])",
        "ends.append(latest)",
        "legs, before, leaves = [], 0, ready[0]",
        "for after in (*route, 0):",
        "    length = dist[before][after]",
        "    legs.append((before, after, length, leaves, ends.pop()))",
        "    leaves = max(leaves + length, ready[after]) + service[after]",
        "    before = after",
        "return legs",
    ],
)
_FIND_PLACE = function(
    "def find_place(dist, ready, due, service, legs, route, node):",
    [
        "if route not in legs:",
        "    legs[route] = legs_of(dist, ready, due, service, route)",
        "row, opens, closes, stay = dist[node], ready[node], due[node], service[node]",
        'cheapest, place = float("inf"), 0',
        "for i, (before, after, length, leaves, latest) in enumerate(legs[route]):",
        "    begins = leaves + row[before]",
        "    if begins > closes:",
        "        break",
        "    cost = row[before] + row[after] - length",
        "    if cost < cheapest and max(begins, opens) + stay + row[after] <= latest:",
        "        cheapest, place = cost, i",
        "return cheapest, place",
    ],
)
_TIMELY = {
    "urgent": ("due[node]", "by increasing due time"),
    "narrow": ("due[node] - ready[node]", "by increasing width of their time windows"),
}
_RULES = ("random urgent", "random narrow far", "random urgent regret", "random far urgent narrow")

GRAMMAR = Repairs(
    "vrptw",
    "def repair(dist, demands, capacity, ready, due, service, partial_routes,\n"
    "           removed_customers, steps_since_improvement, rng):",
    Places(
        (_LEGS, _FIND_PLACE),
        ("legs = {}",),
        "find_place(dist, ready, due, service, legs, {}, node)",
        {**KEYED, **_TIMELY},
    ),
    {**CVRP_RULES, **dict.fromkeys(_RULES, 1.5)},
).grammar()
