"""Large distances lie once in memory, whoever reads them."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from test_evaluation import REPAIR, pair_of

from bench.large import proportional, tree
from spo_jax.envs import shared_arrays
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.solve import solve
from spo_jax.envs.run.sandbox.instance_store import InstanceStore
from spo_jax.envs.shared_arrays import descriptor_of, empty, mapped, shared

TSP, CVRP, VRPTW = (get_problem(name) for name in ("tsp", "cvrp", "vrptw"))


@pytest.fixture
def small(monkeypatch):
    """Every array is large enough for a file of its own."""
    monkeypatch.setattr(shared_arrays, "LEAST_BYTES", 0)
    monkeypatch.setattr("spo_jax.envs.run.sandbox.instance_store.LEAST_BYTES", 0)


def test_an_array_in_a_file_is_mapped_and_read_alone(small):
    array = empty((3, 3))
    array[...] = np.arange(9.0).reshape(3, 3)
    array.setflags(write=False)  # as an instance does
    other = mapped(descriptor_of(array))
    assert other.tolist() == list(range(9))
    with pytest.raises(ValueError, match="WRITEABLE"):
        other.setflags(write=True)


def test_which_arrays_lie_in_a_file_as_a_whole(small):
    array = empty((4, 4))
    assert shared(array) is array
    assert descriptor_of(array) is not None
    for part in (array[1:], array.T, array[::-1], np.zeros((4, 4)), array.copy()):
        assert descriptor_of(part) is None
        copy = shared(part)
        assert descriptor_of(copy) is not None
        assert np.array_equal(copy, part)


def test_a_file_ends_with_the_last_array_that_uses_it(small):
    array = empty((4, 4))
    descriptor = descriptor_of(array)
    part = array[1:]
    del array
    os.fstat(descriptor)
    del part
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(descriptor)


@pytest.mark.long
@pytest.mark.parametrize("problem", [TSP, CVRP, VRPTW], ids=lambda problem: problem.name)
def test_a_search_on_shared_distances_is_the_same(problem, monkeypatch):
    """For instances whose distances were made shared, and for those that are copied."""
    from spo_jax.envs.report.solve import shipped_pair

    [instance] = problem.sample(40, 1, 3)
    pair = shipped_pair(problem)
    plain = solve(instance, pair, problem, steps=60, workers=2, region=20)
    monkeypatch.setattr("spo_jax.envs.run.sandbox.instance_store.LEAST_BYTES", 0)
    for given in (instance, replace(instance, dist=shared(instance.dist))):
        found = solve(given, pair, problem, steps=60, workers=2, region=20)
        assert (found.solution, found.cost) == (plain.solution, plain.cost)


def test_a_program_cannot_write_to_shared_distances(monkeypatch):
    monkeypatch.setattr("spo_jax.envs.run.sandbox.instance_store.LEAST_BYTES", 0)
    [instance] = TSP.sample(20, 1, 3)
    before = instance.dist.copy()
    writes = REPAIR.replace("    tour = list", "    dist[0][1] = 5.0\n    tour = list")
    skips = pair_of("import numpy as np\n" + writes.replace("dist[0][1]", "np.array(dist)[0][1]"))
    assert solve(instance, skips, TSP, steps=5).steps == 5
    with pytest.raises(Exception, match=r"crash: repair: (TypeError|ValueError)"):
        solve(instance, pair_of(writes), TSP, steps=5)
    assert np.array_equal(instance.dist, before)


def test_the_board_holds_an_instance_with_and_without_distances(monkeypatch):
    monkeypatch.setattr("spo_jax.envs.run.sandbox.instance_store.LEAST_BYTES", 0)
    [instance] = TSP.sample(50, 1, 0)
    store = InstanceStore()
    try:
        (_, length), descriptor = store.share(instance)
        assert length < instance.dist.nbytes
        assert mapped(descriptor).tolist() == instance.dist.ravel().tolist()
        store.hold([instance])
        assert store.places[instance.digest][1] > instance.dist.nbytes
        assert store.share(instance)[0][1] == length
    finally:
        store.close()


@pytest.mark.slow
def test_ten_thousand_nodes_are_searched_in_little_memory(tmp_path):
    """With two workers, all processes together: the matrix of 0.8 GB is there once."""
    rng = np.random.default_rng(0)
    places = rng.integers(0, 10_000, (10_000, 2)).tolist()
    rows = "".join(f"{k} {x} {y}\n" for k, (x, y) in enumerate(places, 1))
    head = "TYPE : TSP\nDIMENSION : 10000\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n"
    (tmp_path / "large.tsp").write_text(head + rows)
    argv = [sys.executable, "-m", "spo_jax", "solve", "large.tsp", "--workers", "2"]
    with subprocess.Popen([*argv, "--time", "30"], cwd=tmp_path, stdout=subprocess.PIPE) as process:
        peak = 0
        while process.poll() is None:
            peak = max(peak, sum(map(proportional, tree(process.pid))))
            try:
                process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
    assert process.returncode == 0
    assert 0.9e9 < peak < 1.5e9
    assert len((tmp_path / "large.spo.tour").read_text().split("TOUR_SECTION")[1].split()) == 10_002
