# role: repair
# problem: cvrp
# expect: rejected
# why: an answer cut off
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    for customer in removed_customers:
