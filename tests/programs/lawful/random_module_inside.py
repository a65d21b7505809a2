# role: destroy
# problem: tsp
# expect: ok
# why: import random inside the function
def destroy(dist, current_tour, steps_since_improvement, rng):
    import random
    removed = [random.choice(current_tour)]
    if random.random() < 0.5:
        removed = list(set(removed + [current_tour[random.randrange(len(current_tour))]]))
    return [c for c in current_tour if c not in removed], removed
