"""What the kits of several problems share, in plain Python: arguments, and neighbour lists.

A kit is a module of operators' inner loops that programs import as `lns`. Its reference is this
readable Python; `spo export` copies the functions that a program uses into the pair file, so they
use built-in names only. Random numbers come from `rng.random()` alone, one draw at a time, so that
a compiled version can draw the same.

Whatever a program gives to a function of a kit is converted or refused at its beginning, to plain
floats, integers and lists, by the same rules and in the same order as in the compiled version
(`kit.h`, `kit_matrix.h`): a list is anything with a length whose items can be read, an integer what
can be an index, a number what has a value as a float. TypeError for what is none; ValueError for
values that are not allowed.
"""

from math import ldexp

DEPTH = 64  # the most neighbours of a node that any search looks at
MAX_NODES = 65535  # of a matrix; a node fits 16 bits
MAX_LENGTH = 1 << 20  # of a list

# --- arguments ------------------------------------------------------------------------------------


def items_of(given):
    """A list of what is in `given` now. An iterator has no length, and is refused."""
    if len(given) > MAX_LENGTH:
        raise ValueError("a list is too long")
    return list(given)


def integer_of(value):
    """The int that `value` is as an index: no float, no text."""
    return range(value).stop


def number_of(value):
    """The float of a number; an integer beyond all floats is infinite."""
    try:
        return ldexp(value, 0)
    except OverflowError:
        if not isinstance(value, int):
            raise
        return float("inf") if value > 0 else -float("inf")


KEPT: list[
    tuple[object, list, bool]
] = []  # (matrix, its rows, whether `prepare` keeps it): known by their objects


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


def is_constant(row):
    return type(row) is tuple and set(map(type, row)) <= {float}


def prepare(dist):
    """Convert a matrix once for all calls with this object; the last 8 are kept."""
    KEPT[:] = [each for each in KEPT if each[0] is not dist][-7:]
    KEPT.append((dist, converted(dist), True))


def release(dist):
    """Drop what `prepare` has made of a matrix."""
    KEPT[:] = [each for each in KEPT if each[0] is not dist]


def forget():
    """Drop what calls have left: the last matrix that was not prepared."""
    KEPT[:] = [each for each in KEPT if each[2]]


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


def nodes_of(given):
    """A list of ints, not checked."""
    return [integer_of(node) for node in items_of(given)]


def node_of(value, end, first=0):
    """A node from `first` to end - 1."""
    node = integer_of(value)
    checked_nodes([node], first=first, end=end)
    return node


def tour_of(dist, tour):
    """A list of distinct nodes of a converted matrix."""
    nodes = nodes_of(tour)
    checked_nodes(nodes, end=len(dist))
    return nodes


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


def checked_count(count, least=0):
    """`count` as an int of at least `least`."""
    count = integer_of(count)
    if count < least:
        raise ValueError("a count is too small")
    return count


def checked_number(value, low, high):
    """`value` as a float from `low` to `high`, so not NaN."""
    value = number_of(value)
    if not low <= value <= high:
        raise ValueError("a number is out of range")
    return value


def drawn(rng):
    """The next number of the program's generator, from 0 to below 1."""
    u = rng.random()
    if type(u) is not float:
        raise TypeError("rng.random() is not a float")
    if not 0 <= u < 1:
        raise ValueError("rng.random() is not from 0 to below 1")
    return u


def rank(rng, count, power):
    """A place below `count` by one draw u: count * u ** power. Small places are likelier."""
    if not power > 0:
        raise ValueError("power is not above 0")
    return min(count - 1, int(count * drawn(rng) ** power))


def most_moves(moves, size):
    """At most as many moves as no search of `size` nodes makes that gets anywhere: one that goes
    round in circles, which negative distances allow, ends.
    """
    return min(moves, 1000 + 100 * size)


# --- neighbours, of converted matrices ------------------------------------------------------------


def nearest(dist, node, nodes, count):
    """The `count` of `nodes` that are nearest to `node`, nearest first; ties in the given order.

    dist: [N, N] distances. `node` itself counts, at its distance dist[node][node]. O(N log N).
    """
    dist = matrix_of(dist)
    node, nodes, count = node_of(node, len(dist)), nodes_of(nodes), checked_count(count)
    checked_nodes(nodes, end=len(dist))
    return nearest_of(dist, node, nodes, count)


def nearest_of(dist, node, nodes, count):
    row = dist[node]
    return sorted(nodes, key=lambda other: row[other])[:count]


def neighbor_list(dist, node, first, count):
    """The nodes of first to N - 1 nearest to `node`, itself left out; at most DEPTH."""
    row = dist[node]
    others = [other for other in range(first, len(dist)) if other != node]
    others.sort(key=lambda other: row[other])
    return others[: min(count, DEPTH)]


def neighbor_list_to(dist, node, first, count):
    """As `neighbor_list`, of those from which the way to `node` is shortest."""
    column = [row[node] for row in dist]
    others = [other for other in range(first, len(dist)) if other != node]
    others.sort(key=lambda other: column[other])
    return others[: min(count, DEPTH)]


def way(dist, step, a, b):
    """From a to b for a step of 1, from b to a for one of -1."""
    return dist[a][b] if step == 1 else dist[b][a]


def near_by(dist, step, node, first, count):
    """`neighbor_list` for a step of 1, `neighbor_list_to` for one of -1."""
    return (neighbor_list if step == 1 else neighbor_list_to)(dist, node, first, count)
