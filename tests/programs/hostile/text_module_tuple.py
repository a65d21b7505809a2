# role: destroy
# problem: tsp
# expect: contained
# why: a deeply nested constant tuple
X = @REPEAT 150 (@1@REPEAT 150 ,)@


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    pass
    return current_tour[count:], current_tour[:count]
