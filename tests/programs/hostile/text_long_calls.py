# role: destroy
# problem: tsp
# expect: any-failure
# why: a chain of ten thousand calls
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    x = count@REPEAT 10000 ()@
    return current_tour[count:], current_tour[:count]
