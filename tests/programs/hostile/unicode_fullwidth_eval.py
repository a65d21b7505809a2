# role: destroy
# problem: tsp
# expect: any-failure
# why: eval in full-width letters
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    ｅｖａｌ('1')
    return current_tour[count:], current_tour[:count]
