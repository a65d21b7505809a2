# role: destroy
# problem: tsp
# expect: rejected
# why: a refused module under another name
# reason: subprocess
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    import subprocess as math
    math.run(['touch', '@TMP@/x'])
    return current_tour[count:], current_tour[:count]
