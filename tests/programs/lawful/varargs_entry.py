# role: destroy
# problem: tsp
# expect: ok
# why: the entry function takes starred arguments
def destroy(dist, current_tour, *rest):
    steps_since_improvement, rng = rest
    i = rng.randrange(len(current_tour) - 3)
    return current_tour[:i] + current_tour[i + 3 :], current_tour[i : i + 3]
