"""What tests of the baselines share: pairs with a known J, runs of a method, a writer of prose."""

import random
import re
from dataclasses import astuple, replace

from spo_fakes import Evaluator, Generator, answer, number_in, small

from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.rollouts import Status
from spo_jax.program import ROLES, Completion, Pair, Program
from spo_jax.runs.discovery.loop import discover
from spo_jax.search.method import method_of
from spo_jax.search.parts import Parts
from spo_jax.search.rounds import Individual


def program(role, n, words="radial"):
    source = answer(role, n).text.split("```python\n")[1].split("```")[0]
    return Program(role, source, words)


def individual(n, utility, k=1, operator="", place=0, scores=None):
    pair = Pair(program("destroy", n), program("repair", n))
    return Individual(pair, utility, k, operator, place, (utility,) if scores is None else scores)


class Writer(Generator):
    """Answers with programs, as each method's language wants them, and with prose on request."""

    writes_prose = True

    def sample(self, prompt, rng):
        if prompt.form == "hsevo-ranges":
            return Completion("1: 2 to 30\n2: 5, 1\nand no more")
        if prompt.form.endswith(("reflection", "thought")):
            words = rng.choice(("remove strings", "insert by regret", "stay local"))
            return Completion(f"<think>hm</think> {words} in\n{prompt.form}")
        if prompt.answer == "joint" and rng.random() >= self.broken:
            both = [program(role, rng.randrange(self.numbers)).source for role in ROLES]
            return Completion("Here:\n```python\n" + "\n\n".join(both) + "```")
        found = super().sample(prompt, rng)
        if prompt.answer == "labels" or "CODE:" not in found.text:
            return found
        sentence, _, code = found.text.removeprefix("STRATEGY: ").partition("\nCODE:\n")
        if prompt.answer == "braces":
            return Completion(f"First some thoughts.\n{{{sentence}}}\n{code}")
        numbers = re.findall(rf"{prompt.role}_v(\d+)", prompt.text)
        if not numbers:
            return Completion(code)
        asked = max(numbers, key=int)
        return Completion(code.replace(f"def {prompt.role}(", f"def {prompt.role}_v{asked}("))


class Streaming(Generator):
    """The same answers in parts of one prompt each."""

    def stream(self, prompts, n, seed):
        for place, group in enumerate(self.generate(prompts, n, seed)):
            yield {place: group}


def by_numbers(pair):
    """J is told by the numbers in the two programs; the pair of 13 crashes."""
    d, r = number_in(pair.destroy), number_in(pair.repair)
    if 13 in (d, r):
        return Status.CRASH, None
    return Status.OK, (d % 32 + r % 32) / 128


def run(method, *, state=None, generator=None, evaluator=None, **settings):
    """A run of a method with fakes: (rounds, final state, parts)."""
    config = small(method=method, **settings)
    parts = Parts(config, get_problem("tsp"), evaluator or Evaluator(), generator or Generator())
    rounds = []
    end = discover(parts, state, rounds.append, method_of(config))
    return rounds, end, parts


def everything(rounds):
    """What must be equal in equal runs; the order of failures depends on the generator's parts."""
    return [_contents(done) for done in rounds]


def _contents(done):
    pairs = tuple(replace(p, utility=0.0) if p.utility != p.utility else p for p in done.pairs)
    failures = sorted(done.failures, key=astuple)
    return (
        done.number, done.programs, pairs, failures, done.destroys, done.repairs, done.best,
        done.counts, dict(done.metrics), done.individuals, done.note,
    )  # fmt: skip


def rng(seed=0):
    return random.Random(seed)
