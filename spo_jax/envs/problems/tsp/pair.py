"""Discovered by spo-jax: run tsp-kit, round 9 (D9.05 with R9.37), discovery utility J =
0.872523, validated at 0.879537.

One step of the search makes a candidate from the current solution:

    rest, removed = destroy(dist, current_tour, steps, rng)
    candidate = repair(dist, rest, removed, steps, rng)

dist is the square matrix of distances: a NumPy array, or nested lists where the code only
writes dist[i][j]. steps counts the steps since the best cost last fell. rng is a random.Random.
The file needs nothing of spo_jax; `spo solve` reads it.
"""

import math


def destroy(dist, current_tour, steps_since_improvement, rng):
    """Remove 100 nodes for 5 steps after an improvement and 1.5 sqrt(n) to 100 nodes at
    random in stagnation, taking the nodes nearest to a center that moves 7 places along
    the tour with every step without improvement; while the mean edge exceeds 4 / sqrt(n)
    of the mean distance, remove the 35% of the tour nearest to one node instead."""
    n = len(current_tour)
    limit = max(1, int(0.35 * n))
    if lns.cost(dist, current_tour) * math.sqrt(n) > 3 * sum(dist[current_tour[0]]):
        return lns.radial_removal(dist, current_tour, rng.choice(current_tour), limit)
    low = int(1.5 * math.sqrt(n))
    high = max(low, min(limit, 100))
    size = high if steps_since_improvement < 5 else rng.randint(low, high)
    size = max(1, min(limit, size))
    center = current_tour[(7 * steps_since_improvement + rng.randrange(7)) % len(current_tour)]
    return lns.radial_removal(dist, current_tour, center, size)


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    """Insert the removed nodes one at a time, in random order, each at its cheapest place,
    then swap two nodes of the best order once more every 10 steps without improvement;
    look beside 5 near nodes only; make up to 50 tries (within 4000 insertions) and keep
    the shortest; polish the result at the inserted nodes by 2-opt and Or-opt with 6
    neighbours."""
    near = 5
    best_order = rng.sample(removed_nodes, len(removed_nodes))
    tries = max(1, min(50, 4000 // len(removed_nodes)))
    best, best_cost = None, float("inf")
    for attempt in range(tries):
        order = best_order[:]
        for _ in range(1 + steps_since_improvement // 10):
            i, j = rng.randrange(len(order)), rng.randrange(len(order))
            order[i], order[j] = order[j], order[i]
        trial, added = lns.ordered_insertion(dist, partial_tour,
            order, near=near)
        trial = lns.two_opt(dist, trial, removed_nodes, near=6)
        trial = lns.or_opt(dist, trial, removed_nodes, near=6)
        added = lns.cost(dist, trial)
        if added < best_cost:
            best, best_cost, best_order = trial, added, order
    return best


# --- the kit: import lns
try:
    from spo_jax.envs.problems.tsp import kit as lns
except ImportError:  # the same in Python, slower

    def python_kit():
        from types import SimpleNamespace

        DEPTH = 64
        MARGIN = 1e-10
        inf = float("inf")

        def cost(dist, tour):
            """The length of a tour."""
            checked_nodes(tour, end=len(dist))
            length = 0.0
            for i, node in enumerate(tour):
                length += dist[tour[i - 1]][node]
            return float(length)

        def checked_nodes(*lists, first=0, end=None):
            """Raises ValueError unless all nodes of the lists are distinct, from `first` to end - 1."""
            nodes = [node for each in lists for node in each]
            if len(set(nodes)) != len(nodes):
                raise ValueError("a node stands there twice")
            if nodes and (min(nodes) < first or (end is not None and max(nodes) >= end)):
                raise ValueError("there is no such node")

        def or_opt(dist, tour, nodes, *, length=3, near=10, moves=1000):
            """Or-opt: move stretches of 1 to `length` nodes with an end in `nodes`: a tour.

            A stretch goes beside one of the `near` nearest neighbours of that end, either way round. Takes
            the first gain, goes on at the nodes whose edges changed, and stops after `moves` moves.
            dist must be symmetric. O(len(nodes) * length * near + moves * len(tour)).
            """
            tour, queue = _checked_search(dist, tour, nodes, near, moves)
            checked_count(length, 1)
            while queue and moves:
                a = queue.pop(0)
                move = _or_opt_move(dist, tour, a, length, near)
                if move is None:
                    continue
                tour, ends = move
                queue.extend(dict.fromkeys(end for end in ends if end not in queue))
                moves -= 1
            return tour

        def _checked_search(dist, tour, nodes, near, moves):
            """Copies of `tour` and `nodes`. Raises ValueError."""
            checked_nodes(tour, end=len(dist))
            checked_nodes(nodes)
            checked_count(near)
            checked_count(moves)
            if not set(tour).issuperset(nodes):
                raise ValueError("a node is not in the tour")
            return list(tour), list(nodes)

        def checked_count(count, least=0):
            """`count` if it is at least `least`. Raises ValueError."""
            if count < least:
                raise ValueError(f"a count is below {least}")
            return count

        def _or_opt_move(dist, tour, a, length, near):
            """(the new tour, the six ends) of the first move of a stretch from `a` on that gains."""
            place = {node: i for i, node in enumerate(tour)}
            n, i = len(tour), place[a]
            for step in (1, -1):  # the stretch goes forward or backward from a
                for size in range(1, min(length, n - 3) + 1):
                    stretch = [tour[(i + step * s) % n] for s in range(size)]
                    e = stretch[-1]
                    p, q = tour[(i - step) % n], tour[(i + step * size) % n]
                    old = dist[p][a] + dist[e][q]
                    saved = old - dist[p][q]
                    for c in neighbor_list(dist, a, 0, near):
                        if dist[a][c] >= saved:
                            break
                        if c not in place or c in stretch:
                            continue
                        for side in (1, -1):  # the place is after or before c
                            x = tour[(place[c] + side) % n]
                            if x in stretch:
                                continue
                            paid = dist[c][a] + dist[e][x] - dist[c][x]
                            if saved - paid > MARGIN * (old + dist[c][x]):
                                rest = [node for node in tour if node not in stretch]
                                at = rest.index(c)
                                if side == 1:
                                    rest[at + 1 : at + 1] = stretch
                                else:
                                    rest[at:at] = stretch[::-1]
                                return rest, (a, e, p, q, c, x)
            return None

        def neighbor_list(dist, node, first, count):
            """The nodes of first to N - 1 nearest to `node`, itself left out; at most DEPTH."""
            row = dist[node]
            others = [other for other in range(first, len(dist)) if other != node]
            others.sort(key=lambda other: row[other])
            return others[: min(checked_count(count), DEPTH)]

        def ordered_insertion(dist, tour, nodes, *, bound=inf, near=0, blink=0.0, noise=0.0, rng=None):
            """Insert `nodes` in their order, each at its cheapest place: (tour, added length).

            bound: stop as soon as the added length reaches it, and return (None, inf).
            near: look only beside that many of a node's nearest nodes in the tour (of its 64 nearest; all
                places if none of them is in it); 0 looks at all places.
            blink: the probability that a better place is overlooked; a draw for each better place.
            noise: costs are compared times 1 + noise * u, a draw for each place.
            O(len(nodes) * len(tour)), or O(len(nodes) * (near + moves of memory)).
            """
            checked_nodes(tour, nodes, end=len(dist))
            checked_number(blink, 0, 1)
            checked_number(noise, 0, 1e6)
            checked_number(bound, -inf, inf)
            checked_count(near)
            grown, added = list(tour), 0.0
            for node in nodes:
                best = None
                for price, index in _places(dist, grown, node, near):
                    compared = price * (1.0 + noise * rng.random()) if noise else price
                    if best is None or compared < best:
                        if blink and best is not None and rng.random() < blink:
                            continue
                        best, paid, place = compared, price, index
                if best is None:
                    paid, place = 0.0, 0
                grown.insert(place, node)
                added += paid
                if added >= bound:
                    return None, inf
            return grown, float(added)

        def checked_number(value, low, high):
            """`value` if it is from `low` to `high`. Raises ValueError, also for NaN."""
            if not low <= value <= high:
                raise ValueError(f"a number is not from {low} to {high}")
            return value

        def _places(dist, tour, node, near):
            """(added length, index) of the places of `node`, in the order in which they are tried.

            near: 0 for all, by position; else those after and before each near node of the tour.
            """
            tries = range(len(tour))
            if near:
                where = {other: i for i, other in enumerate(tour)}
                close = [where[other] for other in neighbor_list(dist, node, 0, DEPTH) if other in where]
                if close:
                    tries = [i for c in close[:near] for i in (c, (c - 1) % len(tour))]
            found = []
            for i in tries:
                a, b = tour[i], tour[(i + 1) % len(tour)]
                found.append((dist[a][node] + dist[node][b] - dist[a][b], i + 1))
            return found

        def radial_removal(dist, tour, center, count):
            """Remove the `count` nodes nearest to the node `center`, which may be outside the tour."""
            checked_nodes([center], end=len(dist))
            checked_nodes(tour, end=len(dist))
            return remove(tour, nearest(dist, center, tour, count))

        def remove(tour, nodes):
            """(tour without `nodes`, those of `nodes` that were in it)."""
            checked_nodes(tour)
            gone = set(nodes)
            return [node for node in tour if node not in gone], [node for node in tour if node in gone]

        def nearest(dist, node, nodes, count):
            """The `count` of `nodes` that are nearest to `node`, nearest first; ties in the given order.

            dist: [N, N] distances. `node` itself counts, at its distance dist[node][node]. O(N log N).
            """
            checked_nodes([node], end=len(dist))
            checked_nodes(nodes, end=len(dist))
            row = dist[node]
            return sorted(nodes, key=lambda other: row[other])[: checked_count(count)]

        def two_opt(dist, tour, nodes, *, near=10, moves=1000):
            """2-opt at the ends of `nodes` and of the edges it changes: a tour.

            Looks at the `near` nearest neighbours (at most 64), takes the first gain, stops after `moves`
            moves or where nothing gains. dist must be symmetric. O(len(nodes) * near + moves * len(tour)).
            """
            tour, queue = _checked_search(dist, tour, nodes, near, moves)
            place = {node: i for i, node in enumerate(tour)}
            while queue and moves:
                a = queue.pop(0)
                move = _two_opt_move(dist, tour, place, a, near)
                if move is None:
                    continue
                first, last, ends = move
                tour[first : last + 1] = tour[first : last + 1][::-1]
                for i in range(first, last + 1):
                    place[tour[i]] = i
                queue.extend(dict.fromkeys(end for end in ends if end not in queue))
                moves -= 1
            return tour

        def _two_opt_move(dist, tour, place, a, near):
            """(first and last index to reverse, the four ends) of the first move at `a` that gains."""
            i = place[a]
            for step in (1, -1):
                b = tour[(i + step) % len(tour)]
                for c in neighbor_list(dist, a, 0, near):
                    if dist[a][c] >= dist[a][b]:
                        break
                    if c not in place:
                        continue
                    j = place[c]
                    d = tour[(j + step) % len(tour)]
                    old = dist[a][b] + dist[c][d]
                    if old - dist[a][c] - dist[b][d] > MARGIN * old:
                        low, high = min(i, j), max(i, j)
                        first, last = (low + 1, high) if step == 1 else (low, high - 1)
                        return first, last, (a, b, c, d)
            return None

        return SimpleNamespace(
            cost=cost,
            or_opt=or_opt,
            ordered_insertion=ordered_insertion,
            radial_removal=radial_removal,
            two_opt=two_opt,
        )

    lns = python_kit()
# --- end of the kit
