# role: destroy
# problem: tsp
# expect: ok
# why: every kind of parameter in a helper
def f(a, /, b, *, c=1, **rest):
    return a + b + c + sum(rest.values())

def destroy(dist, current_tour, steps_since_improvement, rng, /):
    k = f(1, b=0, c=1, d=1)
    return current_tour[k:], current_tour[:k]
