# role: destroy
# problem: tsp
# expect: any-failure
# why: keeps what the kit returns until the memory is full
def destroy(dist, current_tour, steps_since_improvement, rng):
    import lns
    kept = []
    while True:
        kept.append(lns.neighbors(dist, 64))
