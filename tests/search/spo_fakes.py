"""Parts of a discovery that are cheap and fully known, and a script that can be killed anywhere.

As a script: `spo_fakes.py FOLDER ROUNDS [MOMENT]` runs or resumes a discovery with these parts in
FOLDER, and kills itself (SIGKILL) at the moment named: "ROUND:STAGE" (a stage of the loop),
"ROUND:sql:TABLE" (inside the transaction), "ROUND:committed" (before best.py is written) or
"ROUND:export" (in the middle of writing best.py).
"""

import hashlib
import os
import random
import re
import signal
import sys

import numpy as np

from spo_jax.config import Settings
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.jobs.operators import AdaptiveRuns
from spo_jax.envs.run.rollouts import Refusal, Rollouts, Status
from spo_jax.generator import Generator as BaseGenerator
from spo_jax.program import Completion, Pair, Program
from spo_jax.runs.discovery.loop import discover
from spo_jax.search.credit import Payoff
from spo_jax.search.parts import Parts
from spo_jax.search.population import Member
from spo_jax.search.rounds import Observer, Updater

CODE = {
    "destroy": "def destroy(dist, current_tour, steps_since_improvement, rng):\n"
    "    return current_tour[{n}:], current_tour[:{n}]\n",
    "repair": "def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):\n"
    "    return partial_tour + removed_nodes[:{n}] + removed_nodes[{n}:]\n",
}
WORDS = ["radial", "random", "worst", "string", "shaw", "regret", "greedy", "noise", "blink"]


def number(*parts):
    """A stable number in [0, 1)."""
    digest = hashlib.sha256("|".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def answer(role, n, words="radial"):
    code = CODE[role].format(n=n)
    return Completion(f"STRATEGY: {words} number {n}.\nCODE:\n```python\n{code}```")


class Generator(BaseGenerator):
    """Programs with a number in them, now and then broken, now and then repeated."""

    def __init__(self, numbers=1000, broken=0.1):
        self.numbers, self.broken = numbers, broken
        self.calls = []

    def generate(self, prompts, n, seed):
        self.calls.append((list(prompts), n, seed))
        rng = random.Random(seed)
        return [tuple(self.sample(prompt, rng) for _ in range(n)) for prompt in prompts]

    def sample(self, prompt, rng):
        if rng.random() < self.broken:
            return Completion("no idea")
        return answer(prompt.role, rng.randrange(self.numbers), " ".join(rng.sample(WORDS, 3)))


class Evaluator:
    """Utilities from digests. Programs with a number that `refuse` accepts fail at the gate.

    verdict(pair) -> (Status, utility): utilities are even multiples of 2^-10, so that they survive
    the division of a cost by its start exactly.
    """

    def __init__(self, verdict=None, refuse=lambda n: n % 17 == 0):
        self.verdict = verdict or default_verdict
        self.refuse = refuse
        self.batches, self.adapted = [], []

    def check(self, programs):
        seventeen = Refusal(Status.REJECTED, "seventeen")
        return [seventeen if self.refuse(number_in(p)) else None for p in programs]

    def run(self, pairs, instances, seeds=(0, 1), steps=100, *, fail_fast=True, progress=None):
        self.batches.append(list(pairs))
        shape = (len(pairs), len(instances), len(seeds))
        best_cost = np.full((*shape, steps + 1), np.nan)
        status = np.zeros(shape, np.int8)
        reason = np.full(shape, "", object)
        for p, pair in enumerate(pairs):
            verdict, utility = self.verdict(pair)
            if verdict == Status.OK:
                best_cost[p] = 1024.0
                best_cost[p, ..., -1] = 1024.0 - 1024.0 * utility
            else:
                status[p], reason[p] = verdict, f"because {verdict.label}"
            if progress is not None:
                progress((p + 1) * shape[1] * shape[2], shape[0] * shape[1] * shape[2])
        none = np.zeros((*shape, 0))
        role = np.full(shape, "", object)
        return Rollouts(best_cost, none, status, np.ones(shape), none, reason, role)

    def adaptive(
        self, destroys, repairs, instances, seeds, steps, rules, *, carry=True, progress=None
    ):
        """Every pair is drawn alike; a failing pair fails, the outcomes of others are drawn."""
        self.adapted.append((list(destroys), list(repairs), list(seeds), steps, rules))
        shape = (len(instances), len(seeds))
        drawn = np.zeros((*shape, steps, 2), np.int16)
        outcomes = np.zeros((*shape, steps), np.int8)
        fine = [[self.verdict(Pair(d, r))[0] == Status.OK for r in repairs] for d in destroys]
        for i, s in np.ndindex(shape):
            rng = random.Random(1000 * i + seeds[s])
            for t in range(steps):
                d, r = rng.randrange(len(destroys)), rng.randrange(len(repairs))
                drawn[i, s, t] = d, r
                outcomes[i, s, t] = rng.randint(1, 5) if fine[d][r] else 0
        costs = np.ones((1, *shape, steps + 1))
        none, blank = np.zeros((1, *shape, 0)), np.full((1, *shape), "", object)
        status = np.zeros((1, *shape), np.int8)
        rollouts = Rollouts(costs, none, status, np.ones(status.shape), none, blank, blank)
        return AdaptiveRuns(rollouts, drawn, outcomes)


def number_in(program):
    found = re.search(r"\[:?(\d+)", program.source)
    return int(found[1]) if found else 1  # a program of ours, such as a seed


def default_verdict(pair):
    draw = number("verdict", pair.destroy.digest, pair.repair.digest)
    if draw < 0.1:
        return Status.CRASH, None
    if draw < 0.15:
        return Status.TIMEOUT, None
    return Status.OK, round(512 * draw) / 1024


class Learner(Updater):
    """Counts what it has seen, keeps it, and reports it: a resume that forgets it shows."""

    def __init__(self):
        self.total = 0.0

    def update(self, groups):
        for role in ("destroy", "repair"):
            self.total += sum(float(np.nansum(group.credits)) for group in groups[role])
        return {"total": self.total}

    def save(self, folder, number):
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.txt").write_text(repr(self.total))

    def restore(self, folder, number):
        self.total = float((folder / f"{number}.txt").read_text())


def small(**changes):
    settings = {"rounds": 4, "responses": 2, "repairs_per_destroy": 4, "population_size": 4,
                "panel_evolved": 2, "cross_play_candidates": 3, "size": 6, "instances": 2,
                "steps": 3, "workers": 1, "finalists": 0, "generator": "grammar"}  # fmt: skip
    return Settings.make(**(settings | changes))


def play(config=None, *, state=None, **parts):
    """A discovery with fakes: (rounds, final state, parts)."""
    config = config or small()
    parts = {"evaluator": Evaluator(), "generator": Generator()} | parts
    parts = Parts(config, get_problem("tsp"), **parts)
    rounds = []
    end = discover(parts, state, rounds.append)
    return rounds, end, parts


def fingerprint(rounds):
    return [
        (r.programs, [p for p in r.pairs if p.status == "ok"], r.destroys, r.repairs, r.best,
         r.counts, dict(r.metrics), r.failures)
        for r in rounds
    ]  # fmt: skip


def member(n, score, words="radial", role="repair", condition=""):
    source = answer(role, n).text.split("```python\n")[1].split("```")[0]
    return Member(Program(role, source, words, condition=condition), score, 1)


def payoff_with(utility, destroys, repairs, *rest, **options):
    """A Payoff of programs that are given by any text as their source; "" is no program."""

    def program(role, text):
        return Program(role, text) if isinstance(text, str) and text else text or None

    rows = tuple(tuple(program("repair", text) for text in row) for row in repairs)
    return Payoff(utility, tuple(program("destroy", d) for d in destroys), rows, *rest, **options)


def quick_page(monkeypatch):
    """The pages of runs play the best pair for fewer steps, and fewer programs by state."""
    for name, value in (("STEPS", 6), ("DRAWS", 2), ("MOST_PROGRAMS", 2)):
        monkeypatch.setattr(f"spo_jax.runs.report.played.{name}", value)


class Stop(Observer):
    """Ends a run at a stage of a round, as Ctrl-C does."""

    def __init__(self, number: int, name: str):
        self.at = (number, name)

    def stage(self, number: int, name: str, total: int) -> None:
        if (number, name) == self.at:
            raise KeyboardInterrupt


# --- the script -----------------------------------------------------------------------------------


class Killer(Observer):
    def __init__(self, moment):
        self.moment = moment
        self.number = 0

    def now(self, name):
        if f"{self.number}:{name}" == self.moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def stage(self, number, name, total):
        self.number = number
        self.now(name)


def main(folder, rounds, moment=""):
    from spo_jax.runs.database.store import Store
    from spo_jax.runs.folders import CHECKPOINTS

    config = small(rounds=int(rounds))
    killer, learner = Killer(moment), Learner()
    if not os.path.exists(folder):
        Store.create(folder, {"config": config.flat()}).__exit__()
    replace = os.replace

    def watched(source, target):
        killer.now("export")
        replace(source, target)

    def watch(statement):
        if statement.startswith("INSERT"):
            killer.now("sql:" + statement.split(" INTO ")[1].split()[0])

    with Store.reopen(folder) as store:
        store._connection.set_trace_callback(watch)
        state = store.state()
        if state.round:
            learner.restore(store.path / CHECKPOINTS, state.round)
        store.export_best(state.best)
        os.replace = watched

        def commit(done):
            learner.save(store.path / CHECKPOINTS, done.number)
            killer.now("saved")
            store.commit(done)
            killer.now("committed")
            store.export_best(done.best)

        parts = Parts(config, get_problem("tsp"), Evaluator(), Generator(),
                      updater=learner, observer=killer)  # fmt: skip
        discover(parts, state, commit)


if __name__ == "__main__":
    main(*sys.argv[1:])
