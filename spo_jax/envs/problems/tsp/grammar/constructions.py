"""Whole TSP repair programs: insertion in an order, by regret, or from a cost matrix."""

from spo_jax.envs.problems.tsp.grammar.insertions import (
    FINISH,
    FOLLOW,
    MATRIX,
    find_place,
    insert_lines,
    limited,
    look_up,
    matrix_lines,
    near_lines,
    reconsider,
    reconsider_call,
    regret_lines,
    score_expression,
)
from spo_jax.program.grammar.base import Choices
from spo_jax.program.grammar.pieces import amount, at_most, function, indent, module, sentence

_TO_KEPT = "key[node] = min([row[other] for other in partial_tour])"
_TO_REMOVED = "key[node] = sum([row[other] for other in removed_nodes])"
_COSTS = "[row[a] + row[b] - dist[a][b] for a, b in follow.items()]"
_GAP = f"costs = sorted({_COSTS})\nkey[node] = costs[min(1, len(costs) - 1)] - costs[0]"

# order -> (lines that compute key[node], the sign that puts it first, phrase)
KEYED = {
    "farthest": (_TO_KEPT, "-", "the node farthest from the kept tour"),
    "nearest": (_TO_KEPT, "", "the node nearest to the kept tour"),
    "outer": (_TO_REMOVED, "-", "the node farthest from the other removed nodes"),
    "inner": (_TO_REMOVED, "", "the node nearest to the other removed nodes"),
    "costly": (f"key[node] = min({_COSTS})", "-", "the node with the highest insertion cost"),
    "regret": (_GAP, "-", "the node with the largest gap between its two cheapest places"),
}


def render(choices: Choices) -> tuple[str, str]:
    """(strategy sentence, source) of a derivation."""
    build = {"ordered": _ordered, "regret": _regret, "matrix": _matrix}[str(choices["insert"])]
    what, helpers, lines = build(choices)
    header = "def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):"
    return sentence(f"{what}."), module([*helpers, function(header, lines)])


def _several(choices: Choices) -> bool:
    return at_most(choices, "tries") > 1


def _tries_lines(choices: Choices, work: str) -> list[str]:
    tries, _ = amount(choices, "tries")
    line = f"tries = max(1, min({tries}, {choices['budget']} // {work}))"
    if len(line) <= 84:
        return [line]
    return [f"limit = {choices['budget']} // {work}", f"tries = max(1, min({tries}, limit))"]


def _tries_phrase(choices: Choices, how: str) -> str:
    if not _several(choices):
        return ""
    return f"; make several tries ({amount(choices, 'tries')[1]}){how} and keep the shortest"


def _work(choices: Choices) -> str:
    """How many edges one try looks at, roughly."""
    if limited(choices):
        return "len(removed_nodes) ** 2"
    return "len(removed_nodes) // len(partial_tour)"


def _scope(choices: Choices) -> tuple[list[str], str]:
    """(lines before the first insertion, phrase) of where a node may go."""
    if not limited(choices):
        return [FOLLOW], "anywhere in the tour"
    width, phrase = amount(choices, "width")
    where = f"next to one of its cheapest edges (how many: {phrase}) or a node inserted before"
    return [FOLLOW, *near_lines(choices, width)], where


def _order(choices: Choices, pool: str) -> tuple[list[str], str, str]:
    """(lines that compute the keys, expression of an order of `pool`, phrase)."""
    name = str(choices["order"])
    if name == "random":
        return [], f"rng.sample({pool}, len({pool}))", "in random order"
    if name == "given":
        return [], f"{pool}[:]", "in the order of the old tour"
    body, sign, phrase = KEYED[name]
    lines = ["key = {}", "for node in removed_nodes:", "    row = dist[node]"]
    lines += indent(body.split("\n"))
    return lines, f"sorted({pool}, key=lambda node: {sign}key[node])", f"{phrase} first"


def _reorder(choices: Choices, pool: str, ordered: str) -> tuple[list[str], list[str], str]:
    """(lines before the tries, lines that begin a try, phrase)."""
    retry = choices["retry"]
    if retry == "mutate":
        moves = choices["shake"]
        move = "order.insert(rng.randrange(len(order)), order.pop(rng.randrange(len(order))))"
        again = ["order = best_order[:]", "if attempt > 0:"]
        again += indent([move] if moves == 1 else [f"for _ in range({moves}):", f"    {move}"])
        count = "one node" if moves == 1 else f"{moves} nodes"
        return [f"best_order = {ordered}"], again, f" that move {count} of the best order so far"
    if retry == "perturb":
        key = f"key[node] * (1 + {choices['shake']} * rng.random())"
        return [], [f"order = {ordered.replace('key[node]', key)}"], " with that order perturbed"
    if choices["order"] == "random":
        return [f"order = {pool}[:]"], ["rng.shuffle(order)"], ""
    again = ["if attempt > 0:", "    rng.shuffle(order)"]
    return [f"order = {ordered}"], again, ", the others in random order"


_KEEP_BEST = ["if total < best_cost:", "    best_cost = total", "    best = trial"]
_POLISH = {
    "none": "",
    "each": ", after each try moving every inserted node once more to its cheapest place",
    "end": ", and at the end move every inserted node once more to its cheapest place",
}


def _ordered(choices: Choices) -> tuple[str, list[str], list[str]]:
    grouped, several = choices.get("group") == "rivals", _several(choices)
    polish = choices.get("polish", "none")
    pool = "group" if grouped else "removed_nodes"
    before, where = _scope(choices)
    keys, ordered, order_phrase = _order(choices, pool)
    lines = [*before, *keys]
    helpers = [find_place(choices), reconsider(choices)] if polish != "none" else []
    fresh = ["inserted = []"] if limited(choices) else []
    how = ""
    if several:
        lines += _tries_lines(choices, _work(choices))
        first, again, how = _reorder(choices, pool, ordered)
        start = "start" if grouped else "follow"
        attempt = [*again, f"trial = {start}.copy()", *fresh, "total = 0.0"]
        attempt += insert_lines(choices, True, prune=polish != "each")
        if polish == "each":
            attempt.append(f"total -= {reconsider_call(choices, 'trial', 'order')}")
        attempt += _KEEP_BEST
        if choices["retry"] == "mutate":
            attempt.append("    best_order = order")
        search = [*first, 'best_cost = float("inf")', "for attempt in range(tries):"]
        search += indent(attempt)
    else:
        search = [f"order = {ordered}", "trial = follow.copy()", *fresh]
        search += [*insert_lines(choices, False, prune=False), "best = trial"]
        if polish == "each":
            search.append(reconsider_call(choices, "best", "order"))
    lines += _groups(search) if grouped else search
    if polish == "end":
        lines.append(reconsider_call(choices, "best", "removed_nodes"))
    what = f"Insert the removed nodes one at a time, {order_phrase}"
    if grouped:
        what = "Split the removed nodes into groups that compete for the same edges and insert each"
        what += f" group one node at a time, {order_phrase}"
    what += f", each at its cheapest place {where}"
    if choices["noise"]:
        what += f" (costs with up to {round(100 * float(choices['noise']))}% noise)"
    if choices.get("blink"):
        what += f" (a better place is overlooked with probability {choices['blink']})"
    what += _tries_phrase(choices, how) + (" for each group" if grouped else "")
    return what + _POLISH[str(polish)], helpers, [*lines, *FINISH]


def _groups(search: list[str]) -> list[str]:
    """Groups of nodes without an edge in common can be settled one after the other."""
    return [
        "best = follow",
        "waiting = removed_nodes[:]",
        "while waiting:",
        "    group = [waiting.pop()]",
        "    for member in group:",
        "        edges = set(near[member])",
        "        group += [node for node in waiting if not edges.isdisjoint(near[node])]",
        "        waiting = [node for node in waiting if node not in group]",
        "    start = best",
        *indent(search),
    ]


def _noise_lines(choices: Choices) -> tuple[list[str], str]:
    """(lines that set `noise`, phrase) of how scores are randomised; the first try is plain."""
    ties = str(choices["ties"])
    if ties == "0":
        return [], ""
    if ties.startswith("grow"):
        stagnation = f"steps_since_improvement / {ties.split()[1]}"
        if _several(choices):
            noise = f"noise = min(attempt, 1 + {stagnation})"
            return [noise], ", scores randomised more in later tries and with stagnation"
        return [f"noise = min(1, {stagnation})"], ", scores randomised more with stagnation"
    plain_first = " if attempt > 0 else 0" if _several(choices) else ""
    percent = round(100 * float(ties))
    return [f"noise = {ties}{plain_first}"], f", scores raised by up to {percent}% at random"


def _score_loop(choices: Choices, start: list[str], insert: list[str]) -> list[str]:
    """One construction, or several tries of it of which the cheapest is kept."""
    noise, _ = _noise_lines(choices)
    if not _several(choices):
        return [*noise, *start, *insert]
    attempt = indent([*noise, *start, *insert])
    return ['best_cost = float("inf")', "for attempt in range(tries):", *attempt]


def _regret(choices: Choices) -> tuple[str, list[str], list[str]]:
    several, polish = _several(choices), choices["polish"]
    before, where = _scope(choices)
    score, score_phrase = score_expression(choices)
    _, noise_phrase = _noise_lines(choices)
    helpers = [look_up(choices)]
    if polish != "none":
        helpers += [find_place(choices), reconsider(choices)]
    start = ["trial = follow.copy()", *(["inserted = []"] if limited(choices) else [])]
    insert = regret_lines(choices, score, prune=several and polish != "each")
    if several:
        lines = [*before, *_tries_lines(choices, _work(choices))]
        start.append("total = 0.0")
        if polish == "each":
            insert.append(f"total -= {reconsider_call(choices, 'trial', 'removed_nodes')}")
        insert += _KEEP_BEST
    else:
        lines = before
        insert = [line for line in insert if "total" not in line]
        if polish == "each":
            insert.append(reconsider_call(choices, "trial", "removed_nodes"))
        insert.append("best = trial")
    lines = [*lines, *_score_loop(choices, start, insert)]
    if polish == "end":
        lines.append(reconsider_call(choices, "best", "removed_nodes"))
    what = f"Insert next the removed node with {score_phrase}, at its cheapest place {where}"
    what += noise_phrase + _tries_phrase(choices, "") + _POLISH[str(polish)]
    return what, helpers, [*lines, *FINISH]


def _matrix(choices: Choices) -> tuple[str, list[str], list[str]]:
    several = _several(choices)
    noise, noise_phrase = _noise_lines(choices)
    insert, phrase = matrix_lines(choices, bool(noise))
    lines = list(MATRIX)
    if several:
        lines += _tries_lines(choices, "len(removed_nodes) ** 2 // len(partial_tour)")
        insert += ["if total < best_cost:", "    best_cost = total", "    best = tour"]
        lines += _score_loop(choices, ["total = 0.0"], insert)
        lines.append("return best")
    else:
        insert = [line for line in insert if "total" not in line]
        lines += [*_score_loop(choices, [], insert), "return tour"]
    what = f"Insert next, from a matrix of all insertion costs, the removed node with {phrase}"
    return what + noise_phrase + _tries_phrase(choices, ""), [], lines
