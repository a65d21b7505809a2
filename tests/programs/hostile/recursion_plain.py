# role: destroy
# problem: tsp
# expect: crash
# why: no base case
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    def f(x):
        return f(x + 1)
    f(0)
    return current_tour[count:], current_tour[:count]
