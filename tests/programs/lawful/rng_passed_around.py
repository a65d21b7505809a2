# role: destroy
# problem: tsp
# expect: ok
# why: methods of rng bound to names and passed to helpers
def pick(draw, items):
    return items[int(draw() * len(items))]

def destroy(dist, current_tour, steps_since_improvement, rng):
    draw = rng.random
    generator = rng
    chosen = {pick(draw, current_tour) for _ in range(3)} | {pick(generator.random, current_tour)}
    removed = sorted(chosen)
    return [v for v in current_tour if v not in chosen], removed
