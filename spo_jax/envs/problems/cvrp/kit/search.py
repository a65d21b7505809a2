"""The local search of the kit of the CVRP, in plain Python."""

from spo_jax.envs.problems.cvrp.kit.routes import (
    limits_of,
    may_grow,
    problem_of,
    room_of,
    served_by,
    service_of,
    solution_of,
)
from spo_jax.envs.problems.cvrp.kit.times import joins_in_time
from spo_jax.envs.problems.kit import (
    checked_count,
    checked_nodes,
    most_moves,
    near_by,
    neighbor_list,
    neighbor_list_to,
    nodes_of,
    way,
)

MARGIN = 1e-10  # of the removed edges: gains below it may be rounding, and would cycle


def two_opt(dist, routes, customers, *, near=10, moves=1000):
    """2-opt within routes, at `customers` and the ends of the edges it changes: routes.

    Looks at the `near` nearest customers (at most 64), takes the first gain, stops after `moves`
    moves or where nothing gains. What is turned round counts as it is long then.
    """
    dist, routes = solution_of(dist, routes)
    return search_two_opt(dist, routes, None, customers, near, moves)


def search_two_opt(dist, routes, times, customers, near, moves):
    """`two_opt` of converted arguments, the first three."""
    queue, near, moves = checked_search(dist, routes, customers, near, moves)
    return search(routes, queue, moves, lambda a: _two_opt_move(dist, routes, times, a, near))


def _two_opt_move(dist, routes, times, a, near):
    r, i = place_of(routes, a)
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
                    new = route[:low] + route[low : high + 1][::-1] + route[high + 1 :]
                    if turn != first:
                        new.reverse()
                    if joins_in_time(dist, times, [], 0, new, [], 0):
                        routes[r] = new
                        return a, b, c, d
    return None


def _both_ways(dist, path):
    """How long a path is up to each of its stops, and the way back: two lists of floats."""
    forth, back = [0.0], [0.0]
    for i in range(1, len(path)):
        forth.append(forth[-1] + dist[path[i - 1]][path[i]])
        back.append(back[-1] + dist[path[i]][path[i - 1]])
    return forth, back


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


def lawful(dist, route):
    return may_grow(dist, limits_of(dist), route, 0.0, 0.0)


def search(routes, queue, moves, move):
    """Apply `move` at the customers of `queue`, and at the ends that it returns."""
    while queue and moves:
        ends = move(queue.pop(0))
        if ends is not None:
            queue.extend(dict.fromkeys(end for end in ends if end and end not in queue))
            moves -= 1
    return routes


def place_of(routes, node):
    return next((r, route.index(node)) for r, route in enumerate(routes) if node in route)


def serves(routes, node):
    return any(node in route for route in routes)


def checked_search(dist, routes, customers, near, moves):
    """The last three, converted. Raises TypeError, ValueError."""
    customers = nodes_of(customers)
    checked_nodes(customers, end=len(dist))
    near, moves = checked_count(near), checked_count(moves)
    served = served_by(routes)
    if not set(served).issuperset(customers):
        raise ValueError("a customer is not in the routes")
    return customers, near, most_moves(moves, len(served))
