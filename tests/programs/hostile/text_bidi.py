# role: destroy
# problem: tsp
# expect: any-failure
# why: text that reads differently than it runs
def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    return current_tour, []  # ‮⁦ lawful ⁩
    return current_tour[count:], current_tour[:count]
