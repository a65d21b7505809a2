# role: destroy
# problem: tsp
# expect: contained
# why: distances with which local search goes round in circles
import lns


def destroy(dist, current_tour, steps_since_improvement, rng):
    own = tuple(tuple((-1.0) ** (a * b) * 1e300 for a in range(20)) for b in range(20))
    lns.or_opt(own, current_tour, current_tour, moves=10**30)
    count = max(1, len(current_tour) // 5)
    return current_tour[count:], current_tour[:count]
