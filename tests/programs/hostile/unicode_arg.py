# role: destroy
# problem: tsp
# expect: rejected
# why: a parameter in italics
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    (lambda __𝑐𝑙𝑎𝑠𝑠__: 1)(1)
    return current_tour[count:], current_tour[:count]
