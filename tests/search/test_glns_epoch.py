"""An epoch of G-LNS, recomputed from what its adaptive searches came to."""

import json
from collections import Counter

import numpy as np
import pytest
from method_fakes import run
from spo_fakes import Evaluator, Generator, default_verdict

EASY = {"generations": 4, "iterations": 12, "retries": 0}


def digests(population):
    return [member.program.digest for member in population]


class Kept(Evaluator):
    """Keeps what its adaptive searches came to, and how many steps each evaluation had.

    The first step of each search fails, whatever was drawn.
    """

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.searches, self.steps = [], []

    def adaptive(self, destroys, repairs, *args, **options):
        found = super().adaptive(destroys, repairs, *args, **options)
        found.outcomes[..., 0] = 0
        self.searches.append((destroys, repairs, found))
        return found

    def run(self, pairs, instances, seeds=(0, 1), steps=100, **options):
        self.steps.append(steps)
        return super().run(pairs, instances, seeds, steps, **options)


def test_what_becomes_of_an_epochs_scores():
    """Who survives, what the next joint pair comes from, and which pair is evaluated: all from the
    outcomes of the searches. Answers that fail leave fewer operators, of which three survive.
    """
    evaluator = Kept(default_verdict, refuse=lambda n: False)
    generator = Generator(numbers=5000, broken=0.2)
    rounds, _, _ = run(
        "g-lns", pairs=400, evaluator=evaluator, generator=generator, method_settings=EASY
    )
    played, sizes, evaluated, failures, again = set(), set(), 0, 0, 0
    for done, (destroys, repairs, runs) in zip(rounds, evaluator.searches, strict=True):
        sums, last, failed = Counter(), Counter(), set()
        for i, s, t in np.ndindex(runs.outcomes.shape):
            d, r = runs.drawn[i, s, t]
            pair, outcome = (destroys[d].digest, repairs[r].digest), runs.outcomes[i, s, t]
            score = (0.1, 0.1, 0.1, 0.8, 1.2, 1.5)[outcome]
            sums[pair] += score
            last[pair] += score if s == 3 else 0
            failed |= {pair} if outcome == 0 else set()
        alive = []
        for place, (programs, population) in enumerate(
            ((destroys, done.destroys), (repairs, done.repairs))
        ):
            of = {p.digest: sum(v for k, v in sums.items() if k[place] == p.digest)
                  for p in programs}  # fmt: skip
            best = sorted(of, key=lambda digest: -of[digest])[:3]
            assert digests(population) == best
            assert [m.score for m in population] == pytest.approx([of[d] for d in best])
            alive.append(best)
            sizes.add(len(programs))
        left = [(d, r) for d in alive[0] for r in alive[1]]
        assert tuple(json.loads(done.note)) == max(left, key=last.__getitem__)
        fresh = [pair for pair in left if pair in sums and pair not in failed | played]
        own = [(e.pair.destroy.digest, e.pair.repair.digest) for e in done.individuals]
        assert own == ([max(fresh, key=sums.__getitem__)] if fresh else [])
        top = max(left, key=sums.__getitem__)
        again, failures = again + (top in played), failures + (top in failed)
        played |= set(own)
        evaluated += len(own)
    assert {3, 4, 5} >= sizes > {5}
    assert min(evaluated, failures, again) > 3
    assert set(evaluator.steps) == {3}  # of the check of a new operator, and of J here
    # New operators come from survivors of the epoch before, not from each other.
    for k, done in enumerate(rounds[1:]):
        before = {*digests(rounds[k].destroys), *digests(rounds[k].repairs)}
        known = {p.digest for each in rounds[: k + 1] for p in each.programs}
        new = [p for p in done.programs if p.digest not in known]
        assert {parent for program in new for parent in program.parents} <= before
