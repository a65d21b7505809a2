# role: destroy
# problem: tsp
# expect: ok
# why: builtin generics and np.ndarray in annotations
import numpy as np

def destroy(
    dist: np.ndarray,
    current_tour: list[int],
    steps_since_improvement: int,
    rng: np.random.Generator,
) -> tuple[list[int], list[int]]:
    k: int = max(1, len(current_tour) // 5)
    removed: list[int]
    removed = [int(x) for x in rng.choice(current_tour, k, replace=False)]
    return [x for x in current_tour if x not in removed], removed
