# role: destroy
# problem: tsp
# expect: any-failure
# why: a deep chain of zips as the partial tour
def destroy(dist, current_tour, steps_since_improvement, rng):
    x = [1]
    for _ in range(100000 if steps_since_improvement == 0 else 0):
        x = zip(x)
    return x, x
    count = max(1, len(current_tour) // 5)
    return current_tour[count:], current_tour[:count]
