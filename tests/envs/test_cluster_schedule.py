"""Which node does which job: every job is done once, whatever becomes of the nodes."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spo_jax.envs.run.cluster.schedule import AHEAD, LOSSES, Schedule


def everything(job: int) -> bool:
    return True


@pytest.mark.long
@given(st.data())
def test_each_job_is_done_once_in_any_order_of_arrivals_deaths_and_hangs(
    data: st.DataObject,
) -> None:
    """Against a plain count. A stale ticket is one of a node that was lost: it still answers."""
    jobs = list(range(data.draw(st.integers(0, 30), "jobs")))
    unwanted = data.draw(st.sets(st.sampled_from(jobs)) if jobs else st.just(set()), "unwanted")
    schedule: Schedule[int] = Schedule(jobs)
    due = Counter(jobs)
    settled: Counter[int] = Counter()
    held: dict[str, set[int]] = {}
    stale: list[tuple[str, int]] = []
    fresh = 0

    def wanted(job: int) -> bool:
        if job in unwanted:
            settled[job] += 1
        return job not in unwanted

    for _ in range(data.draw(st.integers(0, 60), "events")):
        what = data.draw(st.sampled_from(["join", "deal", "done", "leave", "stale", "add"]))
        node = data.draw(st.sampled_from(sorted(held))) if held else None
        if what == "join":
            fresh += 1
            schedule.join(f"n{fresh}", data.draw(st.integers(1, 8)))
            held[f"n{fresh}"] = set()
        elif what == "add":
            more = len(due) + 100
            due[more] += 1
            schedule.add([more])
        elif what == "stale" and stale:
            assert schedule.done(*data.draw(st.sampled_from(stale)), 1.0) is None
        elif node is not None and what == "deal":
            for ticket, job in schedule.deal(node, wanted):
                assert schedule.job(node, ticket) == job
                held[node].add(ticket)
        elif node is not None and what == "done" and held[node]:
            ticket = data.draw(st.sampled_from(sorted(held[node])))
            job = schedule.done(node, ticket, data.draw(st.floats(0.0, 100.0)))
            assert job is not None
            settled[job] += 1
            held[node].remove(ticket)
            stale.append((node, ticket))
        elif node is not None and what == "leave":
            stale += [(node, ticket) for ticket in held[node]]
            settled.update(schedule.leave(node))
            del held[node]
        assert schedule.left == sum((due - settled).values())
    schedule.join("last", 3)
    while schedule.left:
        for ticket, _ in schedule.deal("last", wanted):
            held.setdefault("last", set()).add(ticket)
        for node in held:
            for ticket in sorted(held[node]):
                if (job := schedule.done(node, ticket, 0.1)) is not None:
                    settled[job] += 1
            held[node].clear()
    assert settled == due


def test_a_job_with_which_many_nodes_are_lost_is_given_up() -> None:
    schedule: Schedule[str] = Schedule(["poison", "1", "2", "3"])
    given_up = []
    for k in range(LOSSES):
        schedule.join(f"n{k}", 1)
        (_, job), *others = schedule.deal(f"n{k}", lambda job: True)
        assert job == "poison"  # what was lost goes first
        for ticket, _ in others:
            assert schedule.done(f"n{k}", ticket, 100.0) is not None
        given_up += schedule.leave(f"n{k}")
    assert given_up == ["poison"]
    assert schedule.left == 0


def test_batches_follow_the_measured_time_of_a_job() -> None:
    for seconds, each in ((AHEAD, 2), (AHEAD / 9, 10), (100 * AHEAD, 2)):
        schedule: Schedule[int] = Schedule(range(1000))
        schedule.join("n", 4)
        schedule.join("m", 4)
        first = schedule.deal("n", everything)
        assert len(first) == 8  # nothing is measured yet: what it can run, and as much again
        for ticket, _ in first:
            schedule.done("n", ticket, seconds)
        dealt = len(schedule.deal("n", everything))
        assert dealt == (5 if seconds > AHEAD else 4 * each)
        assert schedule.deal("n", everything) == []  # it has enough


def test_nobody_has_more_than_its_share_of_what_is_left() -> None:
    schedule: Schedule[int] = Schedule(range(10))
    schedule.join("large", 6)
    schedule.join("small", 2)
    for ticket, _ in schedule.deal("small", everything)[:1]:
        schedule.done("small", ticket, 1e-6)  # as if jobs were short
    # Of the 10 the small one had 3 and did 1; of the 9 that are left the large one has 6 / 8.
    assert len(schedule.deal("large", everything)) == 7
    schedule.deal("small", everything)
    assert schedule.out("small") + schedule.out("large") == schedule.left
    assert schedule.out("small") <= 3
