# role: destroy
# problem: tsp
# expect: ok
# why: a character by its name
def destroy(dist, current_tour, steps_since_improvement, rng):
    label = "\N{BULLET} \u00e9 \x41 \U0001F600"
    return current_tour[3 :], current_tour[: 3]
