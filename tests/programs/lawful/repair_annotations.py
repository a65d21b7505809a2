# role: repair
# problem: tsp
# expect: ok
# why: typing in helpers and variables
import typing as t
from typing import List, Optional

Node = int
Tour = List[Node]

def repair(dist: t.Sequence[t.Sequence[float]], partial_tour: Tour, removed_nodes: Tour,
           steps_since_improvement: int, rng: t.Any) -> Tour:
    tour: Tour = list(partial_tour)
    where: Optional[int]
    for v in removed_nodes:
        where = None
        best: float = float("inf")
        i: int
        for i in range(len(tour)):
            d: float = dist[tour[i - 1]][v] + dist[v][tour[i]]
            if d < best:
                best, where = d, i
        tour.insert(where if where is not None else 0, v)
    return tour
