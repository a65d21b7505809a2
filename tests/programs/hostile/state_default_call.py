# role: destroy
# problem: tsp
# expect: any-failure
# why: a default that is a call
def f(x=print('now')):
    return x


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    pass
    return current_tour[count:], current_tour[:count]
