# role: destroy
# problem: tsp
# expect: ok
# why: an escape that Python warns about, an identity test of a constant
def destroy(dist, current_tour, steps_since_improvement, rng):
    """Removes \d nodes with \S care."""
    if len(current_tour) is 0:
        return [], []
    return current_tour[2:], current_tour[:2]
