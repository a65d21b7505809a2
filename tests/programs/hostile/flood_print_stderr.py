# role: destroy
# problem: tsp
# expect: any-failure
# why: a print to the error stream
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    import sys
    print('x', file=sys.stderr)
    return current_tour[count:], current_tour[:count]
