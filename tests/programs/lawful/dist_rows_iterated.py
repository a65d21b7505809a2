# role: destroy
# problem: tsp
# expect: ok
# why: iteration over rows and sums of rows
def destroy(dist, current_tour, steps_since_improvement, rng):
    means = [sum(row) / len(row) for row in dist]
    far = [max(row) for row in dist]
    first_three = dist[0][:3]
    assert len(first_three) == 3 and min(far) > 0
    for i, row in enumerate(dist):
        if row[i] != 0:
            return [], []
    removed = sorted(current_tour, key=lambda v: means[v], reverse=True)[:4]
    return [c for c in current_tour if c not in removed], removed
