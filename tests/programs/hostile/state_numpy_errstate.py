# role: destroy
# problem: tsp
# expect: any-failure
# why: numpy's error callback outlives the call inside a suspended generator
import numpy as np


def destroy(dist, current_tour, steps_since_improvement, rng):
    def shout(kind, flag):
        raise ValueError(str(calls + 1))
    def hold():
        with np.errstate(divide="call", call=shout):
            yield box
    try:
        np.divide(1.0, 0.0)
        calls = 0
    except ValueError as error:
        calls = int(str(error))
    if steps_since_improvement > 0 and calls == 0:
        raise RuntimeError("no state was kept")
    box = []
    holder = hold()
    box.append(holder)
    next(holder)
    k = 1 + calls % 3
    return current_tour[k:], current_tour[:k]
