# role: destroy
# problem: tsp
# expect: ok
# why: distributions of numpy's Generator
import numpy as np

def destroy(dist, current_tour, steps_since_improvement, rng):
    n = len(current_tour)
    draws = [rng.random(), rng.random(3), rng.random((2, 2)), rng.random(size=2), rng.integers(n), rng.integers(1, n),
             rng.integers(0, n, 3), rng.integers(0, n, size=(2, 2)), rng.integers(3, endpoint=True), rng.uniform(), rng.uniform(0, 2),
             rng.uniform(0, 1, 3), rng.normal(), rng.normal(0, 1), rng.normal(size=4), rng.standard_normal(3), rng.exponential(1.0),
             rng.exponential(2.0, size=2), rng.poisson(3), rng.binomial(5, 0.5), rng.geometric(0.3), rng.gamma(2.0), rng.beta(1, 2),
             rng.dirichlet([1.0, 2.0]), rng.multinomial(5, [0.5, 0.5]), rng.choice(n), rng.choice(current_tour), rng.choice(n, 3),
             rng.choice(n, size=3, replace=False), rng.choice(np.arange(n), size=2, p=np.full(n, 1 / n)), rng.choice([[1, 2], [3]]),
             rng.choice([(1, 2), (3, 4)]), rng.permutation(n), rng.permutation(current_tour), rng.lognormal(0, 1), rng.laplace(),
             rng.choice(5, size=(2, 2)), rng.choice(np.array(current_tour)), rng.permuted(np.arange(5)), rng.triangular(0, 1, 2), rng.standard_exponential()]
    assert len(draws) == 41 and rng.random(3).shape == (3,) and 0 <= rng.integers(n) < n
    own = np.arange(10)
    rng.shuffle(own)
    rows = np.arange(6).reshape(3, 2)
    rng.shuffle(rows)
    i = int(rng.integers(0, n - 4))
    return current_tour[:i] + current_tour[i + 4 :], current_tour[i : i + 4]
