# role: destroy
# problem: tsp
# expect: ok
# why: annotations as strings and a future import
from __future__ import annotations

def destroy(dist: "np.ndarray", current_tour: "list[int]", steps_since_improvement: int, rng: Undefined) -> tuple[Nowhere, list[int]]:
    x: "Whatever" = 1
    return current_tour[x:], current_tour[:x]
