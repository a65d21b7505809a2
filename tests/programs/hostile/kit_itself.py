# role: destroy
# problem: tsp
# expect: crash
# why: the kit in place of an argument
def destroy(dist, current_tour, steps_since_improvement, rng):
    import lns
    return lns.remove(lns, current_tour)
