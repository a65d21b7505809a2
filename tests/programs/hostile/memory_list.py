# role: destroy
# problem: tsp
# expect: any-failure
# why: a growing list
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    x = []
    while True:
        x.append([0] * 100000)
    return current_tour[count:], current_tour[:count]
