# role: destroy
# problem: tsp
# expect: rejected
# why: pins a matrix of its own
def destroy(dist, current_tour, steps_since_improvement, rng):
    import lns
    lns.prepare(dist)
    return current_tour[4:], current_tour[:4]
