"""Files of references: what they may say, what they may not, and those that ship."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from exhaustive import cheapest_routes, cvrp, shortest_tour, tsp

from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.cvrp.baselines.heuristics import clarke_wright
from spo_jax.envs.problems.tsp.baselines.heuristics import nearest_neighbor, three_opt
from spo_jax.envs.report.reference_files import (
    FIELDS,
    ReferenceFile,
    Row,
    read_references,
    shipped,
    write_references,
)
from spo_jax.errors import InputError
from spo_jax.presets import settings
from spo_jax.search.instances import training_instances, validation_instances

TSP, CVRP = get_problem("tsp"), get_problem("cvrp")
DIGEST = tsp(8).digest


def file(tmp_path, text, name="refs.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


# --- what they may say ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("refs.csv", "name,cost\nt8,40.5\n"),
        ("refs.txt", "\ufeffCost, Name\r\n\r\n 40.5, t8\r\n"),
        ("refs.csv", f"digest,cost\n{DIGEST},4.05e1\n"),
        ("refs.csv", f"problem,name,digest,cost\ntsp,other,{DIGEST},40.5\n"),
        ("refs.json", '{"t8": 40.5, "t9": 1}'),
        ("refs.json", '{"t8": {"cost": 40.5, "problem": "tsp"}}'),
        ("refs.JSON", json.dumps([{"digest": DIGEST, "cost": "40.5"}])),
    ],
)
def test_ways_to_name_an_instance(tmp_path, name, text):
    row = read_references(file(tmp_path, text, name)).find(TSP, tsp(8))
    assert row is not None
    assert (row.cost, row.certified, row.source) == (40.5, False, "")


def test_what_else_a_row_says(tmp_path):
    text = 'name,cost,source,certified\na,1,"Concorde 03.12.19, exact",yes\nb,2,,no\n'
    first, second = read_references(file(tmp_path, text)).rows
    assert (first.source, first.certified) == ("Concorde 03.12.19, exact", True)
    assert (second.source, second.certified) == ("", False)
    assert second.where.endswith("refs.csv, line 3")


def test_names_belong_to_problems(tmp_path):
    text = "problem,name,cost\ncvrp,t8,50\ntsp,c8,60\n,both,70\n"
    found = read_references(file(tmp_path, text))
    assert found.find(TSP, tsp(8)) is None


def test_what_is_written_is_read(tmp_path):
    rows = [
        Row("tsp", "a", "0" * 32, 0.1 + 0.2, True, "paper", 'LKH "3", runs=3'),
        Row("cvrp", "a", "f" * 32, 12.0),
    ]
    write_references(tmp_path / "refs.csv", rows)
    read = read_references(tmp_path / "refs.csv").rows
    for row, again in zip(rows, read, strict=True):
        assert [getattr(row, field) for field in FIELDS] == [getattr(again, f) for f in FIELDS]


def test_files_of_one_name_in_several_folders_are_told_apart_by_digests(tmp_path):
    days = [replace(each, name="day1") for each in TSP.sample(5, 3, 4)]
    file = tmp_path / "refs.csv"
    write_references(file, [Row("tsp", "day1", d.digest, 1e6 + k) for k, d in enumerate(days[:2])])
    found = read_references(file)
    assert [found.find(TSP, day).cost for day in days[:2]] == [1e6, 1e6 + 1]
    assert found.find(TSP, days[2]) is None  # the name says nothing any more
    for wrong in (days[0].digest, ""):  # one instance twice, and a name that could be either
        file.write_text(f"name,digest,cost\nday1,{days[0].digest},1\nday1,{wrong},2\n")
        with pytest.raises(InputError, match=r"line 3: day1 was already given in .*line 2"):
            read_references(file)


# --- what they may not ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("refs.csv", "", "is empty"),
        ("refs.csv", "name,cost\n", "has no references"),
        ("refs.csv", "berlin52,7542\n", "the first line names the columns.*not 'berlin52'"),
        ("refs.csv", "name,name,cost\na,b,1\n", "none twice"),
        ("refs.csv", "name,cost\na,1,2\n", "line 2: expected 2 columns, not 3"),
        ("refs.csv", 'name,cost\n"a,1\n', "line 2: unexpected end of data"),
        ("refs.csv", "name,cost\na,1\n\na,2\n", "line 4: a was already given in .*line 2"),
        ("refs.csv", "name,cost\n,1\n", "line 2: give the name or the digest"),
        ("refs.csv", "digest,cost\nabc,1\n", "line 2: a digest is 32"),
        ("refs.csv", "name,cost\na,-inf\n", "cost must be a number"),
        ("refs.csv", "name,cost\na,nan\n", "cost must be a number"),
        ("refs.csv", "name,cost\na,\n", "cost must be a number"),
        ("refs.csv", "name\na\n", "cost must be a number"),
        ("refs.csv", "name,cost,certified\na,1,maybe\n", "certified is yes or no, not 'maybe'"),
        ("refs.json", "{", "not valid JSON"),
        ("refs.json", "7", "neither a list"),
        ("refs.json", "[7]", "reference 1: expected an object"),
        ("refs.json", '[{"name": "a", "costs": 1}]', "unknown key 'costs'"),
        ("refs.json", '{"a": true}', "cost must be a number"),
        ("refs.json", '{"a": [1]}', "cost must be a number"),
        ("refs.json", '[{"name": 7, "cost": 1}]', "name must be a text"),
    ],
)
def test_malformed_files_are_one_sentence(tmp_path, name, text, says):
    with pytest.raises(InputError, match=says) as caught:
        read_references(file(tmp_path, text, name))
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


def test_the_digest_of_another_instance():
    rows = [Row("tsp", "t8", tsp(8, seed=1).digest, 40.0, where="refs.csv, line 2")]
    says = rf"refs\.csv, line 2: the digest is of another instance than the t8 .*{DIGEST}"
    with pytest.raises(InputError, match=says):
        ReferenceFile("refs.csv", rows).find(TSP, tsp(8))


def test_a_cost_in_another_unit():
    row = Row("", "t8", "", shortest_tour(tsp(8)) / 1000, where="refs.csv, line 2")
    with pytest.raises(InputError, match=r"line 2: .* less than any solution of t8 costs"):
        ReferenceFile("refs.csv", [row]).find(TSP, tsp(8))


@pytest.mark.parametrize("n", [3, 5, 7])
def test_no_solution_is_below_the_bound(n):
    for seed in range(5):
        assert 0 < TSP.lower_bound(tsp(n, seed)) <= shortest_tour(tsp(n, seed)) * (1 + 1e-12)
    for seed in range(2):
        assert 0 < CVRP.lower_bound(cvrp(n, seed)) <= cheapest_routes(cvrp(n, seed)) * (1 + 1e-12)


# --- what ships -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("problem", "solver"), [(TSP, "LKH (elkai "), (CVRP, "PyVRP ")])
def test_what_ships_is_small_and_says_where_it_is_from(problem, solver):
    assert Path(problem.references).stat().st_size < 50_000
    rows = shipped(problem).rows
    assert len({row.digest for row in rows}) == len(rows)
    assert sum(row.name.endswith("@2026") for row in rows) == 128
    for row in rows:
        assert row.effort in ("standard", "paper")
        assert row.source.startswith(solver)
        assert row.certified == (
            "proven by branch and cut" in row.source and "not proven" not in row.source
        )


@pytest.mark.parametrize(("problem", "heuristic"), [(TSP, nearest_neighbor), (CVRP, clarke_wright)])
def test_what_ships_is_of_the_instances_of_today(problem, heuristic):
    sets: dict[int, list[Row]] = {}
    for row in shipped(problem).rows:
        assert row.problem == problem.name
        if row.name.endswith("@2026"):
            sets.setdefault(int(row.name.split("-")[1]), []).append(row)
    for size, rows in sets.items():
        instances = problem.sample(size, 32, 2026)  # as docs/research/methods_tsp.md has them
        assert [row.digest for row in rows] == [instance.digest for instance in instances]
        assert [row.name for row in rows] == [instance.name for instance in instances]
        for row, instance in zip(rows[:3], instances, strict=False):
            assert shipped(problem).find(problem, instance) is row
            cost = problem.cost(instance, heuristic(instance))
            assert problem.lower_bound(instance) < row.cost < cost


@pytest.mark.parametrize("problem", [TSP, CVRP])
def test_what_else_ships_is_of_the_presets(problem):
    configs = [settings(problem.name, preset) for preset in ("smoke", "quick", "standard")]
    seen = {
        instance.digest: instance
        for config in configs
        for instance in (
            *training_instances(config, problem),
            *validation_instances(config, problem),
        )
    }
    for instance in seen.values():
        row = shipped(problem).find(problem, instance)
        assert row is not None, instance.name
        assert problem.lower_bound(instance) < row.cost
    others = {row.digest for row in shipped(problem).rows if not row.name.endswith("@2026")}
    assert others >= seen.keys()


def test_a_proven_value_is_what_a_search_from_elsewhere_finds():
    from spo_jax.envs.problems.tsp.baselines.branch_and_cut import prove

    instance = TSP.sample(50, 1, 2026)[0]
    row = shipped(TSP).by_digest(instance)
    assert row is not None
    assert row.certified
    assert prove(instance, three_opt(instance)).cost == pytest.approx(row.cost, rel=1e-12)
