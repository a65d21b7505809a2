# role: destroy
# problem: tsp
# expect: rejected
# why: threads
# reason: threading
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    import threading
    threading.Thread(target=print).start()
    return current_tour[count:], current_tour[:count]
