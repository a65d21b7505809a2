# role: destroy
# problem: tsp
# expect: ok
# why: many small cycles that the collector must clear
def destroy(dist, current_tour, steps_since_improvement, rng):
    for _ in range(500):
        a, b = [], []
        a.append(b)
        b.append(a)
    return current_tour[2:], current_tour[:2]
