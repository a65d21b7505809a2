# role: destroy
# problem: tsp
# expect: ok
# why: the order of a set of strings must not change a result
def destroy(dist, current_tour, steps_since_improvement, rng):
    names = {"node%d" % v for v in current_tour}
    removed = [int(name[4:]) for name in list(names)[:4]]
    return [c for c in current_tour if c not in removed], removed
