# role: destroy
# problem: tsp
# expect: any-failure
# why: a hundred billion draws
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    x = rng.random(10**11)
    return current_tour[count:], current_tour[:count]
