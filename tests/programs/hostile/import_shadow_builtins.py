# role: destroy
# problem: tsp
# expect: any-failure
# why: a function called like the builtins table
def __builtins__():
    return 1


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    pass
    return current_tour[count:], current_tour[:count]
