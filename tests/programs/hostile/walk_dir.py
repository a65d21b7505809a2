# role: destroy
# problem: tsp
# expect: any-failure
# why: dir
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    count = len(dir(rng)) and count
    return current_tour[count:], current_tour[:count]
