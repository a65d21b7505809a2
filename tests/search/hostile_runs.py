"""Runs of fakes, written by somebody who would like to break out of a page."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import spo_fakes
from spo_fakes import CODE, Evaluator, small

from spo_jax.envs.problems import get_problem
from spo_jax.program import Completion
from spo_jax.search.parts import Parts
from spo_jax.search.rounds import Failure
from spo_jax.search.runs.run import Run, load_run
from spo_jax.search.runs.store import Store
from spo_jax.search.spo import discover

BAD = "<script>alert(1)</script><img src=x onerror=alert(2)>"
HIDDEN = "\u202eevil\u2066\u200b\x07"


class Hostile(spo_fakes.Generator):
    """Answers whose strategies and comments try to break out of the page."""

    def sample(self, prompt: Any, rng: Any) -> Completion:
        if rng.random() < self.broken:
            return Completion(f"no idea {BAD}{HIDDEN}")
        n = rng.randrange(self.numbers)
        code = (
            CODE[prompt.role].format(n=n) + f"# </pre></script>{BAD} \"' {{{{ 7 * 7 }}}} \u202e\n"
        )
        return Completion(f"STRATEGY: {BAD} number {n}.\nCODE:\n```python\n{code}```")


def made(path: Path, parts: dict[str, Any] | None = None, **changes: Any) -> Run:
    """A run of the fakes in a folder."""
    config = small(**changes)
    with Store.create(path, {"config": config.flat(), "preset": "smoke"}) as store:
        own = {"evaluator": Evaluator(), "generator": Hostile(broken=0.2)} | (parts or {})

        def commit(done: Any) -> None:
            bad = Failure("destroy", "crash", f"{BAD} line 7 {HIDDEN}", text=BAD)
            store.commit(replace(done, failures=(*done.failures, bad)))

        discover(Parts(config, get_problem("tsp"), **own), store.state(), commit)
    return load_run(path)
