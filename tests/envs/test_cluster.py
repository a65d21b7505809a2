"""Evaluation on several machines gives what one machine gives, whatever becomes of the nodes."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fake_fleet import FakeFleet, Record, Recorder
from hypothesis import given, settings
from hypothesis import strategies as st
from program_collection import good_pair

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.cluster import evaluator as module
from spo_jax.envs.run.cluster.compatibility import arithmetic, code_digest, difference, fingerprint
from spo_jax.envs.run.cluster.encoding import unpack
from spo_jax.envs.run.cluster.evaluator import ClusterEvaluator
from spo_jax.envs.run.cluster.host import BAD, GOOD, Host
from spo_jax.envs.run.cluster.nodes import About
from spo_jax.envs.run.jobs.planning import Planner
from spo_jax.envs.run.observation import OBSERVED
from spo_jax.envs.run.rollouts import Refusal, Rollouts
from spo_jax.envs.run.sandbox.jobs import Job
from spo_jax.envs.run.sandbox.process.starting import import_path
from spo_jax.errors import SandboxUnavailable
from spo_jax.program import Pair, Program

TSP = get_problem("tsp")
INSTANCES = TSP.sample(14, 2, 0)
SEEDS, STEPS = (0, 1), 8


def of(destroy: str = "", repair: str = "") -> Pair:
    """The good pair with more lines."""
    good = good_pair("tsp")
    return Pair(
        Program.from_source("destroy", good.destroy.source + destroy),
        Program.from_source("repair", good.repair.source + repair),
    )


PAIRS = [
    *(of(f"# {k}\n") for k in range(6)),
    of("\nimport numpy as np\n"),  # a process for each rollout
    of("", "\n\nimport os\n"),  # which the gate refuses
    *(
        Pair(Program("destroy", f"def destroy(dist, tour, z, rng):\n    {body}\n"), of().repair)
        for body in ("return [], tour", "return 1 / (z // 2), tour")
    ),
]
PROGRAMS = [each.destroy for each in PAIRS] + [PAIRS[7].repair]


def same(a: Rollouts, b: Rollouts) -> None:
    for name in ("best_cost", "state", "status", "code", "reason", "role"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


class Known:
    """What one machine gives."""

    record: Record
    fast: Rollouts
    full: Rollouts
    refusals: list[Refusal | None]


@pytest.fixture(scope="module")
def known() -> Iterator[Known]:
    found = Known()
    with Recorder(TSP, 2, cpu_seconds=100) as local:
        found.full = local.run(PAIRS, INSTANCES, SEEDS, STEPS, fail_fast=False)
        found.fast = local.run(PAIRS, INSTANCES, SEEDS, STEPS)
        found.refusals = local.check(PROGRAMS)
        found.record = local.record
    return found


def cluster(fleet: FakeFleet) -> ClusterEvaluator:
    return ClusterEvaluator(TSP, fleet=fleet, cpu_seconds=100)


@pytest.mark.long
@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 5), st.sampled_from([0.0, 0.05, 0.3]), st.booleans())
def test_results_do_not_depend_on_nodes_or_their_fate(
    known: Known, seed: int, nodes: int, harm: float, fast: bool
) -> None:
    fleet = FakeFleet(known.record, seed, nodes, harm)
    seen: list[tuple[int, int]] = []
    messages: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "time", fleet.time)
        with cluster(fleet) as evaluator:
            evaluator.listen(messages.append)
            found = evaluator.run(
                PAIRS, INSTANCES, SEEDS, STEPS, fail_fast=fast,
                progress=lambda *now: seen.append(now),
            )  # fmt: skip
            assert evaluator.check(PROGRAMS) == known.refusals
            records = evaluator.record()
    same(found, known.fast if fast else known.full)
    assert seen[-1] == (len(PAIRS) * 4, len(PAIRS) * 4)
    assert fleet.closed
    assert sorted(fleet.puts) == sorted(each.digest for each in INSTANCES)  # once each
    lost = [line for line in messages if "is lost" in line]
    assert len(lost) <= len(fleet.events)
    if not harm:
        assert not lost
        assert {each["state"] for each in records} == {"ready"}
        if not fast:
            assert sum(each["rollouts"] for each in records) <= len(PAIRS) * 4


def test_a_node_that_lacks_a_layer_takes_no_programs_and_it_is_reported_why(known: Known) -> None:
    fleet = FakeFleet(known.record, nodes=6)
    fleet.join(cpus=0)
    names = ("fixed_addresses", "landlock", "namespaces", "no_new_privs", "zeroed_arrays")
    other = fingerprint() | {"numpy": "1.0"}
    fleet.about = {
        "n2": {"layers": dict.fromkeys(names, True)},
        "n3": {"layers": {}},
        "n4": {"fingerprint": other},
        "n5": {"wrong": "SandboxUnavailable: the sandbox process did not start"},
        "n6": {"layers": dict.fromkeys((*names, "seccomp"), True) | {"landlock": False}},
    }
    messages: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "time", fleet.time)
        with cluster(fleet) as evaluator:
            evaluator.listen(messages.append)
            same(evaluator.run(PAIRS, INSTANCES, SEEDS, STEPS), known.fast)
            records = {each["name"]: each for each in evaluator.record()}
            assert evaluator.layers["seccomp"] is True
            assert evaluator.layers["landlock"] is False  # since one does without it
    whys = {name: each.get("why") for name, each in records.items()}
    assert whys == {
        "n1": None,
        "n2": "it offers no seccomp",
        "n3": "it offers no seccomp and no zeroed_arrays",
        "n4": "its results could differ: it has NumPy 1.0, and the machine of the run has NumPy "
        + np.__version__,
        "n5": "SandboxUnavailable: the sandbox process did not start",
        "n6": None,
        "n7": "it offers no CPU",
    }
    for name in ("n2", "n3", "n4", "n5", "n7"):
        assert f"Node {name} takes no programs: {whys[name]}" in messages
        assert records[name]["jobs"] == 0
    assert any(line.startswith("Node n6 takes programs") and "without landlock" in line
               for line in messages)  # fmt: skip


def test_without_any_node_the_reasons_are_reported(known: Known) -> None:
    fleet = FakeFleet(known.record, nodes=1)
    fleet.about = {"n1": {"layers": {}}}
    message = "^no node takes programs: n1: it offers no seccomp and no zeroed_arrays$"
    with pytest.raises(SandboxUnavailable, match=message):
        cluster(fleet).__enter__()
    assert fleet.closed
    unsafe = ClusterEvaluator(TSP, fleet=fleet, cpu_seconds=100, unsafe=True)
    with unsafe as evaluator:
        same(evaluator.run(PAIRS, INSTANCES, SEEDS, STEPS), known.fast)


def test_a_run_without_nodes_does_not_wait_for_ever(known: Known) -> None:
    fleet = FakeFleet(known.record, nodes=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "time", fleet.time)
        with cluster(fleet) as evaluator:
            fleet.hung.add("n1")
            patch.setattr(fleet, "machines", dict)
            with pytest.raises(SandboxUnavailable, match="no node has taken programs for 600 s"):
                evaluator.run(PAIRS, INSTANCES, SEEDS, STEPS)
    assert fleet.closed


# --- a node's own end -----------------------------------------------------------------------------


@pytest.fixture
def host() -> Iterator[Host]:
    found = Host(TSP.spec, 2, True, import_path(), lambda digest: BY_DIGEST[digest])
    yield found
    found.close()


BY_DIGEST: dict[str, Instance] = {each.digest: each for each in INSTANCES}


@pytest.mark.long
def test_a_host_does_jobs(host: Host, known: Known) -> None:
    about = About.read(host.open())
    assert not about.wrong
    assert about.fingerprint == fingerprint()
    assert about.layers["seccomp"]
    assert host.hold(list(BY_DIGEST), list(BY_DIGEST)) == GOOD
    planner = Planner(TSP, 0, 100, 512 << 20, False, OBSERVED, None)
    planned = planner.jobs(
        PAIRS[:3], INSTANCES, SEEDS, STEPS, seconds=None, fail_fast=True, workers=1
    )
    jobs: dict[int, Job] = dict(enumerate((job for _, job in planned), 7))
    done, given = [], list(jobs.items())
    while len(done) < len(jobs):
        answer = host.turn(given)
        assert answer[:1] == GOOD
        done += unpack(answer[1:], jobs.get)
        given = []
    assert sorted(each.ticket for each in done) == sorted(jobs)
    for each in done:
        assert each.seconds > 0.0
        expected = known.record.play(jobs[each.ticket]).reports
        assert [r.payload for r in each.ended.reports] == [r.payload for r in expected]
    assert host.turn([]) == GOOD + bytes(4)  # nothing has ended since


def test_a_host_says_what_is_wrong(host: Host) -> None:
    assert host.hold(["x"], ["x"])[:1] == BAD  # it is not open
    bad = Host("no.such.module:Problem", 1, True, import_path(), BY_DIGEST.__getitem__)
    assert "SandboxUnavailable" in About.read(bad.open()).wrong
    bad.close()
    host.open()
    missing = host.hold(["x"], ["x"])
    assert missing[:1] == BAD
    assert b"KeyError" in missing


def test_a_host_whose_workers_cannot_be_had_again_says_so(host: Host, known: Known) -> None:
    host.open()
    host.hold(list(BY_DIGEST), list(BY_DIGEST))

    def begin(mark: object, job: object) -> None:
        raise SandboxUnavailable("the sandbox process died 6 times")

    host._pool.begin = begin  # type: ignore[method-assign]
    planner = Planner(TSP, 0, 100, 512 << 20, False, OBSERVED, None)
    [(_, job), *_] = planner.jobs(
        PAIRS[:1], INSTANCES, SEEDS, STEPS, seconds=None, fail_fast=True, workers=1
    )
    assert host.turn([(1, job)]) == BAD + b"SandboxUnavailable: the sandbox process died 6 times"


def test_a_closed_host_leaves_no_thread(host: Host) -> None:
    before = threading.active_count()
    host.open()
    assert threading.active_count() == before + 1
    host.close()
    assert threading.active_count() == before


# --- what machines must have in common ------------------------------------------------------------


def test_arithmetic_repeats_and_a_difference_is_reported() -> None:
    assert arithmetic() == arithmetic()
    ours = fingerprint()
    assert difference(ours, ours) == ""
    assert "arithmetic" in difference(ours | {"arithmetic": "0"}, ours)
    assert "Python 2" in difference(ours | {"python": "2"}, ours)
    assert "None" in difference({}, ours)


def test_the_digest_of_code_sees_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs" / "a.py").write_text("1")
    first = code_digest(tmp_path)
    (tmp_path / "envs" / "notes.txt").write_text("of no matter")
    assert code_digest(tmp_path) == first
    (tmp_path / "envs" / "a.py").write_text("2")
    second = code_digest(tmp_path)
    (tmp_path / "envs" / "a.py").rename(tmp_path / "envs" / "b.py")
    assert len({first, second, code_digest(tmp_path)}) == 3
