# role: destroy
# problem: tsp
# expect: crash
# why: texts in place of nodes
def destroy(dist, current_tour, steps_since_improvement, rng):
    import lns
    return lns.remove(current_tour, 'abc')
