# role: destroy
# problem: tsp
# expect: ok
# why: the order of a set of distances
def destroy(dist, current_tour, steps_since_improvement, rng):
    lengths = {dist[a][b]: b for a, b in zip(current_tour, current_tour[1:])}
    removed = [lengths[x] for x in list(set(lengths))[:4]]
    return [c for c in current_tour if c not in removed], removed
