# role: repair
# problem: tsp
# expect: ok
# why: Python and numpy integers mixed
import numpy as np

def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    return partial_tour + [np.int32(v) if i % 2 else int(v) for i, v in enumerate(removed_nodes)]
