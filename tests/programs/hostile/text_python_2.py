# role: destroy
# problem: tsp
# expect: rejected
# why: Python 2
def destroy(dist, current_tour, steps_since_improvement, rng):
    print 'x'
    return current_tour[2:], current_tour[:2]
