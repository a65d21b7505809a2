# role: destroy
# problem: tsp
# expect: any-failure
# why: a deep copy of a method of the generator foresees its draws
import copy


def destroy(dist, current_tour, steps_since_improvement, rng):
    count = max(1, len(current_tour) // 5)
    ahead = copy.deepcopy(rng.choices)
    assert ahead(range(10**9), k=2) == rng.choices(range(10**9), k=2), 'not foreseen'
    return current_tour[count:], current_tour[:count]
