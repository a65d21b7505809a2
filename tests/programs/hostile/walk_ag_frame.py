# role: repair
# problem: tsp
# expect: any-failure
# why: an asynchronous generator's frame
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    async def c():
        yield 1
    c().ag_frame.f_back
    tour.extend(removed_nodes)
    return tour
