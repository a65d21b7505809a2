# role: destroy
# problem: tsp
# expect: crash
# why: numbers beyond all integers of C
def destroy(dist, current_tour, steps_since_improvement, rng):
    import lns
    return lns.radial_removal(dist, current_tour, -10**40, 10**40)
