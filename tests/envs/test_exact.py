"""Branch and cut against exhaustive search, recorded optima and its own definitions."""

from dataclasses import replace

import numpy as np
import pytest
from exhaustive import shortest_tour, shortest_tour_by_sets, tsp

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.tsp import TSP
from spo_jax.envs.problems.tsp.baselines import branch_and_cut as exact
from spo_jax.envs.problems.tsp.baselines.branch_and_cut import prove
from spo_jax.envs.problems.tsp.baselines.heuristics import two_opt
from spo_jax.envs.problems.tsp.files import tsplib
from spo_jax.errors import InputError


def any_tour(instance, seed=0):
    return np.random.default_rng(seed).permutation(instance.size).tolist()


def grid(rows, columns):
    """Many shortest tours: a tie at every step."""
    coords = np.array([[x, y] for x in range(rows) for y in range(columns)], float)
    return Instance("tsp", "grid", len(coords), coords, tsplib.euclidean(coords))


def test_the_two_exhaustive_searches_agree():
    for n in (4, 6, 8):
        assert shortest_tour_by_sets(tsp(n, n)) == pytest.approx(shortest_tour(tsp(n, n)))


@pytest.mark.parametrize("n", [3, 4, 5, 6, 7, 9, 11])
def test_a_bad_tour_becomes_the_shortest(n):
    instance = tsp(n, seed=n, scale=10.0 ** (n - 6))
    found = prove(instance, any_tour(instance))
    assert found.proven
    assert sorted(found.tour) == list(range(n))
    assert found.cost == tsplib.tour_cost(instance.dist, found.tour)
    assert found.cost == pytest.approx(shortest_tour_by_sets(instance), rel=1e-12)


def test_integer_weights_and_clusters_and_ties():
    rng = np.random.default_rng(3)
    centres = rng.integers(0, 1000, (3, 2))
    clustered = np.concatenate([centre + rng.integers(0, 9, (4, 2)) for centre in centres])
    for coords in (clustered, rng.integers(0, 4, (11, 2)), rng.integers(0, 10**6, (11, 2))):
        weights = tsplib.distance_matrix(coords.astype(float), "EUC_2D")
        instance = Instance("tsp", "whole", len(coords), coords.astype(float), weights)
        found = prove(instance, any_tour(instance))
        assert found.proven
        assert found.cost == shortest_tour_by_sets(instance)


@pytest.mark.parametrize(("rows", "columns", "optimum"), [(4, 6, 24.0), (5, 5, 24 + 2**0.5)])
def test_grids(rows, columns, optimum):
    instance = grid(rows, columns)
    found = prove(instance, any_tour(instance))
    assert found.proven
    assert found.cost == pytest.approx(optimum, rel=1e-12)


def test_no_distance_at_all():
    instance = replace(tsp(6), dist=np.zeros((6, 6)))
    assert prove(instance, list(range(6))) == exact.Proof(list(range(6)), 0.0, True, 0)


@pytest.mark.parametrize("name", ["burma14", "att48", "berlin52"])
def test_recorded_optima_are_proven(spo_data, name):
    pytest.importorskip("elkai")
    from spo_jax.envs.problems.tsp.baselines.references import lkh

    path = spo_data / "tsplib" / f"{name}.tsp"
    if not path.exists():
        pytest.skip(f"{name}.tsp is not in SPO_DATA")
    instance = tsplib.read(path)
    found = prove(instance, lkh(instance))
    assert found.proven
    assert found.cost == instance.reference


def test_every_cut_holds_for_every_tour():
    instance = TSP().sample(50, 3, 2026)[2]
    start = two_opt(instance, 0)
    search = exact._Search(instance.dist, start, tsplib.tour_cost(instance.dist, start))
    search._root()
    kinds = set(search._right.tolist())
    assert 2.0 in kinds
    assert min(kinds) < 0  # parity cuts of three edges and more
    number = {
        (int(a), int(b)): k for k, (a, b) in enumerate(zip(*np.triu_indices(50, 1), strict=True))
    }
    # Tours near the optimum are those that a wrong cut would cut off.
    best = prove(instance, start).tour
    rng = np.random.default_rng(0)
    for _ in range(300):
        i, j = sorted(rng.choice(51, 2, replace=False).tolist())
        tour = best[:i] + best[i:j][::-1] + best[j:]
        edges = [
            number[min(a, b), max(a, b)] for a, b in zip(tour, tour[1:] + tour[:1], strict=True)
        ]
        assert (search._left[:, edges].sum(1) >= search._right).all()


def test_a_proof_repeats_and_can_be_given_up():
    instance = TSP().sample(50, 3, 2026)[2]
    found = prove(instance, two_opt(instance, 0))
    assert found.proven
    assert found.nodes > 1
    assert prove(instance, two_opt(instance, 0)) == found
    fewer = prove(instance, found.tour, most_nodes=0)
    assert (fewer.proven, fewer.nodes, fewer.tour) == (False, 0, found.tour)


def test_that_nothing_is_left_is_not_taken_on_trust(monkeypatch):
    """A solver that calls everything infeasible proves nothing."""
    instance = TSP().sample(12, 1, 2026)[0]
    start, real = any_tour(instance), exact.linprog

    def lying(*arguments, **options):
        found = real(*arguments, **options)
        found.status = 2
        return found

    monkeypatch.setattr(exact, "linprog", lying)
    assert not prove(instance, start).proven

    # A node without edges misses its two, and no other needs to miss any.
    monkeypatch.undo()
    search = exact._Search(instance.dist, start, tsplib.tour_cost(instance.dist, start))
    every, low = np.ones(66, bool), np.zeros(66)
    at = (search._head == 0) | (search._tail == 0)
    assert search._solve((low, np.where(at, 0.0, 1.0)), every).bound == np.inf
    assert search._missed((low, np.where(at, 0.0, 1.0)), np.flatnonzero(every)) == pytest.approx(2)
    assert search._missed((low, np.ones(66)), np.flatnonzero(every)) <= 0
    # What only the edges in use cannot do is not out of reach.
    assert search._missed((low, np.ones(66)), np.flatnonzero(~at)) <= 0


def test_no_tour():
    with pytest.raises(InputError, match="every node exactly once"):
        prove(tsp(5), [0, 1, 2, 3, 3])
