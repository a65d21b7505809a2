# role: destroy
# problem: tsp
# expect: ok
# why: itertools and functools
import functools
import itertools
from functools import cmp_to_key, partial, reduce

def destroy(dist, current_tour, steps_since_improvement, rng):
    pairs = itertools.pairwise(current_tour)
    total = reduce(lambda acc, p: acc + dist[p[0]][p[1]], pairs, 0.0)
    acc = list(itertools.accumulate(dist[a][b] for a, b in zip(current_tour, current_tour[1:])))
    assert abs(acc[-1] - total) < 1e-9
    closer = partial(lambda base, v: dist[base][v], current_tour[0])
    ordered = sorted(current_tour, key=cmp_to_key(lambda a, b: -1 if closer(a) < closer(b) else 1 if closer(a) > closer(b) else 0))
    combos = list(itertools.combinations(ordered[:4], 2))
    best = min(combos, key=lambda c: dist[c[0]][c[1]])
    groups = {k: list(g) for k, g in itertools.groupby(sorted(current_tour), key=lambda v: v // 5)}
    few = list(itertools.islice(itertools.cycle(groups), 3)) + list(itertools.chain.from_iterable(groups.values()))[:0]
    assert few and list(itertools.takewhile(lambda v: v < 3, [1, 2, 3])) == [1, 2]
    assert list(itertools.product([1], [2])) == [(1, 2)] and functools.reduce(max, [1, 3, 2]) == 3
    removed = list(best)
    return [c for c in current_tour if c not in removed], removed
