# role: destroy
# problem: tsp
# expect: timeout
# why: each call is lawful, all of them are too slow
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    total = 0
    for i in range(10**7):
        total += i
    return current_tour[count:], current_tour[:count]
