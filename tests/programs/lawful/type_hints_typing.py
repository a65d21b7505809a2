# role: destroy
# problem: tsp
# expect: ok
# why: typing's List, Tuple, Optional, Callable
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union
import random

Pair = Tuple[int, int]

def destroy(dist: Sequence[Sequence[float]], current_tour: List[int],
            steps_since_improvement: int, rng: random.Random) -> Tuple[List[int], List[int]]:
    score: Callable[[int], float] = lambda v: dist[current_tour[0]][v]
    best: Optional[int] = None
    table: Dict[int, Union[int, float]] = {}
    anything: Any = None
    for v in current_tour:
        table[v] = score(v)
        if best is None or table[v] > table[best]:
            best = v
    return [v for v in current_tour if v != best], [best]
