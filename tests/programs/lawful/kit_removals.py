# role: destroy
# problem: tsp
# expect: ok
# why: one removal after the other
def destroy(dist, current_tour, steps_since_improvement, rng):
    import lns
    tour, first = lns.string_removal(dist, current_tour, rng.choice(current_tour), 2, rng)
    tour, second = lns.worst_removal(dist, tour, 2, rng)
    return tour, first + second
