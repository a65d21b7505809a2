# role: destroy
# problem: tsp
# expect: contained
# why: a finally that takes all memory when the collector runs it
def destroy(dist, current_tour, steps_since_improvement, rng):
    def hold(box):
        try:
            yield box
        finally:
            box.extend([0] * 10**9)
    box = []
    holder = hold(box)
    next(holder)
    box.append(holder)
    kept = [[v] for v in range(800)]
    kept.append(kept)
    count = max(1, len(current_tour) // 5)
    return current_tour[count:], current_tour[:count]
