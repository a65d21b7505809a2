# role: destroy
# problem: tsp
# expect: ok
# why: match on integers, tuples and guards
def destroy(dist, current_tour, steps_since_improvement, rng):
    match steps_since_improvement:
        case 0:
            k = 2
        case 1 | 2 | 3:
            k = 3
        case z if z > 10:
            k = 6
        case _:
            k = 4
    match (k, len(current_tour)):
        case (2, n):
            start = n // 2
        case (3, _):
            start = 0
        case (x, y):
            start = (x * y) % 3
    match current_tour[start : start + k]:
        case []:
            removed = [current_tour[0]]
        case [only]:
            removed = [only]
        case [first, *others]:
            removed = [first, *others]
    return [c for c in current_tour if c not in removed], removed
