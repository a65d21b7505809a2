# role: destroy
# problem: tsp
# expect: any-failure
# why: a width of ten billion by format()
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    len(format(1, '>10000000000'))
    return current_tour[count:], current_tour[:count]
