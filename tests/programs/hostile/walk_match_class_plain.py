# role: destroy
# problem: tsp
# expect: rejected
# why: a class pattern reads a frame
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    g = (x for x in current_tour)
    match g:
        case object(gi_frame=frame):
            count = len(frame.f_builtins)
    return current_tour[count:], current_tour[:count]
