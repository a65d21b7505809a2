# role: destroy
# problem: tsp
# expect: ok
# why: roulette by cumulative sums and searchsorted
import numpy as np

def destroy(dist, current_tour, steps_since_improvement, rng):
    t = np.array(current_tour)
    cost = dist[t, np.roll(t, 1)] + dist[t, np.roll(t, -1)]
    cum = np.cumsum(cost)
    chosen = []
    while len(chosen) < 4:
        i = int(np.searchsorted(cum, rng.random() * cum[-1]))
        i = int(np.clip(i, 0, t.size - 1))
        if current_tour[i] not in chosen:
            chosen.append(current_tour[i])
    return [c for c in current_tour if c not in chosen], chosen
