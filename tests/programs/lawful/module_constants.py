# role: destroy
# problem: tsp
# expect: ok
# why: constants at module level
import math

FRACTION = 0.2
SCALES = (1, 2, 3)
INFINITY = float("inf")
ALSO_INFINITY = math.inf
NEGATIVE = -1
NAME = "segment"
NOTHING = None
FLAG = True
SECONDS = 60 * 60 * 24
MAX_REMOVE: float = 0.35

def destroy(dist, current_tour, steps_since_improvement, rng):
    """Segment."""
    k = max(1, min(int(FRACTION * len(current_tour)), int(MAX_REMOVE * len(current_tour))))
    k = min(k, SCALES[NEGATIVE]) if FLAG and NOTHING is None else k
    best, where = INFINITY, 0
    for i in range(len(current_tour) - k):
        length = dist[current_tour[i]][current_tour[i + 1]]
        if length < best < ALSO_INFINITY or best == ALSO_INFINITY:
            best, where = length, i
    return current_tour[:where] + current_tour[where + k:], current_tour[where:where + k]
