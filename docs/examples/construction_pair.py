"""A pair for the game of construction.py, written by hand.

Its functions: construct leads, improve follows.
"""


def construct(dist, current_tour, steps_since_improvement, rng):
    """Let two neighbouring stretches of the tour change places, now and then longer ones."""
    n = len(current_tour)
    if n < 4:
        return current_tour
    longest = min(n // 2 - 1, 10 + steps_since_improvement % 40)
    first = rng.randrange(n)
    turned = current_tour[first:] + current_tour[:first]
    a = 1 + rng.randrange(longest)
    b = a + 1 + rng.randrange(longest)
    return turned[a:b] + turned[:a] + turned[b:]


def improve(dist, built_tour, steps_since_improvement, rng):
    """Reverse stretches (2-opt) and move short ones (Or-opt) to near nodes while that helps."""
    n = len(built_tour)
    tour = list(built_tour)
    place = [0] * n
    for k, node in enumerate(tour):
        place[node] = k

    def shorter(node):
        """A tour that a move of the node makes shorter, and the nodes at its ends; or None."""
        row, k = dist[node], place[node]
        for step in (1, -1):
            other = tour[(k + step) % n]
            length = row[other]
            for near in [v for v, d in enumerate(row) if d < length and v != node]:
                beyond = tour[(place[near] + step) % n]
                ends = (node, other, near, beyond)
                won = length + dist[near][beyond] - row[near] - dist[other][beyond]
                if won > 1e-9:
                    # From the later of two neighbours to the earlier of the other two.
                    start, end = (other, near) if step == 1 else (node, beyond)
                    turned = tour[place[start] :] + tour[: place[start]]
                    count = (place[end] - place[start]) % n + 1
                    return turned[:count][::-1] + turned[count:], ends
                for size in (1, 2, 3):
                    moved = [tour[(k - step * i) % n] for i in range(size)]
                    after = tour[(k - step * size) % n]
                    if near in moved or after == other:
                        break
                    freed = length + dist[moved[-1]][after] - dist[other][after]
                    for side in (1, -1):
                        beside = tour[(place[near] + side) % n]
                        if beside in moved:
                            continue
                        won = freed + dist[near][beside] - row[near] - dist[moved[-1]][beside]
                        if won > 1e-9:
                            rest = [v for v in tour if v not in moved]
                            at = rest.index(near)
                            if side == 1:
                                rest[at + 1 : at + 1] = moved
                            else:
                                rest[at:at] = moved[::-1]
                            return rest, (*ends, after, moved[-1], beside)
        return None

    waiting = tour[:]
    while waiting:
        node = waiting.pop()
        found = shorter(node)
        if found is not None:
            tour, ends = found
            for k, each in enumerate(tour):
                place[each] = k
            waiting += ends
    return tour
