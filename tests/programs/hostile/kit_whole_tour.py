# role: destroy
# problem: tsp
# expect: invalid
# why: a count beyond what may leave
def destroy(dist, current_tour, steps_since_improvement, rng):
    import lns
    return lns.random_removal(current_tour, 10**40, rng)
