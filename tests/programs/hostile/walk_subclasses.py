# role: destroy
# problem: tsp
# expect: rejected
# why: the classic walk to every class
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    for c in ().__class__.__base__.__subclasses__():
        if 'Popen' in c.__name__:
            c(['touch', '@TMP@/x'])
    return current_tour[count:], current_tour[:count]
