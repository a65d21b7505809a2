"""Source blocks of the TSP repair grammar: where a node may go, and how a program looks for it.

A tour under construction is a dict `trial` from each node to the one that follows it, so an edge
is named by the node it starts at and an insertion is two assignments.
"""

from spo_jax.program.grammar.base import Choices
from spo_jax.program.grammar.pieces import function, indent

FOLLOW = "follow = dict(zip(partial_tour, partial_tour[1:] + partial_tour[:1]))"
FINISH = [
    "complete_tour = [partial_tour[0]]",
    "while len(complete_tour) < len(best):",
    "    complete_tour.append(best[complete_tour[-1]])",
    "return complete_tour",
]


def limited(choices: Choices) -> bool:
    """Whether each node looks at a few near edges only."""
    return choices["scope"] != "all"


def near_lines(choices: Choices, width: str) -> list[str]:
    """Lines that give each removed node its list near[node] of the cheapest edges' starts."""
    lines = [] if width.isdigit() else [f"width = {width}"]
    kept = width if width.isdigit() else "width"
    if choices["ranking"] == "sorted":
        return [
            *lines,
            "near = {}",
            "for node in removed_nodes:",
            "    row = dist[node]",
            "    added = {a: row[a] + row[b] - dist[a][b] for a, b in follow.items()}",
            f"    near[node] = sorted(added, key=added.get)[:{kept}]",
        ]
    return [
        *lines,
        "stops = np.array(partial_tour + partial_tour[:1])",
        "lengths = np.array([dist[a][b] for a, b in follow.items()])",
        "near = {}",
        "for node in removed_nodes:",
        "    to = np.array(dist[node])[stops]",
        "    ranked = np.argsort(to[:-1] + to[1:] - lengths)",
        f"    near[node] = stops[ranked[:{kept}]].tolist()",
    ]


def places(choices: Choices) -> str:
    """The expression of the edge starts that `node` may be inserted after."""
    return "near[node] + inserted" if limited(choices) else "trial"


def _scan(choices: Choices, starts: str) -> list[str]:
    """Lines that find the cheapest place of `node`, with noise or blinks if chosen."""
    noise, blink = float(choices.get("noise", 0)), float(choices.get("blink", 0))
    compared = "noisy" if noise else "cost"
    test = f"if {compared} < cheapest:"
    if blink:
        test = f"if cost < cheapest and (place is None or rng.random() > {blink}):"
    return [
        "row = dist[node]",
        'cheapest = float("inf")',
        *(["place = None"] if blink else []),
        f"for a in {starts}:",
        "    b = trial[a]",
        "    cost = row[a] + row[b] - dist[a][b]",
        *([f"    noisy = cost * (1 + {noise} * rng.random())"] if noise else []),
        f"    {test}",
        f"        cheapest = {compared}",
        *(["        added = cost"] if noise else []),
        "        place = a",
    ]


def find_place(choices: Choices) -> str:
    """The helper that finds the cheapest place, for insertions that are reconsidered later."""
    body = [*_scan(choices, "starts"), "return place, cheapest"]
    return function("def find_place(dist, trial, node, starts):", body)


def insert_lines(choices: Choices, several: bool, prune: bool) -> list[str]:
    """Insert every node of `order` into `trial`, with several tries adding up `total`."""
    polished = choices.get("polish", "none") != "none"
    if not polished and not (several or choices["noise"] or choices.get("blink")):
        find = [
            "row = dist[node]",
            f"starts = {places(choices)}",
            "place = min(starts, key=lambda a: row[a] + row[trial[a]] - dist[a][trial[a]])",
        ]
    elif not polished:
        find = _scan(choices, places(choices))
        added = "added" if choices["noise"] else "cheapest"
        if not several:
            find = [line for line in find if "added" not in line]
    else:
        added = "added"
        find = [f"place, added = find_place(dist, trial, node, {places(choices)})"]
    body = [
        *find,
        "trial[node] = trial[place]",
        "trial[place] = node",
        *(["inserted.append(node)"] if limited(choices) else []),
        *([f"total += {added}"] if several else []),
        *(["if total >= best_cost:", "    break"] if prune else []),
    ]
    return ["for node in order:", *indent(body)]


def reconsider(choices: Choices) -> str:
    """The helper that takes each inserted node out once more and puts it where it is cheapest."""
    near = ", near" if limited(choices) else ""
    others = ["    inserted = [a for a in nodes if a != node]"] if limited(choices) else []
    body = [
        "saved = 0.0",
        "before = {b: a for a, b in trial.items()}",
        "for node in nodes:",
        "    a, b = before[node], trial[node]",
        "    saved += dist[a][node] + dist[node][b] - dist[a][b]",
        "    trial[a] = b",
        "    before[b] = a",
        "    del trial[node]",
        *others,
        f"    place, added = find_place(dist, trial, node, {places(choices)})",
        "    saved -= added",
        "    trial[node] = trial[place]",
        "    before[trial[node]] = node",
        "    trial[place] = node",
        "    before[node] = place",
        "return saved",
    ]
    return function(f"def reconsider(dist, trial{near}, nodes):", body)


def reconsider_call(choices: Choices, trial: str, nodes: str) -> str:
    near = ", near" if limited(choices) else ""
    return f"reconsider(dist, {trial}{near}, {nodes})"


# --- insertion by regret ----------------------------------------------------------------------


def look_up(choices: Choices) -> str:
    """The helper that returns a node's cheapest place and its two lowest insertion costs."""
    body = [
        "row = dist[node]",
        'cheapest = second = float("inf")',
        "place = None",
        "for a in starts:",
        "    b = trial[a]",
        "    cost = row[a] + row[b] - dist[a][b]",
        "    if cost < cheapest:",
        "        second = cheapest",
        "        cheapest = cost",
        "        place = a",
        "    elif cost < second:",
        "        second = cost",
        "return place, cheapest, second",
    ]
    return function("def two_cheapest(dist, trial, node, starts):", body)


def regret_lines(choices: Choices, score: str, prune: bool) -> list[str]:
    """Insert all removed nodes into `trial`, the highest score first, adding up `total`."""
    call = f"two_cheapest(dist, trial, node, {places(choices)})"
    return [
        "known = {}",
        "for node in removed_nodes:",
        f"    known[node] = {call}",
        "while known:",
        "    scores = {}",
        "    for node, (place, cost, second) in known.items():",
        f"        scores[node] = {score}",
        "    chosen = max(scores, key=scores.get)",
        "    place, added, second = known.pop(chosen)",
        "    total += added",
        *(["    if total >= best_cost:", "        break"] if prune else []),
        "    after = trial[place]",
        "    trial[place] = chosen",
        "    trial[chosen] = after",
        *(["    inserted.append(chosen)"] if limited(choices) else []),
        "    row = dist[chosen]",
        "    for node in known:",
        "        other = dist[node]",
        "        by_left = other[place] + other[chosen] - row[place]",
        "        by_right = other[chosen] + other[after] - row[after]",
        "        if known[node][0] == place or min(by_left, by_right) < known[node][2]:",
        f"            known[node] = {call}",
    ]


def score_expression(choices: Choices) -> tuple[str, str]:
    """(score of a node from its lowest `cost` and the `second` lowest, phrase)."""
    kind, _, weight = str(choices["criterion"]).partition(" ")
    score, phrase = {
        "regret": ("second - cost", "the largest regret between its two cheapest places"),
        "weighted": (
            f"second - {1 + float(weight or 0)} * cost",
            f"the largest regret less {weight} of its insertion cost",
        ),
        "ratio": ("second / (cost + 1e-9)", "the largest ratio of its two lowest insertion costs"),
        "cheapest": ("-cost", "the lowest insertion cost"),
        "farthest": ("cost", "the highest insertion cost"),
    }[kind]
    if choices["ties"] != "0":
        score = f"({score})" if " " in score else score
        score += " * (1 + noise * rng.random())"
    return score, phrase


# --- insertion by a cost matrix -----------------------------------------------------------------


def matrix_lines(choices: Choices, noisy: bool) -> tuple[list[str], str]:
    """Vectorised insertion with the matrix of all costs [removed, positions], and its phrase."""
    criterion = str(choices["matrix"])
    if criterion.startswith("regret"):
        depth = int(criterion.split()[1])
        score = [f"ranked = np.partition(cost, min({depth - 1}, cost.shape[1] - 1), axis=1)"]
        if depth == 2:
            score += ["score = ranked[:, :2].max(axis=1) - ranked[:, 0]"]
        else:
            score += ["score = ranked[:, :3].sum(axis=1) - 3 * cost.min(axis=1)"]
        phrase = f"the largest regret over its {depth} cheapest places"
    elif criterion == "cheapest":
        score, phrase = ["score = -cost.min(axis=1)"], "the lowest insertion cost"
    else:
        score, phrase = ["score = cost.min(axis=1)"], "the highest insertion cost"
    if noisy:
        score += ["score = score * (1 + noise * rng.random(len(nodes)))"]
    return [
        "nodes, cost, tour = removed, costs, partial_tour[:]",
        "while len(nodes):",
        *indent(score),
        "    pick = int(np.argmax(score))",
        "    place = int(np.argmin(cost[pick]))",
        "    total += float(cost[pick, place])",
        "    node, a, b = int(nodes[pick]), tour[place], tour[(place + 1) % len(tour)]",
        "    tour.insert(place + 1, node)",
        "    nodes = np.delete(nodes, pick)",
        "    cost = np.delete(cost, pick, axis=0)",
        "    left = dist[nodes, a] + dist[nodes, node] - dist[a, node]",
        "    right = dist[nodes, node] + dist[nodes, b] - dist[node, b]",
        "    parts = [cost[:, :place], left[:, None], right[:, None], cost[:, place + 1 :]]",
        "    cost = np.concatenate(parts, axis=1)",
    ], phrase


MATRIX = [
    "removed = np.array(removed_nodes)",
    "starts = np.array(partial_tour)",
    "ends = np.roll(starts, -1)",
    "costs = dist[removed][:, starts] + dist[removed][:, ends] - dist[starts, ends]",
]
