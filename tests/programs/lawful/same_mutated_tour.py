# role: destroy
# problem: tsp
# expect: ok
# why: the copy it was given is ruined after reading
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    tour = list(current_tour)
    current_tour.clear()
    current_tour.extend(tour)
    return current_tour[count:], current_tour[:count]
