# role: destroy
# problem: tsp
# expect: crash
# why: a list where the generator belongs
def destroy(dist, current_tour, steps_since_improvement, rng):
    import lns
    return lns.random_removal(current_tour, 4, [])
