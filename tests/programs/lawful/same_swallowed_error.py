# role: destroy
# problem: tsp
# expect: ok
# why: an error caught
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    try:
        [][1]
    except IndexError:
        pass
    return current_tour[count:], current_tour[:count]
