# role: destroy
# problem: tsp
# expect: any-failure
# why: two functions and none of them called destroy
def remove(dist, current_tour, steps_since_improvement, rng):
    return current_tour[2:], current_tour[:2]


def other(x):
    return x
