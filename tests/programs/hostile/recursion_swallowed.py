# role: destroy
# problem: tsp
# expect: contained
# why: recursion with its error swallowed
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    def f(x):
        return f(x + 1)
    try:
        f(0)
    except RecursionError:
        pass
    return current_tour[count:], current_tour[:count]
