"""Best-of-N: pairs from the initialization prompt, without parents; a baseline for evolution."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from spo_jax.config import Settings
from spo_jax.envs.problem import Instance
from spo_jax.peers.pairs import Budget, Request, best_of, generate, members, record
from spo_jax.search.parts import Parts
from spo_jax.search.payoffs import Table
from spo_jax.search.rounds import Round, State
from spo_jax.search.writing.prompts import INITIALIZATION


@dataclass(frozen=True)
class BestOfN:
    """As many rounds as SPO's; the result is the best of all pairs."""

    def variant(self, prose: bool) -> str:
        return "best-of-N: every pair from the initialization prompts, no parents"

    def rounds(self, config: Settings) -> int:
        return _budget(config).rounds

    def one_round(self, parts: Parts, instances: Sequence[Instance], k: int, state: State) -> Round:
        table = Table(parts, instances, state.payoffs)
        request = Request(INITIALIZATION, operator="initialization")
        new = generate(parts, k, table, [request], n=_budget(parts.config).of(k))
        best = best_of((*state.individuals, *new.individuals))
        return record(parts, k, state, table, [new], members([best] if best else []))


def _budget(config: Settings) -> Budget:
    each = math.ceil(config.search.nominal_pairs / config.search.rounds)
    return Budget(config.search.nominal_pairs, each, each)
