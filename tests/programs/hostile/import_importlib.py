# role: destroy
# problem: tsp
# expect: rejected
# why: the import machinery
# reason: importlib
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    import importlib
    importlib.import_module('os').mkdir('@TMP@/x')
    return current_tour[count:], current_tour[:count]
