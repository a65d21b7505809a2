# role: destroy
# problem: tsp
# expect: any-failure
# why: a module's own imports
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    import collections
    collections._sys.exit()
    return current_tour[count:], current_tour[:count]
