# role: destroy
# problem: tsp
# expect: ok
# why: augmented assignment to subscripts, del
def destroy(dist, current_tour, steps_since_improvement, rng):
    n = len(current_tour)
    score = [0.0] * n
    table = {}
    for i in range(n):
        score[i] += dist[current_tour[i - 1]][current_tour[i]]
        score[i - 1] *= 1.0 if i else 0.5
        table.setdefault(i % 3, []).append(i)
        table[i % 3][-1] ^= 0
    worst = max(range(n), key=lambda i: score[i])
    partial = list(current_tour)
    removed = [partial[worst]]
    del partial[worst]
    del table[0][0:2], table[1]
    i = min(worst, len(partial) - 1)
    removed.append(partial.pop(i))
    return partial, removed
