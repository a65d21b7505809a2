# role: repair
# problem: tsp
# expect: ok
# why: rng annotated as random.Random
import random
from typing import List

def repair(dist: List[List[float]], partial_tour: List[int], removed_nodes: List[int],
           steps_since_improvement: int, rng: random.Random) -> List[int]:
    tour = partial_tour[:]
    for v in rng.sample(removed_nodes, len(removed_nodes)):
        tour.insert(rng.randrange(len(tour) + 1), v)
    return tour
