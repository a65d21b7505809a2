# role: repair
# problem: tsp
# expect: any-failure
# why: no def statement
repair = lambda dist, partial_tour, removed_nodes, steps_since_improvement, rng: partial_tour + removed_nodes
