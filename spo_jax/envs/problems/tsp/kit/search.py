"""The local search of the kit of the TSP, in plain Python."""

from spo_jax.envs.problems.kit import (
    checked_count,
    checked_nodes,
    matrix_of,
    most_moves,
    near_by,
    neighbor_list,
    neighbor_list_to,
    nodes_of,
    tour_of,
    way,
)

MARGIN = 1e-10  # of the removed edges: gains below it may be rounding, and would cycle


def two_opt(dist, tour, nodes, *, near=10, moves=1000):
    """2-opt at the ends of `nodes` and of the edges it changes: a tour.

    Looks at the `near` nearest neighbours (at most 64), takes the first gain, stops after `moves`
    moves or where nothing gains. What is turned round counts as it is long then. In a tour whose
    edges are not as long both ways, where no 2-opt move gains, two neighbouring stretches may
    change places, which turns nothing round (or-3opt). O(len(nodes) * near + moves * len(tour)),
    with or-3opt O(len(nodes) * near ** 2 + moves * len(tour)).
    """
    dist, tour, queue, near, moves = _checked_search(dist, tour, nodes, near, moves)
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


def or_opt(dist, tour, nodes, *, length=3, near=10, moves=1000):
    """Or-opt: move stretches of 1 to `length` nodes with an end in `nodes`: a tour.

    A stretch goes beside one of the `near` nearest neighbours of that end, either way round. Takes
    the first gain, goes on at the nodes whose edges changed, and stops after `moves` moves.
    O(len(nodes) * length * near + moves * len(tour)).
    """
    dist, tour, queue, near, moves = _checked_search(dist, tour, nodes, near, moves)
    length = checked_count(length, 1)
    while queue and moves:
        a = queue.pop(0)
        move = _or_opt_move(dist, tour, a, length, near)
        if move is None:
            continue
        tour, ends = move
        queue.extend(dict.fromkeys(end for end in ends if end not in queue))
        moves -= 1
    return tour


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
            for pair in close:
                if dist[pair[0]][a] >= saved and dist[a][pair[1]] >= saved:
                    break
                for side, c in zip((1, -1), pair, strict=True):  # the place is after or before c
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


def lin_kernighan(dist, tour, nodes, *, near=10, moves=1000):
    """Lin and Kernighan's search (1973) and Or-opt at `nodes`: a tour.

    Chains of at most 30 exchanges, each of which turns a path round; of the first two the 5 and 3
    most promising are tried. Where none gains, Or-opt of up to 3 nodes, which no such chain makes.
    Looks at the `near` nearest neighbours (at most 64), goes on at the nodes whose edges changed,
    and stops after `moves` moves or where nothing gains. Where edges are not as long both ways,
    with the moves of `two_opt` in place of chains. O((len(nodes) + moves) * len(tour)), mostly
    much less.
    """
    dist, tour, queue, near, moves = _checked_search(dist, tour, nodes, near, moves)
    directed = str([*zip(*dist, strict=True)]) != str([*map(tuple, dist)])
    while queue and moves:
        a = queue.pop(0)
        place = {node: i for i, node in enumerate(tour)}
        if directed:
            lengths = _both_ways(dist, tour)
            move = _two_opt_move(dist, tour, place, lengths, a, near)
            if move is None and lengths[0] != lengths[1]:
                move = _swap_move(dist, tour, place, a, near)
        else:
            ends = len(tour) > 4 and _chain_move(dist, tour, place, a, near)
            move = (tour, ends) if ends else None
        move = move or _or_opt_move(dist, tour, a, 3, near)
        if move is None:
            continue
        tour, ends = move
        queue.extend(dict.fromkeys(end for end in ends if end not in queue))
        moves -= 1
    return tour


def _chain_move(dist, tour, place, a, near):
    """The ends of the first chain at `a` that gains, which is made in `tour`; () if none does."""
    for step in (1, -1):
        b = tour[(place[a] + step) % len(tour)]
        ends = _chain(dist, tour, place, [], a, b, near, dist[a][b], 0.0, dist[a][b])
        if ends:
            return (*ends, a)
    return ()


def _chain(dist, tour, place, added, a, b, near, total, best, gone):
    """Exchanges from the edge of a and b on: the ends of those that stay, last exchange first.

    added: the edges put in so far. total: gained so far, without the edge that closes the tour.
    best: gained so far, with it. gone: the length taken out.
    """
    level = len(added)
    if level == 30:
        return ()
    most = 1 if best > 0.0 or level > 1 else (5, 3)[level]
    for c, d, new_total in _exchanges(dist, tour, place, added, a, b, near, total)[:most]:
        gain, out = new_total - dist[d][a], gone + dist[d][c]
        _turn_from(tour, place, a, b, d)
        better = gain > best + MARGIN * out
        put_in = [*added, {b, c}]
        if better:
            best = gain
        ends = _chain(dist, tour, place, put_in, a, d, near, new_total, best, out)
        if better or ends:
            return (*ends, b, c, d)
        _turn_from(tour, place, a, d, b)
    return ()


def _exchanges(dist, tour, place, added, a, b, near, total):
    """(c, d, total) of the exchanges that put in the edge of b and c, and take out that of c and d
    and the one of a and b; the highest total first.
    """
    n, found = len(tour), []
    step = 1 if tour[(place[a] + 1) % n] == b else -1
    for c in neighbor_list(dist, b, 0, near):
        rest = total - dist[b][c]
        if not rest > 0.0:
            break
        if c not in place or c == a:
            continue
        d = tour[(place[c] - step) % n]
        if d != b and {c, d} not in added:
            found.append((c, d, rest + dist[d][c]))
    return sorted(found, key=lambda exchange: -exchange[2])


def _turn_from(tour, place, a, b, d):
    """Turn round the path from b, which is beside a, to d; or all the rest, which is the same tour,
    where that is shorter.
    """
    n = len(tour)
    low, high = place[b], place[d]
    if tour[(place[a] + 1) % n] != b:
        low, high = high, low
    size = (high - low) % n + 1
    if 2 * size > n:
        low, high, size = high + 1, low - 1, n - size
    for k in range(size // 2):
        i, j = (low + k) % n, (high - k) % n
        tour[i], tour[j] = tour[j], tour[i]
        place[tour[i]], place[tour[j]] = i, j


def _checked_search(dist, tour, nodes, near, moves):
    """All of them, converted. Raises TypeError, ValueError."""
    dist = matrix_of(dist)
    tour, nodes = tour_of(dist, tour), nodes_of(nodes)
    near, moves = checked_count(near), checked_count(moves)
    checked_nodes(nodes, end=len(dist))
    if not set(tour).issuperset(nodes):
        raise ValueError("a node is not in the tour")
    return dist, tour, nodes, near, most_moves(moves, len(tour))
