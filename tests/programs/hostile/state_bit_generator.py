# role: destroy
# problem: tsp
# expect: any-failure
# why: the bit generator
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    rng.bit_generator.state
    return current_tour[count:], current_tour[:count]
