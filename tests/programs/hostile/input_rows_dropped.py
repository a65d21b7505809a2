# role: destroy
# problem: tsp
# expect: any-failure
# why: a loop variable over the rows is written
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    for row in dist:
        row[0] = 0.0
    return current_tour[count:], current_tour[:count]
