# role: destroy
# problem: tsp
# expect: rejected
# why: an attribute as a loop target
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    for rng.calls in range(3):
        pass
    return current_tour[count:], current_tour[:count]
