# role: destroy
# problem: tsp
# expect: any-failure
# why: reading a deep chain of generator expressions
def destroy(dist, current_tour, steps_since_improvement, rng):
    x = [1]
    for _ in range(50000 if steps_since_improvement == 0 else 0):
        x = (v for v in x)
    list(x)
    count = max(1, len(current_tour) // 5)
    return current_tour[count:], current_tour[:count]
