"""The kit of the travelling salesperson problem in plain Python; the native one equals it.

Arguments: dist [N, N] floats, dist[a][b] from a to b; a tour is a list of distinct nodes, closed
from its last to its first, complete or partial; nodes are ints from 0 to N - 1; rng has `random()`.
Results are new lists. Removals return (partial tour, removed nodes), both in the order of the tour,
so they can be applied one after the other. Among equals the first wins. Raises ValueError for
numbers out of range and for nodes that repeat, that dist does not have, or that are not in the tour
where they must be; TypeError for what is no number or list (`spo_jax.envs.problems.kit`).
"""

from math import inf

from spo_jax.envs.problems.kit import (
    DEPTH,
    MAX_NODES,
    checked_count,
    checked_nodes,
    checked_number,
    drawn,
    matrix_of,
    nearest,
    nearest_of,
    neighbor_list,
    neighbor_list_to,
    node_of,
    nodes_of,
    number_of,
    rank,
    tour_of,
)
from spo_jax.envs.problems.tsp.kit.search import lin_kernighan, or_opt, two_opt

__all__ = [
    "best_position",
    "cost",
    "greedy_insertion",
    "lin_kernighan",
    "nearest",
    "neighbors",
    "or_opt",
    "ordered_insertion",
    "radial_removal",
    "random_removal",
    "regret_insertion",
    "related_removal",
    "remove",
    "savings",
    "segment_removal",
    "string_removal",
    "two_opt",
    "worst_removal",
]

# --- looking --------------------------------------------------------------------------------------


def neighbors(dist, k):
    """For every node the k nearest others (at most 64), nearest first: a tuple of tuples."""
    dist, k = matrix_of(dist), checked_count(k)
    return tuple(tuple(neighbor_list(dist, node, 0, k)) for node in range(len(dist)))


def cost(dist, tour):
    """The length of a tour."""
    dist = matrix_of(dist)
    tour, length = tour_of(dist, tour), 0.0
    for i, node in enumerate(tour):
        length += dist[tour[i - 1]][node]
    return float(length)


def savings(dist, tour):
    """For each position what the tour gets shorter by without its node: a list of floats."""
    dist = matrix_of(dist)
    return savings_of(dist, tour_of(dist, tour))


def savings_of(dist, tour):
    saved = []
    for i, node in enumerate(tour):
        before, after = tour[i - 1], tour[(i + 1) % len(tour)]
        saved.append(float(dist[before][node] + dist[node][after] - dist[before][after]))
    return saved


# --- removing -------------------------------------------------------------------------------------


def remove(tour, nodes):
    """(tour without `nodes`, those of `nodes` that were in it)."""
    tour = nodes_of(tour)
    checked_nodes(tour)
    return without(tour, nodes_of(nodes))


def without(tour, nodes):
    gone = set(nodes)
    return [node for node in tour if node not in gone], [node for node in tour if node in gone]


def radial_removal(dist, tour, center, count):
    """Remove the `count` nodes nearest to the node `center`, which may be outside the tour."""
    dist = matrix_of(dist)
    tour, center, count = tour_of(dist, tour), node_of(center, len(dist)), checked_count(count)
    return without(tour, nearest_of(dist, center, tour, count))


def segment_removal(tour, center, count):
    """Remove `count` consecutive nodes with `center` in their middle."""
    tour = nodes_of(tour)
    checked_nodes(tour)
    center, count = node_of(center, MAX_NODES + 1), min(checked_count(count), len(tour))
    start = tour.index(center) - count // 2
    return without(tour, [tour[(start + i) % len(tour)] for i in range(count)])


def string_removal(dist, tour, center, count, rng, length=10):
    """Remove `count` nodes as strings of 1 to `length` consecutive ones (SISR, adjacent strings).

    The strings go through the nodes nearest to `center`, at a random offset. Two draws a string.
    """
    dist = matrix_of(dist)
    tour, center = tour_of(dist, tour), node_of(center, len(dist))
    count, length = min(checked_count(count), len(tour)), checked_count(length, 1)
    place = {node: i for i, node in enumerate(tour)}
    chosen = set()
    for node in nearest_of(dist, center, tour, len(tour)):
        if len(chosen) >= count:
            break
        if node in chosen:
            continue
        size = 1 + int(drawn(rng) * min(length, count - len(chosen)))
        start = place[node] - int(drawn(rng) * size)
        chosen.update(tour[(start + i) % len(tour)] for i in range(size))
    return without(tour, chosen)


def related_removal(dist, tour, center, count, rng, power=3.0):
    """Remove `count` nodes, at least one, near those removed before them, from `center` on (Shaw).

    Two draws a node: which of the removed ones to be near, and the rank len * u ** power in
    the order of distance. O(count * N log N).
    """
    dist = matrix_of(dist)
    tour, center = tour_of(dist, tour), node_of(center, len(dist))
    count, power = min(checked_count(count), len(tour)), number_of(power)
    rest, chosen = list(tour), [center]
    rest.remove(center)
    while len(chosen) < count:
        row = dist[chosen[int(drawn(rng) * len(chosen))]]
        ranked = sorted(rest, key=lambda node: row[node])
        node = ranked[rank(rng, len(ranked), power)]
        rest.remove(node)
        chosen.append(node)
    return without(tour, chosen)


def worst_removal(dist, tour, count, rng, power=3.0):
    """Remove `count` nodes one at a time, those preferred that shorten the tour most.

    One draw a node: the rank len * u ** power in the order of savings (Ropke and Pisinger).
    """
    dist = matrix_of(dist)
    tour, count, power = tour_of(dist, tour), checked_count(count), number_of(power)
    rest, removed = list(tour), []
    for _ in range(min(count, len(tour))):
        saved = savings_of(dist, rest)
        ranked = sorted(range(len(rest)), key=lambda i: -saved[i])
        removed.append(rest.pop(ranked[rank(rng, len(ranked), power)]))
    return without(tour, removed)


def random_removal(tour, count, rng):
    """Remove `count` nodes drawn uniformly; one draw a node."""
    tour = nodes_of(tour)
    checked_nodes(tour)
    pool = list(tour)
    count = min(checked_count(count), len(pool))
    for i in range(count):
        j = i + int(drawn(rng) * (len(pool) - i))
        pool[i], pool[j] = pool[j], pool[i]
    return without(tour, pool[:count])


# --- inserting ------------------------------------------------------------------------------------


def best_position(dist, tour, node):
    """(added length, index) of the cheapest place of `node`: `tour.insert(index, node)`."""
    dist = matrix_of(dist)
    tour, node = tour_of(dist, tour), node_of(node, len(dist))
    checked_nodes(tour, [node])
    added, index = min(_places(dist, tour, node, 0), default=(0.0, 0), key=lambda place: place[0])
    return float(added), index


def ordered_insertion(dist, tour, nodes, *, bound=inf, near=0, blink=0.0, noise=0.0, rng=None):
    """Insert `nodes` in their order, each at its cheapest place: (tour, added length).

    bound: stop as soon as the added length reaches it, and return (None, inf).
    near: look only beside that many of a node's nearest nodes in the tour (of its 64 nearest; all
        places if none of them is in it); 0 looks at all places.
    blink: the probability that a better place is overlooked; a draw for each better place.
    noise: costs are compared times 1 + noise * u, a draw for each place.
    O(len(nodes) * len(tour)), or O(len(nodes) * (near + moves of memory)).
    """
    dist = matrix_of(dist)
    grown, nodes = tour_of(dist, tour), nodes_of(nodes)
    checked_nodes(grown, nodes, end=len(dist))
    bound, near = checked_number(bound, -inf, inf), checked_count(near)
    blink, noise = checked_number(blink, 0, 1), checked_number(noise, 0, 1e6)
    added = 0.0
    for node in nodes:
        best = None
        for price, index in _places(dist, grown, node, near):
            compared = price * (1.0 + noise * drawn(rng)) if noise else price
            if best is None or compared < best:
                if blink and best is not None and drawn(rng) < blink:
                    continue
                best, paid, place = compared, price, index
        if best is None:
            paid, place = 0.0, 0
        grown.insert(place, node)
        added += paid
        if added >= bound:
            return None, inf
    return grown, float(added)


def regret_insertion(dist, tour, nodes, *, k=2, weight=0.0, bound=inf, near=0, noise=0.0, rng=None):
    """Insert the node with the highest score first, each at its cheapest place: (tour, added).

    score: the sum over its 2nd to k-th cheapest places of what they cost more than its cheapest,
        less weight * its cheapest cost. k=1 with weight=1 is greedy insertion, k=1 with weight=-1
        farthest insertion.
    noise: scores are compared times 1 + noise * u, a draw for each waiting node each time.
    bound, near: as in `ordered_insertion`. O(len(nodes) * (len(nodes) + len(tour))), at worst a
        factor len(tour) more.
    """
    k, weight = checked_count(k, 1), checked_number(weight, -1e6, 1e6)
    dist = matrix_of(dist)
    grown, waiting, added = tour_of(dist, tour), nodes_of(nodes), 0.0
    checked_nodes(grown, waiting, end=len(dist))
    bound, near = checked_number(bound, -inf, inf), checked_count(near)
    noise = checked_number(noise, 0, 1e6)
    while waiting:
        best = None
        for node in waiting:
            found = _places(dist, grown, node, near) or [(0.0, 0)]
            prices = sorted(price for price, _ in found)
            score = 0.0
            for price in prices[1:k]:
                score += price - prices[0]
            score -= weight * prices[0]
            if noise:
                score *= 1.0 + noise * drawn(rng)
            if best is None or score > best:
                best, chosen, paid = score, node, prices[0]
                place = next(index for price, index in found if price == paid)
        waiting.remove(chosen)
        grown.insert(place, chosen)
        added += paid
        if added >= bound:
            return None, inf
    return grown, float(added)


def greedy_insertion(dist, tour, nodes, *, bound=inf, near=0, noise=0.0, rng=None):
    """Insert the node with the lowest insertion cost first: (tour, added length)."""
    return regret_insertion(
        dist, tour, nodes, k=1, weight=1.0, bound=bound, near=near, noise=noise, rng=rng
    )


def _places(dist, tour, node, near):
    """(added length, index) of the places of `node`, in the order in which they are tried.

    near: 0 for all, by position; else those after the nodes of the tour that are nearest to `node`
        and those before the nodes that are nearest from it, by turns.
    """
    tries = range(len(tour))
    if near:
        where = {other: i for i, other in enumerate(tour)}
        after = [where[c] for c in neighbor_list_to(dist, node, 0, DEPTH) if c in where][:near]
        before = [where[c] for c in neighbor_list(dist, node, 0, DEPTH) if c in where][:near]
        if after or before:
            tries = []
            for k in range(near if near < DEPTH else DEPTH):
                tries += after[k : k + 1]
                tries += [(i - 1) % len(tour) for i in before[k : k + 1]]
    found = []
    for i in tries:
        a, b = tour[i], tour[(i + 1) % len(tour)]
        found.append((dist[a][node] + dist[node][b] - dist[a][b], i + 1))
    return found
