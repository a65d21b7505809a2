"""The data set of payoffs: what a file keeps, and tables with programs that fail."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.program import Program
from spo_jax.search.lab import __main__ as command
from spo_jax.search.lab.measured.crossplay import cross_play
from spo_jax.search.lab.measured.dataset import (
    VERSION,
    DataInstance,
    DataProgram,
    PayoffData,
    load_data,
)
from spo_jax.search.lab.measured.replay import measured, panel_ranks, reliability, replay
from spo_jax.search.lab.measured.reports import made_of, replayed
from spo_jax.search.lab.measured.tables import Table, floored, load_table
from spo_jax.search.lab.schemes import Scheme
from spo_jax.seeding import derive

DEAD = 2  # a destroy that fails with all repairs
SIDES = (7, 6)


@pytest.fixture
def data():
    """Seven destroys, six repairs, two instances for training and three for testing, two seeds.

    A destroy and a repair fail always, and a pair on one test instance alone.
    """
    rng = np.random.default_rng(4)
    shape = (*SIDES, 5, 2)
    leaders = rng.normal(size=(SIDES[0], 1, 1, 1, 1))
    scores = 0.5 + 0.05 * leaders + 0.02 * rng.normal(size=(*shape, 2))
    status = np.zeros(shape, np.int8)
    status[DEAD], status[:, 4], status[0, 1, 3] = Status.CRASH, Status.CRASH, Status.INVALID
    scores[status != 0] = np.nan
    programs = [
        [DataProgram(Program(role, f"def {role}(): return {i}", f"words {i}", ("a", "b")),
                     "run x", i) for i in range(count)]
        for role, count in zip(("destroy", "repair"), SIDES, strict=True)
    ]  # fmt: skip
    return PayoffData(
        scores.astype(np.float32), np.full((5, 2), 8.0), np.array([10, 50]),
        rng.random(shape).astype(np.float32), status, status.astype(np.int16),
        np.array([0, 1, 2, -1, 4, 5, -1]), np.array([0, 0, 1, 1, 1], bool),
        ("", "of no evaluation", "returned nothing", "ValueError"),
        tuple(programs[0]), tuple(programs[1]),
        tuple(DataInstance(f"uniform-9-{i}@1", f"{i:x}", 9) for i in range(5)),
        {"command": "python x", "package": "spo-jax 9", "problem": "tsp"},
    )  # fmt: skip


@pytest.fixture
def table(data, tmp_path):
    data.save(tmp_path / "t.npz")
    return load_table(tmp_path / "t.npz")


def test_a_file_gives_back_what_it_was_given_and_the_same_bytes(data, tmp_path):
    data.save(tmp_path / "a.npz")
    found = load_data(tmp_path / "a.npz")
    for name, own in vars(data).items():
        np.testing.assert_array_equal(getattr(found, name), own, strict=isinstance(own, np.ndarray))
    assert found.destroys[3].program.parents == ("a", "b")
    found.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with np.load(tmp_path / "a.npz", allow_pickle=False) as known:  # without this package
        about = json.loads(str(known["about"]))
        assert known["scores"].shape == (*SIDES, 5, 2, 2)
    assert about["version"] == VERSION
    assert about["destroys"][1]["source"] == "def destroy(): return 1"
    assert about["statuses"][Status.CRASH] == "crash"
    assert found.failed.sum() == 6 + 7 - 1 + 1


@pytest.mark.parametrize(("change", "message"), [
    ({"seconds": np.zeros((1, 2))}, r"seconds of a data set is \[D, R, I, S\]"),
    ({"status": np.zeros((*SIDES, 5, 2), np.int8)}, "exactly where none failed"),
    ({"reason": np.full((*SIDES, 5, 2), 9)}, "an index of its reasons"),
    ({"destroys": ()}, "of a data set is"),
])  # fmt: skip
def test_what_is_no_data_set(data, change, message):
    with pytest.raises(InputError, match=message):
        replace(data, **change)


def test_files_that_it_refuses(data, tmp_path):
    where = tmp_path / "t.npz"
    data.save(where)
    with np.load(where) as known:
        arrays = {name: known[name] for name in known.files}
    about = json.loads(str(arrays["about"]))
    for change, message in (
        ({"version": VERSION + 1}, f"of version {VERSION + 1}, and this package reads"),
        ({"destroys": [{}]}, "is no data set"), ({"instances": 3}, "is no data set"),
    ):  # fmt: skip
        np.savez(where, **(arrays | {"about": np.array(json.dumps(about | change))}))
        with pytest.raises(InputError, match=message):
            load_data(where)
        with pytest.raises(InputError, match="is no payoff table"):
            load_table(where)
    for text in ("{", "[" * 300, "3"):
        np.savez(where, **(arrays | {"about": np.array(text)}))
        with pytest.raises(InputError, match="is no data set"):
            load_data(where)
    where.write_bytes(b"PK\3\4")
    with pytest.raises(InputError, match="is no data set"):
        load_data(where)


def test_a_table_keeps_programs_that_fail(data, table):
    assert table.scores.shape == (*SIDES, 10)
    np.testing.assert_array_equal(np.isnan(table.utility), data.failed)
    np.testing.assert_allclose(table.scores, data.scores[..., 1].reshape(*SIDES, 10))
    assert table.answer.tolist() == data.answer.tolist()
    assert [each.source for each in table.destroys] == [m.program.source for m in data.destroys]
    assert table.test.tolist() == [False] * 4 + [True] * 6
    assert np.isfinite(table.whole.scores).all()
    assert min(table.whole.utility.shape) >= 5
    assert table.whole.destroys[0].source in {m.program.source for m in data.destroys}
    assert len(table.whole.answer) == len(table.whole.destroys)


def test_rounds_see_failures_and_the_truth_is_of_test_instances(table):
    rounds = replay(table, 6, 40)
    assert set(np.unique(rounds.seen)) == {0, 1, 2, 3}  # training alone
    floor = np.nanmin(table.scores[..., 4:].mean(axis=2))
    for n in range(40):
        for d, row in enumerate(rounds.leaders[n]):
            columns = rounds.source[n, d]
            seen = table.scores[row][columns][:, :4].mean(axis=1)
            np.testing.assert_allclose(rounds.utility[n, d], seen)
            # (0, 1) fails on a test instance alone: a round does not know that.
            assert np.isnan(rounds.utility[n, d, columns == 4]).all()
            truth = table.scores[row, :, 4:].mean(axis=1)
            own = floor if row == DEAD else np.nanmax(truth)
            assert rounds.value[n, d] == pytest.approx(own)
    assert np.isfinite(rounds.utility[rounds.leaders == 0][:, 1:]).any()
    assert np.isnan(rounds.scores[np.isnan(rounds.utility)]).all()
    assert np.isfinite(rounds.worth).all()
    some = replay(table, 6, 40, evaluations=2)
    assert set(np.unique(some.seen)) <= {0, 1, 2, 3}


@pytest.mark.long
def test_a_leader_without_a_valid_response_is_worth_least_and_earns_nothing(table):
    rounds = replay(table, 6, 20)
    dead = rounds.leaders == DEAD
    assert (rounds.value[dead] <= rounds.value.min()).all()
    for name in ("stackelberg", "shared", "entropic"):
        earned = Scheme(name)(rounds.utility, rounds.source, rounds.reference, rounds.scores)
        assert np.isnan(earned.leader[dead]).all()
        assert np.isfinite(earned.leader[~dead]).all()
        found = measured(Scheme(name), rounds)
        assert np.isfinite(found["rank"]).all()
        assert (found["regret"] >= -1e-12).all()
    # What failed is seen by those that pay for it: a pair of six with 0 loses a sixth.
    paid = Scheme("shared-failures-zero")(rounds.utility, rounds.source)
    known = np.where(np.isnan(rounds.utility), 0.0, rounds.utility).mean(axis=-1)
    np.testing.assert_allclose(paid.leader, known)


def test_floored_is_the_lowest_of_what_did_not_fail():
    values = np.array([[np.nan, 0.4], [0.7, 0.2]])
    np.testing.assert_array_equal(floored(values), [[0.2, 0.4], [0.7, 0.2]])
    assert np.isnan(floored(np.full((2, 2), np.nan))).all()
    np.testing.assert_array_equal(floored(np.ones((2, 2))), 1.0)


def test_panels_and_cross_play_with_repairs_that_fail(table):
    """A repair that fails with a leader is behind all that do not."""
    rounds = replay(table, 6, 30)
    assert np.isfinite(panel_ranks(table, 2, rounds)).all()
    found = cross_play(Scheme("stackelberg"), table, rounds, (5, 6), (1, 3), 4)
    assert all(np.isfinite(each.regret).all() for each in found.values())
    assert (found[5, 3].regret >= -1e-12).all()


def test_the_reliability_of_a_table_with_failures_by_loops(table):
    rng = np.random.default_rng(0)
    by_instance = table.scores.reshape(*SIDES, 5, 2).mean(axis=3)
    found = []
    for _ in range(400):
        order = rng.permutation(5)
        halves = [by_instance[..., part].mean(axis=2) for part in (order[:2], order[2:4])]
        low = [np.nanmin(each) for each in halves]
        best = [[low[k] if np.isnan(row).all() else np.nanmax(row) for row in each]
                for k, each in enumerate(halves)]  # fmt: skip
        found.append(spearmanr(*best).statistic)
    mean = np.mean(found)
    assert reliability(table) == pytest.approx(1.5 * mean / (1 + 0.5 * mean), abs=0.05)


@pytest.mark.long
def test_what_is_told_of_a_table_with_failures(table):
    text = made_of({"mine": table})
    rows, columns = table.whole.utility.shape
    assert f"| mine | 7 x 6 | 50 | 31.0% | {rows} x {columns} |" in text
    schemes = [Scheme("stackelberg"), Scheme("shared")]
    text = replayed("mine", table, schemes, (3,), 20, 0)
    assert "nan" not in text
    assert "| stackelberg | " in text


def test_a_table_without_failures_is_its_own_whole():
    table = Table(np.random.default_rng(0).random((4, 5, 3)), np.full(4, -1))
    assert table.whole is table
    assert table.seen == 1


SHIPPED = Path(__file__).parents[2] / "experiments/data/payoff"


@pytest.mark.parametrize("name", ["tsp-rounds-v1", "cvrp-rounds-v1"])
def test_a_data_set_that_ships(name):
    where = SHIPPED / f"{name}.npz"
    data, table = load_data(where), load_table(where)
    assert {each.round for each in data.destroys} >= {1, 6}
    assert {each.round for each in data.repairs} >= {1, 6}
    always = data.failed.all(axis=1).sum(), data.failed.all(axis=0).sum()
    assert min(always) >= 1  # programs that fail with all, and
    assert (~data.failed).mean() > 0.4  # most that do not
    assert 0 < data.test.sum() < len(data.test)
    known = get_problem(data.made["problem"])
    for kind, stream in ((False, "payoff table"), (True, "payoff test")):
        own = [each for each, test in zip(data.instances, data.test, strict=True) if test == kind]
        drawn = known.sample(data.made["size"], len(own), derive(stream, data.made["seed"]))
        assert [each.digest for each in own] == [each.digest for each in drawn]
    assert table.shares.leader > 0
    card = where.with_suffix(".md").read_text()
    assert f"{data.failed.sum():,} of {data.failed.size:,}" in card
    assert data.made["command"] in card
    assert "Licence: Apache-2.0" in card


def test_data_sets_that_ship_are_small():
    assert sum(each.stat().st_size for each in SHIPPED.iterdir()) < 20e6


@pytest.mark.slow
def test_the_laboratory_takes_a_data_set(data, tmp_path, capsys):
    data.save(tmp_path / "t.npz")
    flags = ["--quick", "--worlds", "3", "--rounds", "2", "--responses", "3", "--schemes",
             "stackelberg,shared", "--out", str(tmp_path / "out")]  # fmt: skip
    assert command.main([*flags, "--table", str(tmp_path / "t.npz")]) == 0
    assert "Rounds replayed from t" in capsys.readouterr().out
