# role: destroy
# problem: tsp
# expect: rejected
# why: a note on the kit's module for the next call
def destroy(dist, current_tour, steps_since_improvement, rng):
    import lns
    lns.note = steps_since_improvement
    return current_tour[4:], current_tour[:4]
