# role: destroy
# problem: tsp
# expect: contained
# why: comparing deep chains of slices
def destroy(dist, current_tour, steps_since_improvement, rng):
    x = 1
    for _ in range(100000 if steps_since_improvement == 0 else 0):
        x = slice(x)
    x == slice(x)
    count = max(1, len(current_tour) // 5)
    return current_tour[count:], current_tour[:count]
