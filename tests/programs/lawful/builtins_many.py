# role: destroy
# problem: tsp
# expect: ok
# why: enumerate, zip, map, filter, reversed, divmod, round and others
def destroy(dist, current_tour, steps_since_improvement, rng):
    n = len(current_tour)
    q, r = divmod(n, 3)
    edges = list(zip(current_tour, current_tour[1:] + current_tour[:1]))
    lengths = list(map(lambda e: round(dist[e[0]][e[1]], 6), edges))
    long = list(filter(lambda p: p[1] > sum(lengths) / n, enumerate(lengths)))
    ranked = sorted(reversed(long), key=lambda p: (-p[1], p[0]))
    removed = [current_tour[i] for i, _ in ranked][: max(1, min(q, 6))] or [current_tour[0]]
    assert abs(r) < 3 and pow(2, 3) == 8 and isinstance(q, int)
    assert max(lengths, default=0) >= min(lengths) and bool(removed) and int("7") == 7
    assert str(1) == "1" and tuple(range(2)) == (0, 1) and iter([1]) is not None and chr(97) == "a" and ord("a") == 97
    assert bin(5) == "0b101" and hex(255) == "0xff" and list(range(5, 0, -2)) == [5, 3, 1]
    return [c for c in current_tour if c not in removed], removed
