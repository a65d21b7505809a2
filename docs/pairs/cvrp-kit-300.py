"""Discovered by spo-jax: run cvrp-steps300, round 8 (D8.16 with R8.93), discovery utility J =
0.739379, validated at 0.752227.

One step of the search makes a candidate from the current solution:

    rest, removed = destroy(dist, demands, capacity, current_routes, steps, rng)
    candidate = repair(dist, demands, capacity, rest, removed, steps, rng)

dist is the square matrix of distances: a NumPy array, or nested lists where the code only
writes dist[i][j]. demands[i] is the demand of node i; node 0 is the depot. steps counts the
steps since the best cost last fell. rng is a random.Random. The file needs nothing of spo_jax;
`spo solve` reads it.
"""

def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    """Remove 30 customers, taking separate regions of 20, each of strings of consecutive
    stops (length 10) of the routes around a random customer."""
    n = len(dist) - 1
    limit = max(1, int(0.35 * n))
    size = 30
    size = max(1, min(limit, size))
    routes, removed_customers = current_routes, []
    while len(removed_customers) < size:
        count = min(20, size - len(removed_customers))
        left = [node for route in routes for node in route]
        center = rng.choice(left)
        routes, removed = lns.string_removal(dist, routes, center, count, rng, length=10)
        removed_customers += removed
    return routes, removed_customers


def repair(dist, demands, capacity, partial_routes, removed_customers,
           steps_since_improvement, rng):
    """Insert the removed customers one at a time, the customer most remote from all others
    first (keys with up to 100% noise), each at its cheapest place; look beside 10 near
    nodes only; make up to 25 tries (within 4000 insertions) and keep the shortest; polish
    each try at the inserted customers by 2-opt* and Or-opt with 6 neighbours."""
    near = 10
    keys = {node: -sum(dist[node]) for node in removed_customers}
    tries = max(1, min(25, 4000 // len(removed_customers)))
    best, best_cost = None, float("inf")
    for attempt in range(tries):
        order = sorted(removed_customers, key=lambda node: keys[node] * (1 + 1.0 * rng.random()))
        trial, added = lns.ordered_insertion(dist, demands, capacity, partial_routes,
            order, near=near)
        trial = lns.two_opt_star(dist, demands, capacity, trial, removed_customers, near=6)
        trial = lns.or_opt(dist, demands, capacity, trial, removed_customers, near=6)
        trial = lns.or_opt(dist, demands, capacity, trial, removed_customers, near=6)
        trial = lns.or_opt(dist, demands, capacity, trial, removed_customers, near=6)
        trial = lns.two_opt(dist, trial, removed_customers, near=6)
        trial = lns.two_opt(dist, trial, removed_customers, near=6)
        trial = lns.two_opt(dist, trial, removed_customers, near=6)
        trial = lns.two_opt(dist, trial, removed_customers, near=6)
        trial = lns.two_opt(dist, trial, removed_customers, near=6)
        trial = lns.two_opt(dist, trial, removed_customers, near=6)
        trial = lns.two_opt(dist, trial, removed_customers, near=6)
        trial = lns.two_opt(dist, trial, removed_customers, near=6)
        trial = lns.two_opt(dist, trial, removed_customers, near=6)
        trial = lns.two_opt(dist, trial, removed_customers, near=6)
        trial = lns.two_opt(dist, trial, removed_customers, near=6)
        trial = lns.two_opt(dist, trial, removed_customers, near=6)
        trial = lns.two_opt(dist, trial, removed_customers, near=6)
        trial = lns.two_opt(dist, trial, removed_customers, near=6)
        trial = lns.two_opt(dist, trial, removed_customers, near=6)
        trial = lns.two_opt(dist, trial, removed_customers, near=6)
        trial = lns.two_opt(dist, trial, removed_customers, near=6)
        trial = lns.two_opt(dist, trial, removed_customers, near=6)
        trial = lns.two_opt(dist, trial, removed_customers, near=6)
        trial = lns.two_opt(dist, trial, removed_customers, near=6)
        trial = lns.two_opt(dist, trial, removed_customers, moves=30)
        added = lns.cost(dist, trial)
        if added < best_cost:
            best, best_cost = trial, added
    return best


# --- the kit: import lns
try:
    from spo_jax.envs.problems.cvrp import kit as lns
except ImportError:  # the same in Python, slower

    def python_kit():
        from types import SimpleNamespace

        DEPTH = 64
        MARGIN = 1e-10
        inf = float("inf")
        BIG = 1000000.0

        def cost(dist, routes):
            """The total length of all routes, from the depot and back."""
            checked_nodes(*routes, first=1, end=len(dist))
            length = 0.0
            for route in routes:
                before = 0
                for node in route:
                    length += dist[before][node]
                    before = node
                length += dist[before][0]
            return float(length)

        def checked_nodes(*lists, first=0, end=None):
            """Raises ValueError unless all nodes of the lists are distinct, from `first` to end - 1."""
            nodes = [node for each in lists for node in each]
            if len(set(nodes)) != len(nodes):
                raise ValueError("a node stands there twice")
            if nodes and (min(nodes) < first or (end is not None and max(nodes) >= end)):
                raise ValueError("there is no such node")

        def or_opt(dist, demands, capacity, routes, customers, *, length=3, near=10, moves=1000):
            """Or-opt: move stretches of 1 to `length` customers with an end in `customers`: routes.

            A stretch goes beside one of the `near` nearest customers of that end, within its route or to
            one with room, either way round. Takes the first gain, goes on where edges changed, and stops
            after `moves` moves. Emptied routes are dropped.
            """
            routes, queue = _checked_search(dist, routes, customers, near, moves)
            checked_count(length, 1)
            room = [room_of(demands, capacity, route) for route in routes]

            def move(a):
                return _or_opt_move(dist, demands, room, routes, a, length, near)

            return [route for route in _search(routes, queue, moves, move) if route]

        def _checked_search(dist, routes, customers, near, moves):
            """Copies of `routes` and `customers`. Raises ValueError."""
            served = served_by(dist, routes)
            checked_nodes(customers)
            checked_count(near)
            checked_count(moves)
            if not set(served).issuperset(customers):
                raise ValueError("a customer is not in the routes")
            return [list(route) for route in routes], list(customers)

        def served_by(dist, routes):
            """All customers, in the order of the routes. Raises ValueError."""
            checked_nodes(*routes, first=1, end=len(dist))
            return [node for route in routes for node in route]

        def checked_count(count, least=0):
            """`count` if it is at least `least`. Raises ValueError."""
            if count < least:
                raise ValueError(f"a count is below {least}")
            return count

        def room_of(demands, capacity, route):
            return capacity - sum(demands[node] for node in route)

        def _or_opt_move(dist, demands, room, routes, a, length, near):
            r, i = _place(routes, a)
            path = [0, *routes[r], 0]
            closest = neighbor_list_to(dist, a, 1, near), neighbor_list(dist, a, 1, near)
            close = list(zip(*closest, strict=True))
            for step in (1, -1):  # the stretch goes forward or backward from a
                turned = 0.0  # what it gets longer by when it is turned round
                for size in range(1, min(length, len(routes[r])) + 1):
                    end = i + step * (size - 1)
                    if not 0 <= end < len(routes[r]):
                        break
                    stretch = [path[i + 1 + step * s] for s in range(size)]
                    e, p, q = stretch[-1], path[i + 1 - step], path[end + 1 + step]
                    if size > 1:
                        turned += way(dist, -step, stretch[-2], e) - way(dist, step, stretch[-2], e)
                    need = sum(demands[node] for node in stretch)
                    old = way(dist, step, p, a) + way(dist, step, e, q)
                    saved = old - way(dist, step, p, q)
                    for beside in close:
                        if dist[beside[0]][a] >= saved and dist[a][beside[1]] >= saved:
                            break
                        for side, c in zip((1, -1), beside, strict=True):  # the place is after or before c
                            if way(dist, side, c, a) >= saved or c in stretch or not _serves(routes, c):
                                continue
                            s, j = _place(routes, c)
                            if s != r and room[s] < need:
                                continue
                            x = [0, *routes[s], 0][j + 1 + side]
                            if x in stretch:
                                continue
                            gone = way(dist, side, c, x)
                            paid = way(dist, side, c, a) + way(dist, side, e, x) - gone
                            if side != step:
                                paid += turned
                            if saved - paid > MARGIN * (old + gone):
                                routes[r] = [node for node in routes[r] if node not in stretch]
                                at = routes[s].index(c)
                                if side == 1:
                                    routes[s][at + 1 : at + 1] = stretch
                                else:
                                    routes[s][at:at] = stretch[::-1]
                                room[r] += need
                                room[s] -= need
                                return a, e, p, q, c, x
            return None

        def _place(routes, node):
            return next((r, route.index(node)) for r, route in enumerate(routes) if node in route)

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

        def _serves(routes, node):
            return any(node in route for route in routes)

        def _search(routes, queue, moves, move):
            """Apply `move` at the customers of `queue`, and at the ends that it returns."""
            while queue and moves:
                ends = move(queue.pop(0))
                if ends is not None:
                    queue.extend(dict.fromkeys(end for end in ends if end and end not in queue))
                    moves -= 1
            return routes

        def ordered_insertion(
            dist,
            demands,
            capacity,
            routes,
            customers,
            *,
            bound=inf,
            near=0,
            blink=0.0,
            noise=0.0,
            fresh=1.0,
            rng=None,
        ):
            """Insert `customers` in their order, each at its cheapest place with room: (routes, added).

            A new route is a place like any other; its cost is compared times `fresh` (inf: only where
            nothing else has room). Empty routes are dropped.
            bound: stop as soon as the added length reaches it, and return (None, inf).
            near: look only beside that many of a customer's nearest customers in the routes (of its 64
                nearest; all places if none of them is); 0 looks at all places.
            blink: the probability that a better place is overlooked; a draw for each better place.
            noise: costs are compared times 1 + noise * u, a draw for each place with room.
            O(len(customers) * N), or O(len(customers) * near).
            """
            checked_nodes(*routes, customers, first=1, end=len(dist))
            checked_number(blink, 0, 1)
            checked_number(noise, 0, 1e6)
            checked_number(bound, -inf, inf)
            checked_number(fresh, 0, inf)
            checked_count(near)
            grown = [list(route) for route in routes if route]
            room = [room_of(demands, capacity, route) for route in grown]
            added = 0.0
            for node in customers:
                best, need = None, demands[node]
                for price, r, index in _places(dist, grown, node, near):
                    if room[r] < need:
                        continue
                    compared = price * (1.0 + noise * rng.random()) if noise else price
                    if best is None or compared < best:
                        if blink and best is not None and rng.random() < blink:
                            continue
                        best, paid, place = compared, price, (r, index)
                alone = dist[0][node] + dist[node][0]
                if best is None or min(fresh, BIG) * alone < best:
                    grown.append([node])
                    room.append(capacity - need)
                    paid = alone
                else:
                    r, index = place
                    grown[r].insert(index, node)
                    room[r] -= need
                added += paid
                if added >= bound:
                    return None, inf
            return grown, float(added)

        def checked_number(value, low, high):
            """`value` if it is from `low` to `high`. Raises ValueError, also for NaN."""
            if not low <= value <= high:
                raise ValueError(f"a number is not from {low} to {high}")
            return value

        def _places(dist, routes, node, near):
            """(added length, route, index) of the places of `node`, in the order in which they are tried.

            near: 0 for all, by route and index; else those after the customers of the routes that are
                nearest to `node` and those before the customers that are nearest from it, by turns.
            """
            tries = [(r, i) for r, route in enumerate(routes) for i in range(len(route) + 1) if route]
            if near:
                where = {other: (r, i) for r, route in enumerate(routes) for i, other in enumerate(route)}
                after = [where[c] for c in neighbor_list_to(dist, node, 1, DEPTH) if c in where][:near]
                before = [where[c] for c in neighbor_list(dist, node, 1, DEPTH) if c in where][:near]
                if after or before:
                    tries = []
                    for k in range(near if near < DEPTH else DEPTH):
                        tries += [(r, i + 1) for r, i in after[k : k + 1]]
                        tries += before[k : k + 1]
            found = []
            for r, i in tries:
                a = routes[r][i - 1] if i else 0
                b = routes[r][i] if i < len(routes[r]) else 0
                found.append((dist[a][node] + dist[node][b] - dist[a][b], r, i))
            return found

        def string_removal(dist, routes, center, count, rng, length=10, gap=0):
            """Remove up to `count` customers as strings of adjacent routes (SISR).

            One string of 1 to `length` customers from each route that a customer near `center` is on, the
            nearest first. gap: half of the strings keep up to that many stops inside. Two draws a string,
            or four with a gap.
            """
            checked_nodes([center], end=len(dist))
            checked_count(length, 1)
            checked_count(gap)
            served = served_by(dist, routes)
            count = min(checked_count(count), len(served))
            home = {node: r for r, route in enumerate(routes) for node in route}
            chosen, cut = [], set()
            for node in nearest(dist, center, served, len(served)):
                if len(chosen) >= count:
                    break
                if home[node] in cut:
                    continue
                cut.add(home[node])
                route = routes[home[node]]
                size = 1 + int(rng.random() * min(length, len(route), count - len(chosen)))
                skipped, split = 0, size
                if gap:
                    if rng.random() < 0.5:
                        skipped = min(gap, len(route) - size)
                    split = 1 + int(rng.random() * size)
                window, where = size + skipped, route.index(node)
                low, high = max(0, where - window + 1), min(where, len(route) - window)
                start = low + int(rng.random() * (high - low + 1))
                chosen += route[start : start + split]
                chosen += route[start + split + skipped : start + window]
            return remove(routes, chosen)

        def nearest(dist, node, nodes, count):
            """The `count` of `nodes` that are nearest to `node`, nearest first; ties in the given order.

            dist: [N, N] distances. `node` itself counts, at its distance dist[node][node]. O(N log N).
            """
            checked_nodes([node], end=len(dist))
            checked_nodes(nodes, end=len(dist))
            row = dist[node]
            return sorted(nodes, key=lambda other: row[other])[: checked_count(count)]

        def remove(routes, customers):
            """(routes without `customers`, those of `customers` that were in them)."""
            checked_nodes(*routes, first=1)
            gone = set(customers)
            kept = [[node for node in route if node not in gone] for route in routes]
            return kept, [node for route in routes for node in route if node in gone]

        def two_opt(dist, routes, customers, *, near=10, moves=1000):
            """2-opt within routes, at `customers` and the ends of the edges it changes: routes.

            Looks at the `near` nearest customers (at most 64), takes the first gain, stops after `moves`
            moves or where nothing gains. What is turned round counts as it is long then.
            """
            routes, queue = _checked_search(dist, routes, customers, near, moves)
            return _search(routes, queue, moves, lambda a: _two_opt_move(dist, routes, a, near))

        def _two_opt_move(dist, routes, a, near):
            r, i = _place(routes, a)
            route = routes[r]
            path = [0, *route, 0]
            forth, back = _both_ways(dist, path)
            for step in (1, -1):  # a goes on to another customer, or comes from another
                b = path[i + 1 + step]
                for c in near_by(dist, step, a, 1, near):
                    if way(dist, step, a, c) >= way(dist, step, a, b):
                        break
                    if c not in route:
                        continue
                    j = route.index(c)
                    d = path[j + 1 + step]
                    old = way(dist, step, a, b) + way(dist, step, c, d)
                    low, high = min(i, j) + (step == 1), max(i, j) - (step == -1)
                    first = 1 if i < j else -1  # the way from a to c, if low to high is turned
                    for turn in (first, -first):
                        turned = (back[high + 1] - back[low + 1]) - (forth[high + 1] - forth[low + 1])
                        if turn != first:  # all but that part
                            again = way(dist, -step, a, b) + way(dist, -step, c, d)
                            turned = back[-1] - forth[-1] - turned - (again - old)
                        gain = old - way(dist, turn, a, c) - way(dist, turn, b, d) - turned
                        if gain > MARGIN * (old + abs(forth[-1]) if turned else old):
                            if turn != first:
                                route.reverse()
                                low, high = len(route) - 1 - high, len(route) - 1 - low
                            route[low : high + 1] = route[low : high + 1][::-1]
                            return a, b, c, d
            return None

        def _both_ways(dist, path):
            """How long a path is up to each of its stops, and the way back: two lists of floats."""
            forth, back = [0.0], [0.0]
            for i in range(1, len(path)):
                forth.append(forth[-1] + dist[path[i - 1]][path[i]])
                back.append(back[-1] + dist[path[i]][path[i - 1]])
            return forth, back

        def near_by(dist, step, node, first, count):
            """`neighbor_list` for a step of 1, `neighbor_list_to` for one of -1."""
            return (neighbor_list if step == 1 else neighbor_list_to)(dist, node, first, count)

        def two_opt_star(dist, demands, capacity, routes, customers, *, near=10, moves=1000):
            """2-opt*: exchange the ends of two routes, at `customers` and where edges changed: routes.

            Joins a customer to one of its `near` nearest customers of another route, where both routes keep
            within the capacity; takes the first gain and stops after `moves` moves. Emptied routes are
            dropped.
            """
            routes, queue = _checked_search(dist, routes, customers, near, moves)

            def move(a):
                return _two_opt_star_move(dist, demands, capacity, routes, a, near)

            return [route for route in _search(routes, queue, moves, move) if route]

        def _two_opt_star_move(dist, demands, capacity, routes, a, near):
            r, i = _place(routes, a)
            for step in (1, -1):  # a keeps what is before it, or what is after it
                b = [0, *routes[r], 0][i + 1 + step]
                for c in near_by(dist, step, a, 1, near):
                    if way(dist, step, a, c) >= way(dist, step, a, b):
                        break
                    if not _serves(routes, c) or c in routes[r]:
                        continue
                    s, j = _place(routes, c)
                    d = [0, *routes[s], 0][j + 1 - step]
                    old = way(dist, step, a, b) + way(dist, step, d, c)
                    if old - way(dist, step, a, c) - way(dist, step, d, b) > MARGIN * old:
                        if step == 1:
                            one = routes[r][: i + 1] + routes[s][j:]
                            two = routes[s][:j] + routes[r][i + 1 :]
                        else:
                            one = routes[s][: j + 1] + routes[r][i:]
                            two = routes[r][:i] + routes[s][j + 1 :]
                        if min(room_of(demands, capacity, one), room_of(demands, capacity, two)) >= 0:
                            routes[r], routes[s] = one, two
                            return a, b, c, d
            return None

        return SimpleNamespace(
            cost=cost,
            or_opt=or_opt,
            ordered_insertion=ordered_insertion,
            string_removal=string_removal,
            two_opt=two_opt,
            two_opt_star=two_opt_star,
        )

    lns = python_kit()
# --- end of the kit
