# role: destroy
# problem: tsp
# expect: ok
# why: distributions of random.Random
def destroy(dist, current_tour, steps_since_improvement, rng):
    n = len(current_tour)
    draws = [rng.random(), rng.uniform(1, 2), rng.randint(0, n - 1), rng.randrange(n), rng.randrange(1, n), rng.randrange(0, n, 3),
             rng.choice(current_tour), rng.choice("abc"), rng.choice((1, 2)), rng.choice(range(5)), rng.choices(current_tour, k=3),
             rng.choices([1, 2], weights=[1, 3], k=2), rng.choices([1, 2], cum_weights=[1, 3]), rng.sample(current_tour, 3),
             rng.sample(range(n), k=2), rng.sample(sorted(set(current_tour)), 2), rng.gauss(0, 1), rng.gauss(mu=0.0, sigma=1.0),
             rng.normalvariate(0, 1), rng.expovariate(1.5), rng.betavariate(1, 2), rng.gammavariate(1, 2), rng.lognormvariate(0, 1),
             rng.triangular(0, 1, 0.5), rng.paretovariate(1), rng.weibullvariate(1, 1), rng.vonmisesvariate(0, 1), rng.getrandbits(8)]
    own = list(range(5))
    rng.shuffle(own)
    assert len(draws) == 28 and sorted(own) == [0, 1, 2, 3, 4] and 0 <= draws[2] <= n - 1
    i = rng.randint(0, n - 4)
    return current_tour[:i] + current_tour[i + 4 :], current_tour[i : i + 4]
