# role: destroy
# problem: tsp
# expect: ok
# why: divide and conquer
def split(dist, nodes, depth):
    if depth == 0 or len(nodes) < 4:
        return [nodes]
    a = nodes[0]
    b = max(nodes, key=lambda v: dist[a][v])
    left = [v for v in nodes if dist[a][v] <= dist[b][v]]
    right = [v for v in nodes if dist[a][v] > dist[b][v]]
    return split(dist, left, depth - 1) + split(dist, right, depth - 1)

def destroy(dist, current_tour, steps_since_improvement, rng):
    clusters = split(dist, current_tour, 3)
    removed = min(clusters, key=len)[:6]
    return [v for v in current_tour if v not in removed], removed
