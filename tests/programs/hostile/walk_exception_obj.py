# role: destroy
# problem: tsp
# expect: rejected
# why: the object an AttributeError carries
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    try:
        rng.nonsense
    except AttributeError as e:
        e.obj.state = 1
    return current_tour[count:], current_tour[:count]
