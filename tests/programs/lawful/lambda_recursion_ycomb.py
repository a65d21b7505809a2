# role: destroy
# problem: tsp
# expect: ok
# why: a lambda assigned at module level
clamp = lambda x, low, high: max(low, min(x, high))
square = lambda x: x * x

def destroy(dist, current_tour, steps_since_improvement, rng):
    k = clamp(square(1 + steps_since_improvement), 1, int(0.35 * len(current_tour)))
    return current_tour[k:], current_tour[:k]
