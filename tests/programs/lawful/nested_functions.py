# role: destroy
# problem: tsp
# expect: ok
# why: closures and nonlocal
def destroy(dist, current_tour, steps_since_improvement, rng):
    budget = max(1, len(current_tour) // 4)
    removed = []

    def take(node):
        nonlocal budget
        if budget > 0 and node not in removed:
            removed.append(node)
            budget -= 1
            return True
        return False

    def spread(node, depth=0):
        if depth > 3 or not take(node):
            return
        near = sorted(current_tour, key=lambda v: dist[node][v])[1:3]
        for v in near:
            spread(v, depth + 1)

    spread(current_tour[rng.randrange(len(current_tour))])
    return [c for c in current_tour if c not in removed], removed
