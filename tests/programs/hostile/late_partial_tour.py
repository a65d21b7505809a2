# role: destroy
# problem: tsp
# expect: contained
# why: a finaliser empties the partial tour while repair reads it
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    partial, removed = current_tour[count:], current_tour[:count]
    box = []
    def hold():
        try:
            yield box
        finally:
            partial.clear()
    holder = hold()
    next(holder)
    box.append(holder)
    junk = [[] for _ in range(3000)]
    return partial, removed
