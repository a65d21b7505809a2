# role: destroy
# problem: tsp
# expect: rejected
# why: a mutable default argument of the entry function
def destroy(dist, current_tour, steps_since_improvement, rng, memory=[]):
    memory.append(1)
    count = len(memory) % 3 + 1
    return current_tour[count:], current_tour[:count]
