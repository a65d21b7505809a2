# role: destroy
# problem: tsp
# expect: any-failure
# why: returns a deeply nested list
def destroy(dist, current_tour, steps_since_improvement, rng):
    nest = []
    for _ in range(10**5):
        nest = [nest]
    return nest, current_tour[:2]
