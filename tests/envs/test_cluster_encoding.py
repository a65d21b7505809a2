"""What nodes answer: it comes through unchanged, and what no node says is refused."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spo_jax.envs.run.cluster.encoding import (
    COUNT,
    JOB,
    MAX_REASON,
    REPORT,
    Done,
    Malformed,
    pack,
    unpack,
)
from spo_jax.envs.run.cluster.nodes import About
from spo_jax.envs.run.observation import OBSERVED, of_rollout
from spo_jax.envs.run.rollouts import Status
from spo_jax.envs.run.sandbox.jobs import ROLES, WHOLE_JOB, CheckJob, Job, RunJob, Task
from spo_jax.envs.run.sandbox.outcome import ChildReport, Ended

SHOWN = of_rollout(OBSERVED, "i", 0, 3)
RUN = RunJob(
    "d", "r", tuple(Task(k, "i", 2 + k, 0, 0, SHOWN) for k in (4, 5, 6)), steps=3,
    cpu_seconds=1.0, memory=1, gate_seconds=1.0,
)  # fmt: skip
CHECK = CheckJob((("destroy", "a"), ("repair", "b")), 1.0, 1)
JOBS: dict[int, Job] = {1: RUN, 2: CHECK, 3: RUN}

seconds = st.floats(0.0, 1e9)
reasons = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
failures = st.sampled_from([Status.REJECTED, Status.INVALID, Status.CRASH, Status.MEMORY])
verdicts = st.builds(
    ChildReport,
    st.just(0),
    st.sampled_from([Status.CRASH, Status.TIMEOUT, Status.TAMPERED, Status.HOST_FAULT]),
    reasons,
    seconds,
    again=st.booleans(),
)


@st.composite
def endings(draw: st.DrawFn, job: Job) -> Ended:
    """As a worker of ours gives them."""
    length = len(job.tasks) if isinstance(job, RunJob) else len(job.programs)
    reports = []
    for k in range(draw(st.integers(0, length))):
        index = job.due(k)
        assert index is not None
        if draw(st.booleans()):
            payload = draw(st.binary(min_size=(n := job.payload_size(k)), max_size=n))
            reports.append(ChildReport(index, Status.OK, draw(reasons), draw(seconds), payload))
        else:
            failure = (
                draw(failures),
                draw(reasons),
                draw(seconds),
                b"",
                draw(st.sampled_from(ROLES)),
            )
            reports.append(ChildReport(index, *failure))
    return Ended(reports, draw(st.none() | verdicts), draw(st.booleans()))


@st.composite
def answers(draw: st.DrawFn) -> list[Done]:
    tickets = draw(st.permutations(sorted(JOBS)))[: draw(st.integers(0, 3))]
    return [Done(ticket, draw(seconds), draw(endings(JOBS[ticket]))) for ticket in tickets]


@given(answers())
def test_an_answer_comes_through(done: list[Done]) -> None:
    assert unpack(pack(done), JOBS.get) == done


@given(answers(), st.data())
def test_an_answer_of_another_length_is_refused(done: list[Done], data: st.DataObject) -> None:
    whole = pack(done)
    cut = data.draw(st.integers(0, len(whole) - 1))
    for wrong in (whole[:cut], whole + b"\0", b"", whole * 2 if done else b"\1"):
        with pytest.raises(Malformed):
            unpack(wrong, JOBS.get)


@pytest.mark.long
@given(answers(), st.data())
def test_any_other_bytes_are_refused_or_lawful(done: list[Done], data: st.DataObject) -> None:
    """What is taken for lawful is what a worker could have said of these jobs."""
    wrong = bytearray(pack(done) + data.draw(st.binary(max_size=40)))
    for place in data.draw(st.lists(st.integers(0, len(wrong) - 1), max_size=6)):
        wrong[place] = data.draw(st.integers(0, 255))
    try:
        found = unpack(bytes(wrong), JOBS.get)
    except Malformed:
        return
    assert len({each.ticket for each in found}) == len(found)
    for each in found:
        job = JOBS[each.ticket]
        assert each.seconds >= 0.0
        for k, report in enumerate(each.ended.reports):
            assert report.index == job.due(k) or report.index == WHOLE_JOB
            assert report.seconds >= 0.0
            due = job.payload_size(k) if report.status == Status.OK else 0
            assert len(report.payload) == due


def answer(head: bytes, *parts: bytes) -> bytes:
    return COUNT.pack(1) + head + b"".join(parts)


def report(index: int = 4, status: int = 3, role: int = 0, again: bool = False,
           length: int = 0, seconds: float = 0.0) -> bytes:  # fmt: skip
    return REPORT.pack(index, status, role, again, length, seconds)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (answer(JOB.pack(9, 0.0, 0, False, False)), "ticket 9"),
        (COUNT.pack(2) + 2 * JOB.pack(1, 0.0, 0, False, False), "ended twice"),
        (answer(JOB.pack(1, float("nan"), 0, False, False)), "took nan s"),
        (answer(JOB.pack(1, -1.0, 0, False, False)), "took -1.0 s"),
        (answer(JOB.pack(1, 0.0, 1, False, False), report(5)), "report 0 .* index 5"),
        (answer(JOB.pack(1, 0.0, 2**32 - 1, False, False), *3 * [report()]), "report 1"),
        (answer(JOB.pack(2, 0.0, 1, False, False), report(WHOLE_JOB, 1)), f"index {WHOLE_JOB}"),
        (answer(JOB.pack(1, 0.0, 1, False, False), report(status=6)), "status 6"),
        (answer(JOB.pack(1, 0.0, 1, False, False), report(status=8)), "status 8"),
        (answer(JOB.pack(1, 0.0, 1, False, False), report(role=3)), "role 3"),
        (answer(JOB.pack(1, 0.0, 1, False, False), report(again=True)), "report 0"),
        (answer(JOB.pack(1, 0.0, 1, False, False), report(seconds=-1.0)), "-1.0 s"),
        (answer(JOB.pack(1, 0.0, 1, False, False), report(length=MAX_REASON + 1)), "2001 bytes"),
        (answer(JOB.pack(1, 0.0, 1, False, False), report(status=0)), "68 bytes .* 0 are left"),
        (answer(JOB.pack(1, 0.0, 0, False, True), report(0, 0)), "verdict has status 0"),
        (answer(JOB.pack(1, 0.0, 0, False, True), report(1, 3)), "index 1"),
        (bytearray(COUNT.pack(0)), "bytearray"),
        ([1, 2], "list"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_no_node_says(data: bytes, message: str) -> None:
    assert JOBS[1].payload_size(0) == 4 * 8 + 3 * 4 + 6 * 4  # [T+1] f8, [T] i4, [L] i4
    with pytest.raises(Malformed, match=message):
        unpack(data, JOBS.get)


def test_a_long_reason_is_cut_between_characters() -> None:
    long = "é" * MAX_REASON + "x"
    [done] = unpack(
        pack([Done(1, 0.0, Ended([], ChildReport(0, Status.CRASH, long, 0.0)))]), JOBS.get
    )
    assert done.ended.verdict is not None
    assert done.ended.verdict.reason == "é" * (MAX_REASON // 2)


@given(st.binary(max_size=60) | st.sampled_from([b"{}", b"[]", b"3", b'{"fingerprint": {}}']))
def test_what_a_node_says_of_itself_is_looked_at(data: bytes) -> None:
    with pytest.raises(Malformed):
        About.read(data)


def test_a_number_of_results_is_no_reason_to_wait() -> None:
    with pytest.raises(Malformed):
        unpack(struct.pack("<I", 2**32 - 1), JOBS.get)
