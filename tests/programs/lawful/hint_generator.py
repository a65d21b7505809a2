# role: destroy
# problem: tsp
# expect: ok
# why: rng annotated as numpy's Generator
import numpy as np

def destroy(dist: np.ndarray, current_tour: list, steps_since_improvement: int, rng: np.random.Generator) -> tuple:
    k = max(1, len(current_tour) // 5)
    idx = set(int(i) for i in rng.choice(len(current_tour), size=k, replace=False))
    return [v for i, v in enumerate(current_tour) if i not in idx], [current_tour[i] for i in idx]
