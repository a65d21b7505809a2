"""Discovered by spo-jax: run cvrp-solve, round 7 (D7.18 with R7.70), discovery utility J =
0.050543.

One step of the search makes a candidate from the current solution:

    rest, removed = destroy(dist, demands, capacity, current_routes, steps, rng)
    candidate = repair(dist, demands, capacity, rest, removed, steps, rng)

dist is the square matrix of distances: a NumPy array, or nested lists where the code only
writes dist[i][j]. demands[i] is the demand of node i; node 0 is the depot. steps counts the
steps since the best cost last fell. rng is a random.Random. The file needs nothing of spo_jax;
`spo solve` reads it.
"""

def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    """Remove from 15 to 25 customers at random, taking strings of consecutive stops (length
    3 growing to 10 by one every 5 steps without improvement) of the routes around a
    random customer, half of them with up to 1 stops kept inside."""
    n = len(dist) - 1
    limit = max(1, int(0.35 * n))
    low = 15
    high = max(low, min(limit, 25))
    size = rng.randint(low, high)
    size = max(1, min(limit, size))
    center = rng.randint(1, n)
    length = min(10, 3 + steps_since_improvement // 5)
    return lns.string_removal(dist, current_routes, center, size, rng,
        length=length, gap=1)


def repair(dist, demands, capacity, partial_routes, removed_customers,
           steps_since_improvement, rng):
    """Insert next the removed customer with the largest regret over its 2 cheapest places
    less 0.5 times its insertion cost, each at its cheapest place; polish the result at
    the inserted customers by 2-opt* and Or-opt in at most 100 moves."""
    k = 2
    weight = 0.5
    best, added = lns.regret_insertion(dist, demands, capacity, partial_routes,
        removed_customers, k=k, weight=weight)
    best = lns.two_opt_star(dist, demands, capacity, best, removed_customers, moves=100)
    return lns.or_opt(dist, demands, capacity, best, removed_customers, moves=100)


# --- the kit: import lns
try:
    from spo_jax.envs.problems.cvrp import kit as lns
except ImportError:  # the same in Python, slower

    def python_kit():
        from types import SimpleNamespace

        from math import ldexp
        MAX_LENGTH = 1048576
        MAX_NODES = 65535
        LIMITS = []
        DEPTH = 64
        MARGIN = 1e-10
        inf = float("inf")
        KEPT = []
        MOST = 9007199254740992
        BIG = 1000000.0

        def or_opt(dist, demands, capacity, routes, customers, *, length=3, near=10, moves=1000):
            """Or-opt: move stretches of 1 to `length` customers with an end in `customers`: routes.

            A stretch goes beside one of the `near` nearest customers of that end, within its route or to
            one with room, either way round. Takes the first gain, goes on where edges changed, and stops
            after `moves` moves. Emptied routes are dropped.
            """
            problem = (*problem_of(dist, demands, capacity, routes), None)
            return search_or_opt(problem, customers, length, near, moves)

        def search_or_opt(problem, customers, length, near, moves):
            """`or_opt` of (dist, demands, capacity, routes, times), converted."""
            dist, demands, capacity, routes, times = problem
            queue, near, moves = checked_search(dist, routes, customers, near, moves)
            length = checked_count(length, 1)
            room = [room_of(demands, capacity, route) for route in routes]

            def move(a):
                return _or_opt_move(dist, demands, room, routes, times, a, length, near)

            return [route for route in search(routes, queue, moves, move) if route]

        def checked_search(dist, routes, customers, near, moves):
            """The last three, converted. Raises TypeError, ValueError."""
            customers = nodes_of(customers)
            checked_nodes(customers, end=len(dist))
            near, moves = checked_count(near), checked_count(moves)
            served = served_by(routes)
            if not set(served).issuperset(customers):
                raise ValueError("a customer is not in the routes")
            return customers, near, most_moves(moves, len(served))

        def nodes_of(given):
            """A list of ints, not checked."""
            return [integer_of(node) for node in items_of(given)]

        def integer_of(value):
            """The int that `value` is as an index: no float, no text."""
            return range(value).stop

        def items_of(given):
            """A list of what is in `given` now. An iterator has no length, and is refused."""
            if len(given) > MAX_LENGTH:
                raise ValueError("a list is too long")
            return list(given)

        def checked_nodes(*lists, first=0, end=MAX_NODES + 1):
            """Raises ValueError unless all nodes of the lists are distinct, from `first` to end - 1."""
            seen = set()
            for nodes in lists:
                for node in nodes:
                    if not first <= node < end:
                        raise ValueError("there is no such node")
                    if node in seen:
                        raise ValueError("a node stands there twice")
                    seen.add(node)

        def served_by(routes):
            """All customers, in the order of the routes."""
            return [node for route in routes for node in route]

        def checked_count(count, least=0):
            """`count` as an int of at least `least`."""
            count = integer_of(count)
            if count < least:
                raise ValueError("a count is too small")
            return count

        def most_moves(moves, size):
            """At most as many moves as no search of `size` nodes makes that gets anywhere: one that goes
            round in circles, which negative distances allow, ends.
            """
            return min(moves, 1000 + 100 * size)

        def room_of(demands, capacity, route):
            return capacity - sum(demands[node] for node in route)

        def _or_opt_move(dist, demands, room, routes, times, a, length, near):
            r, i = place_of(routes, a)
            path = [0, *routes[r], 0]
            limits = limits_of(dist)
            closest = neighbor_list_to(dist, a, 1, near), neighbor_list(dist, a, 1, near)
            close = list(zip(*closest, strict=True))
            for step in (1, -1):  # the stretch goes forward or backward from a
                turned = 0.0  # what it gets longer by when it is turned round
                inner = 0.0  # its length
                for size in range(1, min(length, len(routes[r])) + 1):
                    end = i + step * (size - 1)
                    if not 0 <= end < len(routes[r]):
                        break
                    stretch = [path[i + 1 + step * s] for s in range(size)]
                    e, p, q = stretch[-1], path[i + 1 - step], path[end + 1 + step]
                    if size > 1:
                        turned += way(dist, -step, stretch[-2], e) - way(dist, step, stretch[-2], e)
                        inner += way(dist, step, stretch[-2], e)
                    need = sum(demands[node] for node in stretch)
                    old = way(dist, step, p, a) + way(dist, step, e, q)
                    saved = old - way(dist, step, p, q)
                    for pair in close:
                        if dist[pair[0]][a] >= saved and dist[a][pair[1]] >= saved:
                            break
                        for side, c in zip((1, -1), pair, strict=True):  # the place is after or before c
                            if way(dist, side, c, a) >= saved or c in stretch or not serves(routes, c):
                                continue
                            s, j = place_of(routes, c)
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
                                stay = service_of(limits, stretch)
                                if s != r and not may_grow(dist, limits, routes[s], paid + inner, stay):
                                    continue
                                rest = [node for node in routes[r] if node not in stretch]
                                taker = rest if s == r else routes[s]
                                at = taker.index(c) + (side == 1)
                                moved = stretch if side == 1 else stretch[::-1]
                                new = [*taker[:at], *moved, *taker[at:]]
                                if s == r:
                                    timely = joins_in_time(dist, times, [], 0, new, [], 0)
                                else:
                                    low, high = min(i, end), max(i, end) + 1
                                    timely = joins_in_time(
                                        dist, times, routes[r], low, [], routes[r], high
                                    ) and joins_in_time(dist, times, taker, at, moved, taker, at)
                                if not timely:
                                    continue
                                routes[r], routes[s] = rest, new
                                room[r] += need
                                room[s] -= need
                                return a, e, p, q, c, x
            return None

        def place_of(routes, node):
            return next((r, route.index(node)) for r, route in enumerate(routes) if node in route)

        def limits_of(dist):
            """(longest, lasting, vehicles, service) of a converted matrix, or None."""
            for known, limits in LIMITS:
                if known is dist:
                    return limits
            return None

        def neighbor_list_to(dist, node, first, count):
            """As `neighbor_list`, of those from which the way to `node` is shortest."""
            column = [row[node] for row in dist]
            others = [other for other in range(first, len(dist)) if other != node]
            others.sort(key=lambda other: column[other])
            return others[: min(count, DEPTH)]

        def neighbor_list(dist, node, first, count):
            """The nodes of first to N - 1 nearest to `node`, itself left out; at most DEPTH."""
            row = dist[node]
            others = [other for other in range(first, len(dist)) if other != node]
            others.sort(key=lambda other: row[other])
            return others[: min(count, DEPTH)]

        def way(dist, step, a, b):
            """From a to b for a step of 1, from b to a for one of -1."""
            return dist[a][b] if step == 1 else dist[b][a]

        def service_of(limits, customers):
            service = 0.0
            for node in customers if limits else ():
                service += limits[3][node]
            return service

        def serves(routes, node):
            return any(node in route for route in routes)

        def joins_in_time(dist, times, route, end, nodes, other, begin):
            """Whether route[:end], `nodes` and other[begin:] are one route in time."""
            if times is None:
                return True
            path = [[0, *route][end], *nodes, [*other, 0][begin]]
            leaves, latest = clocks_of(dist, times, route)[0], clocks_of(dist, times, other)[1]
            return reaches(dist, times, leaves[end], path, latest[begin])

        def reaches(dist, times, clock, path, latest):
            """Whether who leaves path[0] at `clock` serves the stops between and is at path[-1] in time."""
            for i in range(1, len(path) - 1):
                clock = served(dist, times, clock, path[i - 1], path[i])
            return clock + dist[path[-2]][path[-1]] <= latest

        def served(dist, times, clock, stop, node):
            """When a vehicle that leaves a stop at `clock` has served the next one; inf: it is late."""
            ready, due, service = times
            at = max(clock + dist[stop][node], ready[node])
            return inf if at > due[node] else at + service[node]

        def clocks_of(dist, times, route):
            """(leaves, latest) of a route of L customers: [L + 1] each; None without times.

            leaves: when a vehicle can leave the depot and each customer, inf where it is late.
            latest: until when it must arrive at each customer and at the depot to be late nowhere.
            """
            if times is None:
                return None
            ready, due, service = times
            leaves, latest, stop = [ready[0]], [due[0]], 0
            for node in route:
                leaves.append(served(dist, times, leaves[-1], stop, node))
                stop = node
            stop = 0
            for node in reversed(route):
                by = min(due[node], latest[-1] - dist[node][stop] - service[node])
                latest.append(-inf if by < ready[node] else by)
                stop = node
            return leaves, latest[::-1]

        def may_grow(dist, limits, route, more, service):
            """Whether a route that got longer by that much and had more customers would keep the limits."""
            if limits is None:
                return True
            length, stay = measured(dist, limits, route)
            return length + more <= limits[0] and length + more + (stay + service) <= limits[1]

        def measured(dist, limits, route):
            """How long a route is, and its service."""
            length, stay, before = 0.0, 0.0, 0
            for node in route:
                length += dist[before][node]
                stay += limits[3][node]
                before = node
            return length + dist[before][0], stay

        def search(routes, queue, moves, move):
            """Apply `move` at the customers of `queue`, and at the ends that it returns."""
            while queue and moves:
                ends = move(queue.pop(0))
                if ends is not None:
                    queue.extend(dict.fromkeys(end for end in ends if end and end not in queue))
                    moves -= 1
            return routes

        def problem_of(dist, demands, capacity, routes):
            """All of them, converted. Raises TypeError, ValueError."""
            dist, routes = solution_of(dist, routes)
            return dist, demands_of(demands, len(dist)), integer_of(capacity), routes

        def solution_of(dist, routes):
            """The matrix, and routes of its customers. Raises TypeError, ValueError."""
            dist = matrix_of(dist)
            return dist, routes_of(routes, len(dist))

        def matrix_of(dist):
            """[N, N] floats: rows that can be indexed.

            O(N^2), but for a matrix that was prepared, and for the last one that is tuples and floats
            alone, which nobody can change.
            """
            for known, rows, _ in KEPT:
                if known is dist:
                    return rows
            rows = converted(dist)
            if type(dist) is tuple and all(map(is_constant, dist)):
                forget()
                KEPT.append((dist, rows, False))
            return rows

        def converted(dist):
            kind = getattr(dist, "dtype", getattr(dist, "format", ""))
            if kind == "d" and dist.ndim == 2:  # an array of float64
                rows = dist.tolist()
            else:
                rows = items_of(dist)
            size = len(rows)
            if size > MAX_NODES:
                raise ValueError("dist has too many nodes")
            for i, given in enumerate(rows):
                row = given if type(given) in (tuple, list) else items_of(given)
                if len(row) != size:
                    raise ValueError("dist is not square")
                if set(map(type, row)) != {float}:
                    row = [number_of(entry) for entry in row]
                rows[i] = row
            for row in rows:
                # Only NaN is not itself; min and max may miss it.
                if row and not (min(row) >= -1e300 and max(row) <= 1e300 and sum(row) == sum(row)):
                    raise ValueError("dist has a number that is not finite, or above 1e300")
            return rows

        def number_of(value):
            """The float of a number; an integer beyond all floats is infinite."""
            try:
                return ldexp(value, 0)
            except OverflowError:
                if not isinstance(value, int):
                    raise
                return float("inf") if value > 0 else -float("inf")

        def forget():
            """Drop what calls have left: the last matrix that was not prepared."""
            KEPT[:] = [each for each in KEPT if each[2]]

        def is_constant(row):
            return type(row) is tuple and set(map(type, row)) <= {float}

        def routes_of(given, end=MAX_NODES + 1):
            """Lists of distinct customers from 1 to end - 1. Raises TypeError, ValueError."""
            routes, total = [], 0
            for each in items_of(given):
                route = items_of(each)
                total += len(route)
                if total > MAX_NODES:
                    raise ValueError("the routes are too long")
                routes.append(nodes_of(route))
            checked_nodes(*routes, first=1, end=end)
            return routes

        def demands_of(given, least):
            """At least `least` ints, whose sums are exact as floats. Raises TypeError, ValueError."""
            demands, total = [integer_of(demand) for demand in items_of(given)], 0
            for demand in demands:
                if abs(demand) > MOST:
                    raise ValueError("a demand is too large")
                total += abs(demand)
                if total > MOST:
                    raise ValueError("the demands are too large")
            if len(demands) < least:
                raise ValueError("a node has no demand")
            return demands

        def regret_insertion(
            dist,
            demands,
            capacity,
            routes,
            customers,
            *,
            k=2,
            weight=0.0,
            bound=inf,
            near=0,
            noise=0.0,
            fresh=1.0,
            rng=None,
        ):
            """Insert the customer with the highest score first, at its cheapest place: (routes, added).

            score: over its k cheapest routes with room, the sum of what the 2nd to the k-th cost more than
                the cheapest, less weight * the cheapest cost. A route of its own counts with its cost times
                `fresh`, once for each route that is missing of k. k=1 with weight=1 is greedy insertion.
            noise: scores are compared times 1 + noise * u, a draw for each waiting customer each time.
            bound, near, fresh: as in `ordered_insertion`; with fresh = inf, a customer without room
                anywhere goes first.
            """
            k, weight = checked_count(k, 1), checked_number(weight, -1e6, 1e6)
            problem = (*problem_of(dist, demands, capacity, routes), None)
            return insert_by_regret(problem, customers, k, weight, bound, near, noise, fresh, rng)

        def insert_by_regret(problem, customers, k, weight, bound, near, noise, fresh, rng):
            """`regret_insertion` of (dist, demands, capacity, routes, times), k and weight, converted."""
            dist, demands, capacity, routes, times = problem
            waiting, added = nodes_of(customers), 0.0
            checked_nodes(*routes, waiting, first=1, end=len(dist))
            bound, near = checked_number(bound, -inf, inf), checked_count(near)
            noise, fresh = checked_number(noise, 0, 1e6), checked_number(fresh, 0, inf)
            grown = [list(route) for route in routes if route]
            room = [room_of(demands, capacity, route) for route in grown]
            clocks = [clocks_of(dist, times, route) for route in grown]
            limits = limits_of(dist)
            while waiting:
                best = None
                for node in waiting:
                    cheapest = {}
                    for price, r, index in _places(dist, grown, node, near):
                        if room[r] < demands[node] or not _may_take(dist, limits, grown[r], node, price):
                            continue
                        if not takes_in_time(dist, times, clocks[r], grown[r], index, node):
                            continue
                        if r not in cheapest or price < cheapest[r][0]:
                            cheapest[r] = price, index
                    alone = dist[0][node] + dist[node][0]
                    own = _freshness(limits, grown, fresh) * alone
                    prices = [price for price, _ in cheapest.values()]
                    prices = sorted([*prices, *[own] * (min(k, len(grown) + 1) - len(prices)), own])
                    score = 0.0
                    for price in prices[1:k]:
                        score += price - prices[0]
                    score -= weight * prices[0]
                    if noise:
                        score *= 1.0 + noise * drawn(rng)
                    if best is None or score > best:
                        best, chosen = score, node
                        found = [(price, r, i) for r, (price, i) in cheapest.items() if price == prices[0]]
                        place = min(found, key=lambda each: each[1], default=(alone, len(grown), 0))
                paid, r, index = place
                waiting.remove(chosen)
                if r == len(grown):
                    grown.append([])
                    room.append(capacity)
                    clocks.append(None)
                grown[r].insert(index, chosen)
                room[r] -= demands[chosen]
                clocks[r] = clocks_of(dist, times, grown[r])
                added += paid
                if added >= bound:
                    return None, inf
            return grown, float(added)

        def checked_number(value, low, high):
            """`value` as a float from `low` to `high`, so not NaN."""
            value = number_of(value)
            if not low <= value <= high:
                raise ValueError("a number is out of range")
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

        def _freshness(limits, routes, fresh):
            """What the cost of a new route counts times; where all vehicles are out, as if it were inf."""
            return BIG if is_full(limits, routes) else min(fresh, BIG)

        def is_full(limits, routes):
            """Whether all vehicles are out."""
            return limits is not None and sum(map(bool, routes)) >= limits[2]

        def takes_in_time(dist, times, clocks, route, index, node):
            """Whether a route with these clocks is in time with `node` at an index."""
            if times is None:
                return True
            stops = [0, *route, 0]
            path = [stops[index], node, stops[index + 1]]
            return reaches(dist, times, clocks[0][index], path, clocks[1][index])

        def _may_take(dist, limits, route, node, price):
            """Whether a route keeps the limits with `node` at a place of that price."""
            return may_grow(dist, limits, route, price, service_of(limits, [node]))

        def drawn(rng):
            """The next number of the program's generator, from 0 to below 1."""
            u = rng.random()
            if type(u) is not float:
                raise TypeError("rng.random() is not a float")
            if not 0 <= u < 1:
                raise ValueError("rng.random() is not from 0 to below 1")
            return u

        def string_removal(dist, routes, center, count, rng, length=10, gap=0):
            """Remove up to `count` customers as strings of adjacent routes (SISR).

            One string of 1 to `length` customers from each route that a customer near `center` is on, the
            nearest first. gap: half of the strings keep up to that many stops inside. Two draws a string,
            or four with a gap.
            """
            dist, routes = solution_of(dist, routes)
            served, center = served_by(routes), node_of(center, len(dist))
            count = min(checked_count(count), len(served))
            length, gap = checked_count(length, 1), checked_count(gap)
            home = {node: r for r, route in enumerate(routes) for node in route}
            chosen, cut = [], set()
            for node in nearest_of(dist, center, served, len(served)):
                if len(chosen) >= count:
                    break
                if home[node] in cut:
                    continue
                cut.add(home[node])
                route = routes[home[node]]
                size = 1 + int(drawn(rng) * min(length, len(route), count - len(chosen)))
                skipped, split = 0, size
                if gap:
                    if drawn(rng) < 0.5:
                        skipped = min(gap, len(route) - size)
                    split = 1 + int(drawn(rng) * size)
                window, where = size + skipped, route.index(node)
                low, high = max(0, where - window + 1), min(where, len(route) - window)
                start = low + int(drawn(rng) * (high - low + 1))
                chosen += route[start : start + split]
                chosen += route[start + split + skipped : start + window]
            return without(routes, chosen)

        def nearest_of(dist, node, nodes, count):
            row = dist[node]
            return sorted(nodes, key=lambda other: row[other])[:count]

        def without(routes, customers):
            gone = set(customers)
            kept = [[node for node in route if node not in gone] for route in routes]
            return kept, [node for route in routes for node in route if node in gone]

        def node_of(value, end, first=0):
            """A node from `first` to end - 1."""
            node = integer_of(value)
            checked_nodes([node], first=first, end=end)
            return node

        def two_opt_star(dist, demands, capacity, routes, customers, *, near=10, moves=1000):
            """2-opt*: exchange the ends of two routes, at `customers` and where edges changed: routes.

            Joins a customer to one of its `near` nearest customers of another route, where both routes keep
            within the capacity; takes the first gain and stops after `moves` moves. Emptied routes are
            dropped.
            """
            problem = (*problem_of(dist, demands, capacity, routes), None)
            return search_two_opt_star(problem, customers, near, moves)

        def search_two_opt_star(problem, customers, near, moves):
            """`two_opt_star` of (dist, demands, capacity, routes, times), converted."""
            dist, demands, capacity, routes, times = problem
            queue, near, moves = checked_search(dist, routes, customers, near, moves)

            def move(a):
                return _two_opt_star_move(dist, demands, capacity, routes, times, a, near)

            return [route for route in search(routes, queue, moves, move) if route]

        def _two_opt_star_move(dist, demands, capacity, routes, times, a, near):
            r, i = place_of(routes, a)
            for step in (1, -1):  # a keeps what is before it, or what is after it
                b = [0, *routes[r], 0][i + 1 + step]
                for c in near_by(dist, step, a, 1, near):
                    if way(dist, step, a, c) >= way(dist, step, a, b):
                        break
                    if not serves(routes, c) or c in routes[r]:
                        continue
                    s, j = place_of(routes, c)
                    d = [0, *routes[s], 0][j + 1 - step]
                    old = way(dist, step, a, b) + way(dist, step, d, c)
                    if old - way(dist, step, a, c) - way(dist, step, d, b) > MARGIN * old:
                        mine, theirs = (i + 1, j) if step == 1 else (i, j + 1)
                        one = routes[r][:mine] + routes[s][theirs:]
                        two = routes[s][:theirs] + routes[r][mine:]
                        rooms = room_of(demands, capacity, one), room_of(demands, capacity, two)
                        if (
                            min(rooms) >= 0
                            and lawful(dist, one)
                            and lawful(dist, two)
                            and joins_in_time(dist, times, routes[r], mine, [], routes[s], theirs)
                            and joins_in_time(dist, times, routes[s], theirs, [], routes[r], mine)
                        ):
                            routes[r], routes[s] = (one, two) if step == 1 else (two, one)
                            return a, b, c, d
            return None

        def near_by(dist, step, node, first, count):
            """`neighbor_list` for a step of 1, `neighbor_list_to` for one of -1."""
            return (neighbor_list if step == 1 else neighbor_list_to)(dist, node, first, count)

        def lawful(dist, route):
            return may_grow(dist, limits_of(dist), route, 0.0, 0.0)

        return SimpleNamespace(
            or_opt=or_opt,
            regret_insertion=regret_insertion,
            string_removal=string_removal,
            two_opt_star=two_opt_star,
        )

    lns = python_kit()
# --- end of the kit
