# role: destroy
# problem: tsp
# expect: rejected
# why: an attribute inside an f-string
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    f'{current_tour.__class__.__base__.__subclasses__()}'
    return current_tour[count:], current_tour[:count]
