# role: destroy
# problem: tsp
# expect: any-failure
# why: GeneratorExit
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    raise GeneratorExit
    return current_tour[count:], current_tour[:count]
