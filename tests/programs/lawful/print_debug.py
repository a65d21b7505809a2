# role: destroy
# problem: tsp
# expect: ok
# why: print for debugging
def destroy(dist, current_tour, steps_since_improvement, rng):
    print("tour", current_tour, steps_since_improvement, sep=": ", end="\n")
    print(f"first = {current_tour[0]}")
    print()
    return current_tour[3:], current_tour[:3]
