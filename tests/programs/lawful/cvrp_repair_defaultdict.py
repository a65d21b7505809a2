# role: repair
# problem: cvrp
# expect: ok
# why: routes grouped in a defaultdict
from collections import defaultdict

def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    book = defaultdict(list)
    for k, route in enumerate(partial_routes):
        book[k].extend(route)
    fresh = len(book)
    for c in removed_customers:
        for k in sorted(book):
            if sum(demands[x] for x in book[k]) + demands[c] <= capacity:
                book[k].append(c)
                break
        else:
            book[fresh].append(c)
            fresh += 1
    return [book[k] for k in sorted(book)]
