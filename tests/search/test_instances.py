"""What a run trains and validates on, and that a resume finds the same."""

from pathlib import Path

import numpy as np
import pytest
from spo_fakes import small

from spo_jax.cli import main
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.jobs.planning import Planner
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.observation import OBSERVED
from spo_jax.errors import InputError
from spo_jax.program import Pair, Program
from spo_jax.runs.manifest import check_instances, instances_of
from spo_jax.runs.run import load_run
from spo_jax.search.instances import fresh_instances, training_instances, validation_instances
from spo_jax.seeding import derive

TSP = get_problem("tsp")
DESTROY = "def destroy(dist, tour, z, rng):\n    return tour[1:], tour[:1]\n"
REPAIR = """
def repair(dist, tour, removed, z, rng):
    tour.insert(rng.randint(0, len(tour)), removed[0])
    return tour
"""


def file(path: Path, size: int) -> Path:
    lines = "\n".join(f"{k} {k * k % 7} {3 * k}" for k in range(1, size + 1))
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f"NAME: {path.stem}\nTYPE: TSP\nDIMENSION: {size}\nEDGE_WEIGHT_TYPE: EUC_2D\n"
        f"NODE_COORD_SECTION\n{lines}\nEOF\n"
    )
    return path


def digests(instances):  # type: ignore[no-untyped-def]
    return [each.digest for each in instances]


def test_the_default_is_the_papers() -> None:
    config = small(seed=7)
    papers = TSP.sample(6, 2, derive(7, "instances"))
    assert digests(training_instances(config, TSP)) == digests(papers)
    named = config.replace(on=("uniform:6x2",))  # without a seed it is of the run's stream
    assert digests(training_instances(named, TSP)) == digests(papers)
    assert digests(fresh_instances(named, TSP)) == digests(fresh_instances(config, TSP))
    own = config.replace(on=("uniform:6x2@3",), validate_on=("uniform:9x1@3",))
    assert digests(training_instances(own, TSP)) == digests(TSP.sample(6, 2, 3))
    assert digests(validation_instances(own, TSP)) == digests(TSP.sample(9, 1, 3))
    assert not set(digests(fresh_instances(own, TSP))) & set(digests(TSP.sample(6, 8, 3)))


def test_files_folders_and_sets_in_the_order_they_are_named(tmp_path: Path) -> None:
    for size in (9, 5):
        file(tmp_path / "own" / f"p{size}.tsp", size)
    config = small(on=("uniform:7x1@2", str(tmp_path / "own")))
    assert [each.size for each in training_instances(config, TSP)] == [7, 5, 9]
    assert fresh_instances(config, TSP) == []  # of files there are no more
    twice = small(on=(str(tmp_path / "own"), str(tmp_path / "own" / "p5.tsp")))
    with pytest.raises(InputError, match=r"p5\.tsp: p5 is the same instance as p5"):
        training_instances(twice, TSP)


def test_other_instances_are_refused(tmp_path: Path) -> None:
    config = small(finalists=1, select="validation")

    def named(settings):
        return instances_of(training_instances(settings, TSP), validation_instances(settings, TSP))

    began = named(config)
    check_instances(began, named(config), tmp_path)
    for change, message in (
        ({"on": ("uniform:6x3",)}, r"other training instances \(2 then, 3 now\).*--on"),
        ({"on": ("uniform:6x2@1",)}, "other training instances"),
        ({"validate_on": ("uniform:5x1",)}, "other validation instances.*--validate-on"),
    ):
        with pytest.raises(InputError, match=message):
            check_instances(began, named(config.replace(**change)), tmp_path)


@pytest.mark.long
def test_a_resume_finds_the_same_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own = file(tmp_path / "own" / "mine.tsp", 8)
    numbers = {
        "rounds": 2, "mutation-groups": 1, "crossover-groups": 0, "responses": 2,
        "repairs-per-destroy": 2, "rollouts": 1, "steps": 3, "finalists": 1, "workers": 1,
    }  # fmt: skip
    tiny = ["--generator", "grammar"]
    tiny += [word for name, value in numbers.items() for word in (f"--{name}", str(value))]
    on = ["--on", "own", "uniform:6x1", "--validate-on", "uniform:7x1"]
    assert main(["discover", "tsp", "--preset", "smoke", *tiny, *on, "--out", "run"]) == 0
    assert f"--on {tmp_path}/own uniform:6x1" in capsys.readouterr().out
    monkeypatch.chdir("/")
    again = ["discover", "--resume", str(tmp_path / "run"), "--rewind", "1"]
    assert main(again) == 0
    file(own, 9)
    assert main(again) == 2
    assert "began with other training instances" in capsys.readouterr().err
    assert main([*again, "--on", str(tmp_path / "gone")]) == 2
    assert "gone does not exist" in capsys.readouterr().err


def test_sizes_can_be_mixed() -> None:
    """The rollouts of an instance are the same whatever else is in the batch."""
    instances = [TSP.sample(size, 1, 0)[0] for size in (5, 23, 11)]
    pair = Pair(Program("destroy", DESTROY), Program("repair", REPAIR))
    with LocalEvaluator(TSP, 2) as evaluator:
        together = evaluator.run([pair], instances, steps=20)
        for i, instance in enumerate(instances):
            alone = evaluator.run([pair], [instance], steps=20)
            np.testing.assert_array_equal(together.best_cost[:, i], alone.best_cost[:, 0])
    assert np.isfinite(together.best_cost).all()


@pytest.mark.parametrize(("cpu_seconds", "large"), [(None, 4.0), (5.0, 1.0)])
def test_the_cpu_limit_that_nobody_set_grows_with_large_instances(
    cpu_seconds: float | None, large: float
) -> None:
    instances = [TSP.sample(size, 1, 0)[0] for size in (20, 1000, 500)]
    planner = Planner(TSP, 0, cpu_seconds, 1 << 29, False, OBSERVED, None)
    pair = Pair(Program("destroy", DESTROY), Program("repair", REPAIR))
    jobs = planner.jobs([pair], instances, (0, 1), 500, seconds=None, fail_fast=True, workers=1)
    limits = {task.index: job.cpu_seconds for _, job in jobs for task in job.tasks}
    unit = TSP.cpu_seconds if cpu_seconds is None else cpu_seconds
    assert [limits[k] for k in range(6)] == [unit, unit, large * unit, large * unit, unit, unit]


# --- files ----------------------------------------------------------------------------------------

ROUTES = """id,x,y,demand
0,10.1,10.2,
1,10.4,10.3,4
2,10.2,10.7,3
3,10.9,10.1,2
4,10.5,10.5,6
5,10.3,10.9,2
"""
GPS = """NAME : g
TYPE : CVRP
DIMENSION : 5
EDGE_WEIGHT_TYPE : EUC_2D
CAPACITY : 10
NODE_COORD_SECTION
1 10.1 10.2
2 10.9 10.3
3 12.2 10.7
4 10.9 13.1
5 14.5 10.5
DEMAND_SECTION
1 0
2 4
3 3
4 2
5 6
DEPOT_SECTION
1
-1
EOF
"""
SMALL = ["--preset", "smoke", "--generator", "grammar", "--rounds", "1", "--steps", "3"]
SMALL += ["--validation-steps", "3", "--finalists", "2", "--mutation-groups", "1"]


@pytest.fixture
def routes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder, more in (("mine", "6,11.0,11.0,1\n"), ("others", "6,9.0,9.5,2\n")):
        Path(folder).mkdir()
        Path(folder, "a.csv").write_text(ROUTES + more)
        Path(folder, "b.csv").write_text(ROUTES + more.replace("6,", "6,1"))
    Path("gps.vrp").write_text(GPS)
    return tmp_path


@pytest.mark.long
def test_a_discovery_on_folders_of_tables(routes, capsys):
    argv = ["discover", "cvrp", *SMALL, "--on", "mine", "--validate-on", "others"]
    assert main([*argv, "--out", "run"]) == 2
    assert "--capacity" in capsys.readouterr().err
    assert not Path("run").exists()
    assert main([*argv, "--capacity", "10", "--out", "run"]) == 0
    out = capsys.readouterr().out
    assert f"spo evaluate run --on {routes}/mine --capacity 10" in out
    assert "spo solve FILE.csv --pair run --capacity 10" in out
    assert "a: the depot is the first row (0)" in out
    cvrp = get_problem("cvrp")
    config = load_run("run").config
    for found in (training_instances(config, cvrp), validation_instances(config, cvrp)):
        assert [each.name for each in found] == ["a", "b"]


@pytest.mark.long
def test_a_discovery_says_where_rounding_bites_and_takes_other_distances(routes, capsys):
    argv = ["discover", "cvrp", *SMALL, "--finalists", "1", "--on", "gps.vrp"]
    argv += ["--validate-on", "uniform:5x1"]
    assert main([*argv, "--out", "rounded"]) == 0
    out = capsys.readouterr().out
    assert "rounding" in out
    assert main([*argv, "--out", "exact", "--distances", "exact"]) == 0
    out = capsys.readouterr().out
    assert "rounding" not in out
    assert f"--on {routes}/gps.vrp --distances exact" in out
    [rounded], [exact] = (load_run(name).manifest["instances"] for name in ("rounded", "exact"))
    assert rounded["digest"] != exact["digest"]
    assert main(["discover", "--resume", "exact", "--distances", "round"]) == 2
    assert "began with other training instances" in capsys.readouterr().err


def test_options_that_no_file_reads_are_refused(routes, capsys):
    for more, message in (
        (["--on", "uniform:6x1", "--distances", "exact"], "--distances is for instance files"),
        (["--capacity", "9"], "--capacity is for instance files, and none is named"),
        (["--on", "gps.vrp", "--capacity", "9"], "--capacity is for files that have none"),
        (["--on", "mine", "--distances", "up"], "distances is 'up'; it must be one of file"),
    ):
        assert main(["discover", "cvrp", *SMALL, *more, "--out", "run"]) == 2
        err = capsys.readouterr().err
        assert message in err
        assert err.count("\n") == 1
    tsp = ["discover", "tsp", *SMALL, "--on", "cities.csv", "--capacity", "9", "--out", "run"]
    Path("cities.csv").write_text("x,y\n1,2\n2,3\n5,1\n0,4\n")
    assert main(tsp) == 2
    assert "take no --capacity" in capsys.readouterr().err
    assert not Path("run").exists()
