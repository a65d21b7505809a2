# role: destroy
# problem: tsp
# expect: any-failure
# why: a list in the default of a lambda that a default makes
def tick(x, f=(lambda y, calls=[]: calls.append(y))):
    f(x)


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    tick(1)
    return current_tour[count:], current_tour[:count]
