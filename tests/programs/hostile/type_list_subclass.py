# role: repair
# problem: tsp
# expect: any-failure
# why: a list subclass from a factory
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    from collections import UserList
    return UserList(partial_tour + removed_nodes)
