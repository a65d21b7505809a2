# role: destroy
# problem: tsp
# expect: crash
# why: an unpaired surrogate in the message
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    raise ValueError('\ud800')
    return current_tour[count:], current_tour[:count]
