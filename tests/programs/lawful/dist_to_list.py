# role: destroy
# problem: tsp
# expect: ok
# why: dist.tolist()
def destroy(dist, current_tour, steps_since_improvement, rng):
    d = dist.tolist()
    v = max(current_tour, key=lambda i: sum(d[i]))
    return [c for c in current_tour if c != v], [v]
