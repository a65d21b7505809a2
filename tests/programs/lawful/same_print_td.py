# role: destroy
# problem: tsp
# expect: ok
# why: output changes nothing
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    print('x' * 10000)
    print([1, 2], {'a': 1}, end='')
    return current_tour[count:], current_tour[:count]
