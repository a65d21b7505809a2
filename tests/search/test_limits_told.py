"""What prompts say of the limits of training instances, and discoveries on files that have some."""

from pathlib import Path

import numpy as np
import pytest

import spo_jax
from spo_jax.envs.problems import get_problem
from spo_jax.program import ROLES
from spo_jax.search.writing.prompts import Style, Templates

CVRP = get_problem("cvrp")
TEN = """NAME : ten
TYPE : CVRP
DIMENSION : 11
EDGE_WEIGHT_TYPE : EUC_2D
CAPACITY : 20
{}
NODE_COORD_SECTION
{}
DEMAND_SECTION
{}
DEPOT_SECTION
1
-1
EOF
"""


def written(folder: Path, terms: str, seed: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    places = "\n".join(f"{k} {x} {y}" for k, (x, y) in enumerate(rng.integers(0, 50, (11, 2)), 1))
    needs = "\n".join(f"{k} {0 if k == 1 else 5}" for k in range(1, 12))
    path = folder / f"ten{seed}.vrp"
    path.write_text(TEN.format(terms, places, needs))
    return path


@pytest.mark.parametrize("kit", [True, False])
@pytest.mark.parametrize("style", ["paper", "frame"])
def test_contracts_are_as_they_were_without_limits(kit: bool, style: Style) -> None:
    read = Templates.read(None, CVRP, kit, style)
    told = read.with_limits(CVRP, CVRP.sample(size=5, count=2, seed=1))
    assert told.texts == read.texts
    assert told.digest == read.digest


@pytest.mark.parametrize("kit", [True, False])
def test_contracts_name_the_limits_that_files_have(tmp_path: Path, kit: bool) -> None:
    free, [read] = CVRP.sample(size=5, count=1, seed=1), [Templates.read(None, CVRP, kit)]
    few = CVRP.read(written(tmp_path, "VEHICLES : 4"))
    long = CVRP.read(written(tmp_path, "DISTANCE : 190\nVEHICLES_MAX_DISTANCE : 180", 1))
    for instances, named, not_named in (
        ([*free, few], "limits on their number.", "their length"),
        ([*free, long], "limits on their length and on their duration", "their number"),
        ([few, long], "limits on their length, on their duration", "windows"),
    ):
        for role in ROLES:
            before = read.texts[f"cvrp-{role}.txt"]
            after = read.with_limits(CVRP, instances).texts[f"cvrp-{role}.txt"]
            assert after.startswith(before.rstrip() + "\n\nLimits\n")
            more = after[len(before.rstrip()) :]
            assert named in more
            assert not_named not in more
            assert ("lns.slack(dist, routes, customer=0)" in more) == kit
            assert ("lns.vehicles(dist)" in more) == (kit and few in instances)


@pytest.mark.long
def test_a_discovery_on_limited_files(tmp_path: Path) -> None:
    for seed in range(2):
        written(tmp_path, "VEHICLES_MAX_DISTANCE : 190", seed)
    run = spo_jax.discover(
        "cvrp", preset="smoke", generator="grammar", on=[str(tmp_path)], vehicles=3, steps=20,
        path=tmp_path / "run", workers=1,
    )  # fmt: skip
    for seed in range(2):
        instance = CVRP.read(tmp_path / f"ten{seed}.vrp", vehicles=3)
        assert {"max_distance", "max_vehicles"} <= instance.extra.keys()
        solved = spo_jax.solve(instance, run, steps=30, workers=1)
        assert CVRP.rules(instance.seen()).repaired(solved.solution)
        assert len(solved.solution) == 3
