"""What mended answers teach: groups, their credits and their advantages, worked out by hand."""

import math

import numpy as np
import pytest

from spo_jax.program import Completion, Program, Prompt
from spo_jax.rl.updates.grpo import GrpoConfig, advantages
from spo_jax.search.credit import Credits
from spo_jax.search.groups import follower_groups, leader_groups
from spo_jax.search.rounds import Answers, Played
from spo_jax.search.sampling.mends import COPY, Attempt, Mend

ASKED = Prompt("tsp", "destroy", "x", "Write one.")
D = [Program("destroy", f"destroy {n}") for n in range(6)]
R = [Program("repair", f"repair {n}") for n in range(4)]


class Table:
    """Every pair fails by its repair's fault."""

    def verdict(self, destroy, repair):
        return Played(destroy.digest, repair.digest, "response", "crash", math.nan, role="repair")


def attempt(name, program, status=""):
    prompt = Prompt("tsp", "destroy", "x", "Write one.", turns=((name, "wrong"),))
    return Attempt(prompt, Completion(f"mended {name}"), program, status)


# Six answers: two that were right (1 and 5), one whose second answer earns 9, one whose second
# answer fails again, a copy of a parent for which another program came that earns 3, and one that
# was not asked for again.
LEADERS = Answers(
    ASKED,
    tuple(Completion(f"first {n}") for n in range(6)),
    (D[0], D[1], D[2], None, D[4], None),
    mended=(
        None,
        None,
        Mend("crash", (attempt("c", D[2]),)),
        Mend("unparsable", (attempt("d", None, "rejected"),)),
        Mend(COPY, (attempt("e", D[4]),)),
        None,
    ),
)
EARNED = Credits(np.array([1.0, 5.0, 9.0, 3.0]), np.zeros((4, 1)))
PLAYED = [D[0], D[1], D[2], D[4]]
NAN = math.nan


def groups(how):
    rows = [(R[0],)] * 4
    return leader_groups([LEADERS], PLAYED, rows, EARNED, Table(), how)


def moved(group, penalty=None):
    usable = np.ones(len(group.credits), bool)
    return advantages(group.credits, group.failed, usable, GrpoConfig(failure_penalty=penalty))


def test_the_original_stays_unpaid():
    [group] = groups("original")
    assert group.completions == LEADERS.completions
    np.testing.assert_array_equal(group.credits, [1, 5, NAN, NAN, NAN, NAN])
    # The copy was a valid program, so it has not failed.
    assert group.failed.tolist() == [False, False, True, True, False, True]
    np.testing.assert_array_equal(moved(group), [-2, 2, NAN, NAN, NAN, NAN])
    # With a penalty of 1 the failed ones earn 0; the mean of 1, 5, 0, 0, 0 is 1.2.
    np.testing.assert_allclose(moved(group, 1.0), [-0.2, 3.8, -1.2, -1.2, NAN, -1.2])


def test_the_original_inherits():
    [group] = groups("inherit")
    assert group.completions == LEADERS.completions
    np.testing.assert_array_equal(group.credits, [1, 5, 9, NAN, 3, NAN])
    assert group.failed.tolist() == [False, False, False, True, False, True]
    np.testing.assert_array_equal(moved(group), [-3.5, 0.5, 4.5, NAN, -1.5, NAN])
    np.testing.assert_allclose(moved(group, 1.0), [-2, 2, 6, -3, 0, -3])  # mean of 1 5 9 3 0 0


def test_mended_answers_are_samples_of_their_own_prompts():
    first, own = groups("sample")
    [plain] = groups("original")
    np.testing.assert_array_equal(first.credits, plain.credits)
    np.testing.assert_array_equal(first.failed, plain.failed)
    assert [c.text for c in own.completions] == ["mended c", "mended d", "mended e"]
    assert [prompt.turns for prompt in own.prompts] == [
        (("c", "wrong"),), (("d", "wrong"),), (("e", "wrong"),),
    ]  # fmt: skip
    np.testing.assert_array_equal(own.credits, [9, NAN, 3])
    assert own.failed.tolist() == [False, True, False]
    np.testing.assert_array_equal(moved(own), [3, NAN, -3])
    np.testing.assert_allclose(moved(own, 3.0), [5, -4, -1])  # of 9, 3 - 3 and 3


def test_one_mended_answer_is_compared_with_nothing():
    one = Answers(
        ASKED, LEADERS.completions[:1], (D[2],), mended=(Mend("crash", (attempt("c", D[2]),)),)
    )
    assert len(leader_groups([one], PLAYED, [(R[0],)] * 4, EARNED, Table(), "sample")) == 1


@pytest.mark.parametrize("how", ["original", "inherit", "sample"])
def test_without_mended_answers_nothing_differs(how):
    plain = Answers(ASKED, LEADERS.completions, (D[0], D[1], None, None, D[4], None))
    rows = [(R[0],)] * 4
    found = leader_groups([plain], PLAYED, rows, EARNED, Table(), how)
    [known] = leader_groups([plain], PLAYED, rows, EARNED, Table())
    assert len(found) == 1
    np.testing.assert_array_equal(found[0].credits, known.credits)
    np.testing.assert_array_equal(found[0].failed, known.failed)


def test_repairs_by_their_destroys():
    """A repair that was mended for one destroy earns by that; one whose pair fails, nothing."""

    def row(destroy, *mends):
        asked = Prompt("tsp", "repair", "x", "t", destroy=destroy)
        completions = tuple(Completion(str(n)) for n in range(len(mends)))
        return [Answers(asked, completions, tuple(m.program for m in mends), mended=mends)]

    good, other = Mend("crash", (attempt("a", R[0]),)), Mend("invalid", (attempt("b", R[1]),))
    bad = Mend("crash", (attempt("c", R[2]),))
    rows = [row(D[0], good, other), row(D[1], good, bad)]
    responses = [(R[0], R[1]), (R[0], R[2])]
    earned = Credits(np.zeros(2), np.array([[2.0, 6.0], [7.0, NAN]]))
    played = ([D[0], D[1]], responses, earned, Table())
    for how, credits, failed in (
        ("original", [[NAN, NAN], [NAN, NAN]], [[True, True], [True, True]]),
        ("inherit", [[2, 6], [7, NAN]], [[False, False], [False, True]]),
    ):
        found = follower_groups(rows, *played, how)
        np.testing.assert_array_equal([group.credits for group in found], credits)
        assert [group.failed.tolist() for group in found] == failed
    found = follower_groups(rows, *played, "sample")
    assert [len(group.prompts) for group in found] == [0, 0, 2, 2]
    np.testing.assert_array_equal([group.credits for group in found[2:]], [[2, 6], [7, NAN]])
    np.testing.assert_array_equal(moved(found[2]), [-2, 2])
    np.testing.assert_array_equal(moved(found[3]), [0, NAN])
    assert found[3].failed.tolist() == [False, True]
