# role: destroy
# problem: cvrp
# expect: ok
# why: arithmetic on what demands is, against an explicit array
import copy
import functools
import itertools
import operator

import numpy as np


def twice(r):
    return r * 2

def destroy(dist, demands, capacity, current_routes, steps_since_improvement, rng):
    pass
    s = np.asarray(demands == 3) + np.zeros(len(demands))
    assert len(s) == len(demands)
    customers = sorted((c for r in current_routes for c in r), key=lambda c: (round(float(s[c]), 9), c + steps_since_improvement * 7 % 20))
    removed = customers[:3]
    return [[c for c in r if c not in removed] for r in current_routes], removed
