# role: destroy
# problem: tsp
# expect: ok
# why: removes by value in place
def destroy(dist, current_tour, steps_since_improvement, rng):
    removed = rng.sample(current_tour, 5)
    for node in removed:
        current_tour.remove(node)
    return current_tour, removed
