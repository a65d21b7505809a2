# role: destroy
# problem: tsp
# expect: any-failure
# why: attributes by string
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    import operator
    operator.attrgetter('__class__.__base__')(current_tour).__subclasses__()
    return current_tour[count:], current_tour[:count]
