# role: destroy
# problem: tsp
# expect: rejected
# why: state on the function
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    destroy.calls = 1
    return current_tour[count:], current_tour[:count]
