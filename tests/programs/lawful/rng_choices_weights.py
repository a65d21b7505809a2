# role: destroy
# problem: tsp
# expect: ok
# why: choices with weights, gauss, randrange with a step
def destroy(dist, current_tour, steps_since_improvement, rng):
    weights = [1.0 + abs(rng.gauss(0, 1)) for _ in current_tour]
    removed = list(dict.fromkeys(rng.choices(current_tour, weights=weights, k=6)))
    skip = rng.randrange(0, len(current_tour), 2)
    if current_tour[skip] not in removed:
        removed.append(current_tour[skip])
    return [x for x in current_tour if x not in removed], removed
