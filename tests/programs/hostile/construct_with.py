# role: destroy
# problem: tsp
# expect: any-failure
# why: a context manager of the file system
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    import contextlib
    with contextlib.chdir('@TMP@'):
        pass
    return current_tour[count:], current_tour[:count]
