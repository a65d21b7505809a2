# role: repair
# problem: cvrp
# expect: rejected
# why: a mutable default argument of a helper
def seen(x, memory={}):
    memory[x] = memory.get(x, 0) + 1
    return memory[x]


def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    return list(partial_routes) + [[c] for c in removed_customers if seen(c)]
