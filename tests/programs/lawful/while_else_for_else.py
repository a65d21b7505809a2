# role: destroy
# problem: tsp
# expect: ok
# why: while/else and for/else, break and continue
def destroy(dist, current_tour, steps_since_improvement, rng):
    removed = []
    tries = 0
    while tries < 5:
        tries += 1
        v = rng.choice(current_tour)
        if v in removed:
            continue
        removed.append(v)
        if len(removed) == 5:
            break
    else:
        for v in current_tour:
            if v not in removed:
                removed.append(v)
                break
        else:
            pass
    return [c for c in current_tour if c not in removed], removed
