# role: destroy
# problem: tsp
# expect: ok
# why: imports that are never used
import math
import heapq
import itertools
from collections import defaultdict
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    pass
    return current_tour[count:], current_tour[:count]
