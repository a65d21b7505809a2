# role: repair
# problem: cvrp
# expect: ok
# why: unions, callables and nested generics
from collections.abc import Callable, Iterable, Sequence
from typing import Union

def load(route: Sequence[int], q: Sequence[int] | None = None, f: Callable[[int], int] | None = None) -> int | float:
    total: Union[int, float] = 0
    for c in route:
        total += q[c] if q is not None else f(c)
    return total

def repair(dist, demands, capacity: int, partial_routes: list[list[int]], removed_customers: Iterable[int],
           steps_since_improvement: int, rng: object) -> list[list[int]]:
    out = [list(r) for r in partial_routes]
    for c in removed_customers:
        for r in out:
            if load(r, demands) + demands[c] <= capacity:
                r.append(c)
                break
        else:
            out.append([c])
    return out
