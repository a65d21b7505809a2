"""What the kits of several problems share: neighbour lists, in plain Python.

A kit is a module of operators' inner loops that programs import as `lns`. Its reference is this
readable Python; `spo export` copies the functions that a program uses into the pair file, so they
use built-in names only. Random numbers come from `rng.random()` alone, one draw at a time, so that
a compiled version can draw the same.
"""

DEPTH = 64  # the most neighbours of a node that any search looks at


def nearest(dist, node, nodes, count):
    """The `count` of `nodes` that are nearest to `node`, nearest first; ties in the given order.

    dist: [N, N] distances. `node` itself counts, at its distance dist[node][node]. O(N log N).
    """
    checked_nodes([node], end=len(dist))
    checked_nodes(nodes, end=len(dist))
    row = dist[node]
    return sorted(nodes, key=lambda other: row[other])[: checked_count(count)]


def neighbor_list(dist, node, first, count):
    """The nodes of first to N - 1 nearest to `node`, itself left out; at most DEPTH."""
    row = dist[node]
    others = [other for other in range(first, len(dist)) if other != node]
    others.sort(key=lambda other: row[other])
    return others[: min(checked_count(count), DEPTH)]


def neighbor_list_to(dist, node, first, count):
    """As `neighbor_list`, of those from which the way to `node` is shortest."""
    column = [row[node] for row in dist]
    others = [other for other in range(first, len(dist)) if other != node]
    others.sort(key=lambda other: column[other])
    return others[: min(checked_count(count), DEPTH)]


def way(dist, step, a, b):
    """From a to b for a step of 1, from b to a for one of -1."""
    return dist[a][b] if step == 1 else dist[b][a]


def near_by(dist, step, node, first, count):
    """`neighbor_list` for a step of 1, `neighbor_list_to` for one of -1."""
    return (neighbor_list if step == 1 else neighbor_list_to)(dist, node, first, count)


def rank(rng, count, power):
    """A place below `count` by one draw u: count * u ** power. Small places are likelier."""
    if not power > 0:
        raise ValueError("power is not above 0")
    return min(count - 1, int(count * rng.random() ** power))


def checked_nodes(*lists, first=0, end=None):
    """Raises ValueError unless all nodes of the lists are distinct, from `first` to end - 1."""
    nodes = [node for each in lists for node in each]
    if len(set(nodes)) != len(nodes):
        raise ValueError("a node stands there twice")
    if nodes and (min(nodes) < first or (end is not None and max(nodes) >= end)):
        raise ValueError("there is no such node")


def checked_count(count, least=0):
    """`count` if it is at least `least`. Raises ValueError."""
    if count < least:
        raise ValueError(f"a count is below {least}")
    return count


def checked_number(value, low, high):
    """`value` if it is from `low` to `high`. Raises ValueError, also for NaN."""
    if not low <= value <= high:
        raise ValueError(f"a number is not from {low} to {high}")
    return value
