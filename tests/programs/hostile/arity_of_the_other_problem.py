# role: destroy
# problem: cvrp
# expect: any-failure
# why: the parameters of the TSP
def destroy(dist, current_tour, steps_since_improvement, rng):
    return current_tour[2:], current_tour[:2]
