# role: destroy
# problem: tsp
# expect: timeout
# why: an endless loop
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    while True:
        pass
    return current_tour[count:], current_tour[:count]
