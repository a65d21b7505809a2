# role: destroy
# problem: tsp
# expect: ok
# why: a matrix of its own, which changes between two calls
def destroy(dist, current_tour, steps_since_improvement, rng):
    import lns
    own = [list(row) for row in dist]
    before = lns.nearest(own, current_tour[0], current_tour, 4)
    for k in current_tour[1:5]:
        own[current_tour[0]][k] = 0.0
    after = lns.nearest(own, current_tour[0], current_tour, 5)
    assert sorted(after) == sorted(current_tour[:5])
    return lns.remove(current_tour, before)
