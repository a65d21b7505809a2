# role: destroy
# problem: tsp
# expect: rejected
# why: a closure built at module level
def make():
    calls = 0
    def tick():
        nonlocal calls
        calls += 1
        return calls
    return tick


tick = make()


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    tick()
    return current_tour[count:], current_tour[:count]
