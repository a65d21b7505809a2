# role: destroy
# problem: tsp
# expect: ok
# why: the names of random.Random
def destroy(dist, current_tour, steps_since_improvement, rng):
    n = len(current_tour)
    k = rng.randint(1, max(1, n // 4))
    if rng.random() < 0.3:
        removed = rng.sample(current_tour, k)
    elif rng.uniform(0.0, 1.0) < 0.5:
        order = list(current_tour)
        rng.shuffle(order)
        removed = order[:k]
    else:
        i = rng.randrange(n)
        removed = (current_tour + current_tour)[i : i + k]
    gone = set(removed)
    return [x for x in current_tour if x not in gone], removed
