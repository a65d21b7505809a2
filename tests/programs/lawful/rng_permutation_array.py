# role: destroy
# problem: tsp
# expect: ok
# why: permutation of a list
def destroy(dist, current_tour, steps_since_improvement, rng):
    shuffled = rng.permutation(current_tour)
    removed = shuffled[:5].tolist()
    return [c for c in current_tour if c not in removed], removed
