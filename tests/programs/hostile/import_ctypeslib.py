# role: destroy
# problem: tsp
# expect: rejected
# why: a door of numpy to shared libraries
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    import numpy.ctypeslib
    numpy.ctypeslib.load_library('libc.so.6', '/lib')
    return current_tour[count:], current_tour[:count]
