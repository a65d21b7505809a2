# role: destroy
# problem: tsp
# expect: rejected
# why: a counter kept across calls
calls = 0


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    global calls
    calls += 1
    count = calls % 3 + 1
    return current_tour[count:], current_tour[:count]
