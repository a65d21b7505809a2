# role: destroy
# problem: tsp
# expect: crash
# why: a matrix with NaN
def destroy(dist, current_tour, steps_since_improvement, rng):
    import lns
    zero = 0.0
    inf = 1e308 * 10
    return lns.radial_removal(((zero, inf - inf), (inf - inf, zero)), [0, 1], 0, 1)
