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
            O(len(nodes) * length * near + moves * len(tour)).
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
            closest = neighbor_list_to(dist, a, 0, near), neighbor_list(dist, a, 0, near)
            close = list(zip(*closest, strict=True))
            for step in (1, -1):  # the stretch goes forward or backward from a
                turned = 0.0  # what it gets longer by when it is turned round
                for size in range(1, min(length, n - 3) + 1):
                    stretch = [tour[(i + step * s) % n] for s in range(size)]
                    e = stretch[-1]
                    if size > 1:
                        turned += way(dist, -step, stretch[-2], e) - way(dist, step, stretch[-2], e)
                    p, q = tour[(i - step) % n], tour[(i + step * size) % n]
                    old = way(dist, step, p, a) + way(dist, step, e, q)
                    saved = old - way(dist, step, p, q)
                    for beside in close:
                        if dist[beside[0]][a] >= saved and dist[a][beside[1]] >= saved:
                            break
                        for side, c in zip((1, -1), beside, strict=True):  # the place is after or before c
                            if way(dist, side, c, a) >= saved or c not in place or c in stretch:
                                continue
                            x = tour[(place[c] + side) % n]
                            if x in stretch:
                                continue
                            gone = way(dist, side, c, x)
                            paid = way(dist, side, c, a) + way(dist, side, e, x) - gone
                            if side != step:
                                paid += turned
                            if saved - paid > MARGIN * (old + gone):
                                rest = [node for node in tour if node not in stretch]
                                at = rest.index(c)
                                if side == 1:
                                    rest[at + 1 : at + 1] = stretch
                                else:
                                    rest[at:at] = stretch[::-1]
                                return rest, (a, e, p, q, c, x)
            return None

        def neighbor_list_to(dist, node, first, count):
            """As `neighbor_list`, of those from which the way to `node` is shortest."""
            column = [row[node] for row in dist]
            others = [other for other in range(first, len(dist)) if other != node]
            others.sort(key=lambda other: column[other])
            return others[: min(checked_count(count), DEPTH)]

        def neighbor_list(dist, node, first, count):
            """The nodes of first to N - 1 nearest to `node`, itself left out; at most DEPTH."""
            row = dist[node]
            others = [other for other in range(first, len(dist)) if other != node]
            others.sort(key=lambda other: row[other])
            return others[: min(checked_count(count), DEPTH)]

        def way(dist, step, a, b):
            """From a to b for a step of 1, from b to a for one of -1."""
            return dist[a][b] if step == 1 else dist[b][a]

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
            moves or where nothing gains. What is turned round counts as it is long then. In a tour whose
            edges are not as long both ways, where no 2-opt move gains, two neighbouring stretches may
            change places, which turns nothing round (or-3opt). O(len(nodes) * near + moves * len(tour)),
            with or-3opt O(len(nodes) * near ** 2 + moves * len(tour)).
            """
            tour, queue = _checked_search(dist, tour, nodes, near, moves)
            place = {node: i for i, node in enumerate(tour)}
            lengths = _both_ways(dist, tour)
            while queue and moves:
                a = queue.pop(0)
                move = _two_opt_move(dist, tour, place, lengths, a, near)
                if move is None and lengths[0] != lengths[1]:
                    move = _swap_move(dist, tour, place, a, near)
                if move is None:
                    continue
                tour, ends = move
                place = {node: i for i, node in enumerate(tour)}
                lengths = _both_ways(dist, tour)
                queue.extend(dict.fromkeys(end for end in ends if end not in queue))
                moves -= 1
            return tour

        def _both_ways(dist, tour):
            """How long the way from the first node to each is, and all round at the end; and its way back:
            two lists of len(tour) + 1 floats.
            """
            forth, back = [0.0], [0.0]
            for i, node in enumerate(tour):
                after = tour[(i + 1) % len(tour)]
                forth.append(forth[i] + dist[node][after])
                back.append(back[i] + dist[after][node])
            return forth, back

        def _two_opt_move(dist, tour, place, lengths, a, near):
            """(the new tour, the four ends) of the first move at `a` that gains."""
            i = place[a]
            for step in (1, -1):  # a goes on to another node, or comes from another
                b = tour[(i + step) % len(tour)]
                for c in near_by(dist, step, a, 0, near):
                    if way(dist, step, a, c) >= way(dist, step, a, b):
                        break
                    if c not in place:
                        continue
                    j = place[c]
                    d = tour[(j + step) % len(tour)]
                    old = way(dist, step, a, b) + way(dist, step, c, d)
                    low, high = min(i, j) + (step == 1), max(i, j) - (step == -1)
                    first = 1 if i < j else -1  # the way from a to c, if low to high is turned
                    for turn in (first, -first):
                        turned = _turned(lengths, low, high)
                        if turn != first:  # all but that part
                            again = way(dist, -step, a, b) + way(dist, -step, c, d)
                            turned = lengths[1][-1] - lengths[0][-1] - turned - (again - old)
                        gain = old - way(dist, turn, a, c) - way(dist, turn, b, d) - turned
                        if gain > MARGIN * (old + abs(lengths[0][-1]) if turned else old):
                            new = tour if turn == first else tour[::-1]
                            if turn != first:
                                low, high = len(tour) - 1 - high, len(tour) - 1 - low
                            new = new[:low] + new[low : high + 1][::-1] + new[high + 1 :]
                            return new, (a, b, c, d)
            return None

        def near_by(dist, step, node, first, count):
            """`neighbor_list` for a step of 1, `neighbor_list_to` for one of -1."""
            return (neighbor_list if step == 1 else neighbor_list_to)(dist, node, first, count)

        def _turned(lengths, low, high):
            """What the part from index low to high gets longer by when it is turned round."""
            forth, back = lengths
            return (back[high] - back[low]) - (forth[high] - forth[low])

        def _swap_move(dist, tour, place, a, near):
            """(the new tour, the six ends) of the first move of or-3opt from `a` on that gains."""
            n, i = len(tour), place[a]
            b = tour[(i + 1) % n]
            for c in neighbor_list(dist, a, 0, near):
                if dist[a][c] >= dist[a][b]:
                    break
                if c not in place:
                    continue
                k = (place[c] - i - 1) % n  # the first stretch goes from b over k nodes, to d
                d = tour[place[c] - 1]
                gain = dist[a][b] - dist[a][c] + dist[d][c]
                for f in neighbor_list(dist, d, 0, near):
                    if dist[d][f] >= gain:
                        break
                    if f not in place or (place[f] - i - 1) % n <= k:
                        continue
                    e = tour[place[f] - 1]
                    old = dist[a][b] + dist[d][c] + dist[e][f]
                    if old - dist[a][c] - dist[d][f] - dist[e][b] > MARGIN * old:
                        walk = tour[i + 1 :] + tour[: i + 1]
                        m = (place[f] - i - 1) % n
                        return walk[k:m] + walk[:k] + walk[m:], (a, b, d, c, e, f)
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
