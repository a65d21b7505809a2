# role: destroy
# problem: tsp
# expect: any-failure
# why: evaluates annotations of what it registers
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    import functools
    def f(x: "__import__('os').mkdir('@TMP@/x')"):
        return x
    functools.singledispatch(f).register(f)
    return current_tour[count:], current_tour[:count]
