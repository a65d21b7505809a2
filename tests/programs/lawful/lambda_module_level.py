# role: destroy
# problem: tsp
# expect: ok
# why: a helper written as a nested lambda with a default
def destroy(dist, current_tour, steps_since_improvement, rng):
    score = lambda v, t=current_tour, d=dist: d[t[0]][v]
    compose = lambda f: lambda x: -f(x)
    removed = sorted(current_tour, key=compose(score))[:4]
    return [v for v in current_tour if v not in removed], removed
