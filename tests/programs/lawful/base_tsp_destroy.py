# role: destroy
# problem: tsp
# expect: ok
# why: the plain program that many others are built on
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    pass
    return current_tour[count:], current_tour[:count]
