"""What runs side by side in a round, with the same result whatever takes how long."""

import threading
import time

import pytest
from spo_fakes import Evaluator, Generator, Learner, fingerprint, play, small

from spo_jax.errors import InputError
from spo_jax.search.rounds import Observer, Updater

# --- the update and cross-play --------------------------------------------------------------------


def test_a_round_ends_with_the_error_of_either_side():
    class Broken(Updater):
        def update(self, groups):
            raise ArithmeticError("no number")

    with pytest.raises(ArithmeticError, match="no number"):
        play(small(rounds=1), updater=Broken())

    finished = threading.Event()

    class Slow(Updater):
        def update(self, groups):
            time.sleep(0.2)
            finished.set()
            return {}

    def panel(destroys, context):
        raise LookupError("no panel")

    with pytest.raises(LookupError, match="no panel"):
        play(small(rounds=1), updater=Slow(), panel=panel)
    assert finished.is_set()  # nothing is left running


class Late(Learner):
    def update(self, groups):
        time.sleep(0.1)
        return super().update(groups)


def test_what_finishes_first_changes_nothing():
    fast, slow = play(small(rounds=2), updater=Learner())[0], play(small(rounds=2), updater=Late())
    assert fingerprint(fast) == fingerprint(slow[0])


# --- generators that give their answers part by part ----------------------------------------------


class Stream(Generator):
    """The answers of `Generator`, two prompts at a time, the last ones first."""

    def __init__(self, pause=0.0, **options):
        super().__init__(**options)
        self.pause = pause
        self.parts = []

    def stream(self, prompts, n, seed):
        whole = list(enumerate(self.generate(prompts, n, seed)))
        while whole:
            time.sleep(self.pause)
            part = dict(whole[-2:])
            del whole[-2:]
            self.parts.append(len(part))
            yield part


def unordered(rounds):
    """What a round is, but for the order in which its pairs were played."""
    return [
        (r.programs, r.destroys, r.repairs, r.best, r.counts, dict(r.metrics), r.tally(),
         sorted(map(repr, r.failures)), sorted(map(repr, r.pairs)))
        for r in rounds
    ]  # fmt: skip


@pytest.mark.long
def test_parts_are_evaluated_as_they_come_and_change_nothing():
    config = small(rounds=3)
    whole = play(config, updater=Learner(), generator=Generator(numbers=40))[0]
    rounds, _, parts = play(config, updater=Learner(), generator=Stream(numbers=40))
    assert unordered(rounds) == unordered(whole)
    assert len(parts.generator.parts) > 10
    assert len(parts.evaluator.batches) > 10
    late = play(config, updater=Late(), generator=Stream(0.005, numbers=40))[0]
    assert fingerprint(late) == fingerprint(rounds)  # whatever takes how long


def test_a_part_is_made_while_the_last_one_is_evaluated():
    second = threading.Event()

    class Watched(Stream):
        def stream(self, prompts, n, seed):
            for number, part in enumerate(super().stream(prompts, n, seed), 1):
                if prompts[0].role == "repair" and number == 2:
                    second.set()
                yield part

    class Patient(Evaluator):
        def run(self, *args, **options):
            assert second.wait(20)  # the first pairs are not done before the second part is made
            return super().run(*args, **options)

    play(small(rounds=1), generator=Watched(), evaluator=Patient())


def test_progress_counts_answers_that_are_settled():
    seen = []

    class Watch(Observer):
        def stage(self, number, name, total):
            seen.append((name, total, []))

        def advance(self, done):
            seen[-1][2].append(done)

    play(small(rounds=1), generator=Stream(), observer=Watch())
    stages = {name: (total, steps) for name, total, steps in seen}
    assert list(stages) == ["destroy", "repair", "cross-play", "update"]
    for name in ("destroy", "repair", "cross-play"):
        total, steps = stages[name]
        assert steps == sorted(steps)
        assert steps[-1] == total > 0


@pytest.mark.parametrize("error", [InputError("too long"), KeyboardInterrupt()])
def test_an_error_among_the_parts_reaches_the_caller(error):
    class Broken(Stream):
        def stream(self, prompts, n, seed):
            yield from super().stream(prompts[:2], n, seed)
            raise error

    with pytest.raises(type(error)):
        play(small(rounds=1), generator=Broken())


def test_parts_that_leave_a_prompt_out_are_named():
    class Lazy(Stream):
        def stream(self, prompts, n, seed):
            yield from super().stream(prompts[:-1], n, seed)

    with pytest.raises(InputError, match=r"the generator answered 5 prompts with .*it must give 2"):
        play(generator=Lazy())
