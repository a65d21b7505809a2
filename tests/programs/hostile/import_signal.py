# role: destroy
# problem: tsp
# expect: rejected
# why: masking the time limit
# reason: signal
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    import signal
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    return current_tour[count:], current_tour[:count]
