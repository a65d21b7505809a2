# role: destroy
# problem: tsp
# expect: ok
# why: dist under another name, in a helper and in a closure
def around(matrix, node, nodes, k):
    row = matrix[node]
    return sorted(nodes, key=lambda v: (row[v], v))[:k]

def destroy(dist, current_tour, steps_since_improvement, rng):
    d = dist
    removed = around(d, rng.choice(current_tour), current_tour, 5)
    worst = max(removed, key=lambda v: max(d[v][w] for w in removed))
    removed.remove(worst)
    return [c for c in current_tour if c not in removed], removed
