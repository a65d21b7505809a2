# role: destroy
# problem: tsp
# expect: ok
# why: local generator functions
def destroy(dist, current_tour, steps_since_improvement, rng):
    def walk(start):
        i = start
        while True:
            yield current_tour[i % len(current_tour)]
            i += 1

    def both(start):
        yield from (x for x in [current_tour[start]])
        for node in walk(start + 1):
            yield node

    removed = []
    for node in both(rng.randrange(len(current_tour))):
        removed.append(node)
        if len(removed) >= 3:
            break
    extra = next((v for v in current_tour if v not in removed), None)
    removed.append(extra)
    return [c for c in current_tour if c not in removed], removed
