# role: destroy
# problem: tsp
# expect: rejected
# why: a call as a module's statement
print('hello')


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    pass
    return current_tour[count:], current_tour[:count]
