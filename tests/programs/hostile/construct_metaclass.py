# role: destroy
# problem: tsp
# expect: rejected
# why: a metaclass
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    class Box(metaclass=type):
        pass
    return current_tour[count:], current_tour[:count]
