# role: destroy
# problem: tsp
# expect: contained
# why: a finaliser that never ends
def destroy(dist, current_tour, steps_since_improvement, rng):
    box = []
    def hold():
        try:
            yield box
        finally:
            while True: pass
    holder = hold()
    next(holder)
    box.append(holder)
    junk = [[] for _ in range(3000)]
    return current_tour[2:], current_tour[:2]
