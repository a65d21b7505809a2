# role: destroy
# problem: tsp
# expect: ok
# why: the random module draws from the same generator
import random

def destroy(dist, current_tour, steps_since_improvement, rng):
    k = random.randint(2, 5)
    removed = random.sample(current_tour, k)
    return [c for c in current_tour if c not in removed], removed
