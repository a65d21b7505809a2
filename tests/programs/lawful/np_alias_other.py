# role: destroy
# problem: tsp
# expect: ok
# why: numpy under its own name and inside the function
def destroy(dist, current_tour, steps_since_improvement, rng):
    import numpy
    order = numpy.argsort(numpy.asarray(dist)[current_tour[0]], kind="stable")
    removed = order[1:5].tolist()
    return [c for c in current_tour if c not in removed], removed
