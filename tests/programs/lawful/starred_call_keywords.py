# role: destroy
# problem: tsp
# expect: ok
# why: calls with starred arguments and keywords
def size(n, *rates, cap=0.35, **extra):
    return max(1, min(int(cap * n), int(n * max(rates, default=0.1)) + extra.get("more", 0)))

def destroy(dist, current_tour, steps_since_improvement, rng):
    options = {"more": 1, "cap": 0.3}
    k = size(len(current_tour), *(0.1, 0.2), **options)
    return current_tour[k:], current_tour[:k]
