# role: destroy
# problem: tsp
# expect: any-failure
# why: the hash of a deeply nested tuple overflows the stack of C
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    a = ()
    for _ in range(3 * 10**5):
        a = (a,)
    hash(a)
    return current_tour[count:], current_tour[:count]
