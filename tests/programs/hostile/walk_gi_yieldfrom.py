# role: destroy
# problem: tsp
# expect: rejected
# why: a generator's delegate
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    g = (x for x in current_tour)
    g.gi_yieldfrom
    g.gi_code
    return current_tour[count:], current_tour[:count]
