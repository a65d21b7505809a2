# role: destroy
# problem: tsp
# expect: timeout
# why: calls the kit for ever
def destroy(dist, current_tour, steps_since_improvement, rng):
    import lns
    while True:
        lns.neighbors(dist, 64)
