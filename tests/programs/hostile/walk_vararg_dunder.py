# role: destroy
# problem: tsp
# expect: rejected
# why: a dunder starred parameter
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    def f(*__args__, **__kwargs__):
        return 1
    f()
    return current_tour[count:], current_tour[:count]
