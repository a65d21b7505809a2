"""Discovered by spo-jax: run cvrp-kit, round 5 (D5.15 with R5.116), discovery utility J =
0.706299, validated at 0.787505.

One step of the search makes a candidate from the current solution:

    rest, removed = destroy(dist, demands, capacity, current_routes, steps, rng)
    candidate = repair(dist, demands, capacity, rest, removed, steps, rng)

dist is the square matrix of distances: a NumPy array, or nested lists where the code only
writes dist[i][j]. demands[i] is the demand of node i; node 0 is the depot. steps counts the
steps since the best cost last fell. rng is a random.Random. The file needs nothing of spo_jax;
`spo solve` reads it.
"""

def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    """Remove 25 right after an improvement and from 12 to 25 customers at random in
    stagnation, taking separate regions of 10, each of the customers nearest to a random
    customer, or ever more often as stagnation passes 20 steps a random one in 2 of the
    customers around a random customer."""
    n = len(dist) - 1
    limit = max(1, int(0.35 * n))
    low = 12
    high = max(low, min(limit, 25))
    size = high if steps_since_improvement < 1 else rng.randint(low, high)
    size = max(1, min(limit, size))
    routes, removed_customers = current_routes, []
    while len(removed_customers) < size:
        count = min(10, size - len(removed_customers))
        left = [node for route in routes for node in route]
        center = rng.choice(left)
        if rng.random() * (steps_since_improvement + 20) < 20:
            routes, removed = lns.radial_removal(dist, routes, center, count)
        else:
            pool = lns.nearest(dist, center, left, 2 * count)
            routes, removed = lns.remove(routes, rng.sample(pool, count))
        removed_customers += removed
    return routes, removed_customers


def repair(dist, demands, capacity, partial_routes, removed_customers,
           steps_since_improvement, rng):
    """Insert the removed customers one at a time, the customer most remote from all others
    first (keys with up to 50% noise), each at its cheapest place; look beside 5 near
    nodes, one more with each step without improvement; make up to 50 tries (within 200
    insertions growing to 1500 over 5 steps without improvement) and keep the shortest;
    polish each try at the inserted customers by Or-opt and 2-opt with 10 neighbours."""
    near = min(40, 5 + steps_since_improvement)
    keys = {node: -sum(dist[node]) for node in removed_customers}
    low, high = 200, 1500
    budget = low + (high - low) * min(steps_since_improvement, 5) // 5
    tries = max(1, min(50, budget // len(removed_customers)))
    best, best_cost = None, float("inf")
    for attempt in range(tries):
        order = sorted(removed_customers, key=lambda node: keys[node] * (1 + 0.5 * rng.random()))
        trial, added = lns.ordered_insertion(dist, demands, capacity, partial_routes, order)
        trial = lns.two_opt_star(dist, demands, capacity, trial, removed_customers, near=10)
        trial = lns.two_opt(dist, trial, removed_customers, near=10)
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

        inf = float("inf")
        DEPTH = 64
        BIG = 1000000.0
        MARGIN = 1e-10

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

        def nearest(dist, node, nodes, count):
            """The `count` of `nodes` that are nearest to `node`, nearest first; ties in the given order.

            dist: [N, N] distances. `node` itself counts, at its distance dist[node][node]. O(N log N).
            """
            checked_nodes([node], end=len(dist))
            checked_nodes(nodes, end=len(dist))
            row = dist[node]
            return sorted(nodes, key=lambda other: row[other])[: checked_count(count)]

        def checked_count(count, least=0):
            """`count` if it is at least `least`. Raises ValueError."""
            if count < least:
                raise ValueError(f"a count is below {least}")
            return count

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

        def room_of(demands, capacity, route):
            return capacity - sum(demands[node] for node in route)

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

        def radial_removal(dist, routes, center, count):
            """Remove the `count` customers nearest to the node `center`, which may be any node."""
            checked_nodes([center], end=len(dist))
            served = served_by(dist, routes)
            return remove(routes, nearest(dist, center, served, count))

        def served_by(dist, routes):
            """All customers, in the order of the routes. Raises ValueError."""
            checked_nodes(*routes, first=1, end=len(dist))
            return [node for route in routes for node in route]

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

        def _checked_search(dist, routes, customers, near, moves):
            """Copies of `routes` and `customers`. Raises ValueError."""
            served = served_by(dist, routes)
            checked_nodes(customers)
            checked_count(near)
            checked_count(moves)
            if not set(served).issuperset(customers):
                raise ValueError("a customer is not in the routes")
            return [list(route) for route in routes], list(customers)

        def _search(routes, queue, moves, move):
            """Apply `move` at the customers of `queue`, and at the ends that it returns."""
            while queue and moves:
                ends = move(queue.pop(0))
                if ends is not None:
                    queue.extend(dict.fromkeys(end for end in ends if end and end not in queue))
                    moves -= 1
            return routes

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

        def _place(routes, node):
            return next((r, route.index(node)) for r, route in enumerate(routes) if node in route)

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

        def way(dist, step, a, b):
            """From a to b for a step of 1, from b to a for one of -1."""
            return dist[a][b] if step == 1 else dist[b][a]

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

        def _serves(routes, node):
            return any(node in route for route in routes)

        return SimpleNamespace(
            cost=cost,
            nearest=nearest,
            ordered_insertion=ordered_insertion,
            radial_removal=radial_removal,
            remove=remove,
            two_opt=two_opt,
            two_opt_star=two_opt_star,
        )

    lns = python_kit()
# --- end of the kit
