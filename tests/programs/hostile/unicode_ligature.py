# role: destroy
# problem: tsp
# expect: rejected
# why: a ligature inside a name
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    '{0.real}'.ﬁnd('x')
    '{0.real}'.𝘧ormat(1)
    return current_tour[count:], current_tour[:count]
