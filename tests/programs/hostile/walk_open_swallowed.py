# role: destroy
# problem: tsp
# expect: contained
# why: open with the refusal swallowed
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    try:
        open('@TMP@/x', 'w').write('x')
    except:
        pass
    return current_tour[count:], current_tour[:count]
