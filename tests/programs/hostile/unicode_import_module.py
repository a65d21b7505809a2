# role: destroy
# problem: tsp
# expect: rejected
# why: a module's name in full width
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    import ｏｓ
    os.mkdir('@TMP@/x')
    return current_tour[count:], current_tour[:count]
