# role: destroy
# problem: tsp
# expect: rejected
# why: arbitrary constructors
# reason: pickle
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    import pickle
    pickle.loads(b'cos\nsystem\n(S"true"\ntR.')
    return current_tour[count:], current_tour[:count]
