# role: destroy
# problem: tsp
# expect: contained
# why: ten megabytes of output
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    for _ in range(10):
        print('x' * 10**6)
    return current_tour[count:], current_tour[:count]
