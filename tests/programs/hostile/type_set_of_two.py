# role: destroy
# problem: tsp
# expect: any-failure
# why: a set of two tuples unpacks too, in any order
def destroy(dist, current_tour, steps_since_improvement, rng):
    return {tuple(current_tour[2:]), tuple(current_tour[:2])}
