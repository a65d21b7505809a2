# role: destroy
# problem: tsp
# expect: ok
# why: arithmetic on what dist is, against an explicit array
import copy
import functools
import itertools
import operator

import numpy as np


def twice(r):
    return r * 2

def destroy(dist, current_tour, steps_since_improvement, rng):
    a, b = current_tour[0], current_tour[1 + steps_since_improvement % 5]
    s = dist[:, a] + dist[1:][0]
    assert len(s) == len(current_tour)
    order = sorted(range(len(s)), key=lambda v: (round(float(s[v]), 9), v))
    removed = order[:4]
    return [v for v in current_tour if v not in removed], removed
