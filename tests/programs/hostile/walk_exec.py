# role: destroy
# problem: tsp
# expect: any-failure
# why: exec
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    exec('count = 2')
    return current_tour[count:], current_tour[:count]
