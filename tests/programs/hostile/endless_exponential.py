# role: destroy
# problem: tsp
# expect: timeout
# why: recursion that branches on failure
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    def f():
        try:
            f()
        finally:
            f()
    f()
    return current_tour[count:], current_tour[:count]
