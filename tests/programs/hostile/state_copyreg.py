# role: destroy
# problem: tsp
# expect: any-failure
# why: a table of constructors
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    import copy
    copy._copy_dispatch[list] = len
    return current_tour[count:], current_tour[:count]
