"""Algorithm 1, Stackelberg Program Optimization.

`one_round` is the body of its loop, in the paper's order, with the line of the algorithm and the
equation at each step. Generator, credit, update and survivors are arguments. The loop is that of
all methods: `spo_jax.runs.discovery.loop`.

Deliberate differences from the paper's listing:

- Lines 5 to 9 are independent across destroys, so the repairs of a round are sampled together, and
  pairs are evaluated while other repairs are still being sampled.
- The update (line 13) reads nothing of cross-play (lines 14 to 17) and cross-play nothing of the
  update, so they run side by side. An error of either ends the round once the other has ended. No
  result depends on what finishes first.
- A credit scheme may ask for more pairs than the responses; they are evaluated after line 9. The
  paper's asks for none.
- A pair that an earlier round evaluated is not evaluated again: the rollouts would be the same.
- A run may start from pairs that exist (`spo_jax.search.sampling.start`); the paper's starts from
  none.
- An answer that is nearly right may go back to the model (`mend`, off in the paper's presets): see
  `spo_jax.search.sampling.mending`.
- Destroy survivors (line 16) are selected before the leader panel (line 14), as Appendix A.5 says.
- The best pair (line 11) is updated last: it may also be one that cross-play evaluated.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from spo_jax.config import Settings
from spo_jax.envs.problem import Instance
from spo_jax.program import Group, Pair, Program, Prompt, Role
from spo_jax.search.credit import pairs_asked, samples_of
from spo_jax.search.groups import follower_groups, leader_groups
from spo_jax.search.parts import Parts
from spo_jax.search.payoffs import (
    Table,
    better,
    cross_play_candidates,
    cross_play_scores,
    digests_of,
    payoff_of,
    with_asked,
)
from spo_jax.search.population import Member, PanelContext, Population, SurvivorContext
from spo_jax.search.rounds import (
    ASKED,
    Answers,
    Counts,
    CrossPlay,
    Round,
    RoundScores,
    State,
    metrics_of,
)
from spo_jax.search.sampling.sample import counts_of, distinct, fresh, sample, sample_rows, written
from spo_jax.search.sampling.start import StartPair, opening
from spo_jax.seeding import python_rng


@dataclass(frozen=True)
class Spo:
    """The method of the paper.

    start: pairs that join the populations of round 1 as parents, and the round as leaders with a
        response.
    """

    start: tuple[StartPair, ...] = ()

    def variant(self, prose: bool) -> str:
        return "Stackelberg Program Optimization"

    def rounds(self, config: Settings) -> int:
        return config.search.rounds

    def one_round(self, parts: Parts, instances: Sequence[Instance], k: int, state: State) -> Round:
        return one_round(parts, instances, k, state, self.start if k == 1 else ())


def one_round(
    parts: Parts,
    instances: Sequence[Instance],
    k: int,
    state: State,
    start: Sequence[StartPair] = (),
) -> Round:
    """Round k: a pure function of the state it starts from, given deterministic parts."""
    config = parts.config
    table = Table(parts, instances, state.payoffs)
    # Pairs that the run starts from, in round 1; the paper has none.
    opened = opening(parts, k, start, table)
    parent_destroys = (*state.destroys, *opened.leaders)
    parent_repairs = (*state.repairs, *opened.followers)

    # Lines 3-4: contexts gamma_D from P_D^(k); destroys D_i (eq:conditional-program-generation).
    rng = python_rng(config.seed, "round", k, "parents", "destroy")
    destroy_prompts = parts.prompts.contexts(
        "destroy", parent_destroys, rng, k=k, groups=config.search.group_forms
    )
    destroy_answers, failures = sample(parts, k, destroy_prompts, trial=table.first_instance)
    sampled = opened.without(fresh(destroy_answers, state, config))
    destroys = (*opened.destroys, *sampled)

    # Lines 5-8: contexts gamma_R from P_R^(k), conditioned on D_i; repairs R_j|i, and J(D_i, R_j|i)
    # of each pair (eq:pair-performance) as soon as it is sampled, in the table.
    repair_prompts = _repair_contexts(parts, k, parent_repairs, sampled)
    rows, refused = sample_rows(parts, k, repair_prompts, table)
    repair_answers = [answers for row in rows for answers in row]
    responses = [*opened.responses, *map(distinct, rows)]
    unasked = len(opened.destroys)  # rows of start pairs, which answer no prompt, come first
    rows = [*([] for _ in range(unasked)), *rows]

    classical = parts.problem.classical_destroys() if config.search.panel_classical else ()

    # Line 10, the union of responses, is `pairs`; from their J the credits C_R
    # (eq:follower-credit) and C_D (eq:leader-credit). Some credits ask for further pairs.
    pairs = [Pair(d, r) for d, row in zip(destroys, responses, strict=True) for r in row]
    slots = config.search.repairs_per_destroy
    payoff = payoff_of(
        destroys, responses, table, slots, parent_destroys, parent_repairs, classical
    )
    schemes = [parts.credit, *([parts.learning_credit] if parts.learning_credit else [])]
    credit_pairs = pairs_asked(schemes, payoff, config.search.top_responses)
    if credit_pairs:
        table.play_stage(k, credit_pairs, ASKED)
        payoff = with_asked(payoff, map(digests_of, credit_pairs), table)
    credits = learning_credits = parts.credit(payoff, top=config.search.top_responses)
    if parts.learning_credit is not None:
        learning_credits = parts.learning_credit(payoff, top=config.search.top_responses)

    # Lines 12-13: credits by generation context (eq:grpo-advantage), and the update (eq:grpo).
    evaluated = (destroys, responses, learning_credits, table)
    how = (config.learning.mended, samples_of(parts.learning_credit or parts.credit))
    copies = config.learning.copies
    groups: dict[Role, list[Group]] = {
        "destroy": leader_groups(destroy_answers, *evaluated, *how, copies=copies),
        "repair": follower_groups(rows, *evaluated, *how, destroy_answers, copies=copies),
    }
    with ThreadPoolExecutor(1) as other:
        update = other.submit(_learn, parts, groups)
        # Line 16: P_D^(k+1) from P_D^(k) and the new destroys, by C_D.
        scores = credits.selected_by.leader
        new_destroys = [Member(d, float(c), k) for d, c in zip(destroys, scores, strict=True)]
        next_destroys = _survivors(parts, k, "destroy", (*state.destroys, *new_destroys))

        # Lines 14-15: the leader panel E_D, and C_R^pop of old and new repairs against it
        # (eq:repair-population-credit).
        panel = _panel(parts, k, next_destroys, classical)
        candidates = cross_play_candidates(parent_repairs, responses, payoff, credits, config, k)
        cross_pairs = [Pair(leader, member.program) for leader in panel for member in candidates]
        table.play_stage(k, cross_pairs, "cross-play")

        # Line 17: P_R^(k+1), by C_R^pop.
        rated = cross_play_scores(candidates, panel, table, k)
        next_repairs = _survivors(parts, k, "repair", rated)

        # Line 11: the best pair so far.
        others = [] if config.search.best_from == "responses" else [*credit_pairs, *cross_pairs]
        best = better(state.best, [*pairs, *others], table, k)
        parts.observer.stage(k, "update", 0)
        metrics = update.result()

    return Round(
        number=k,
        programs=(
            *(program for each in start for program in each.programs),
            *destroys,
            *(repair for row in responses for repair in row),
            *classical,
            *panel,
            *(program for pair in credit_pairs for program in (pair.destroy, pair.repair)),
        ),
        pairs=tuple(table.played),
        failures=(*failures, *refused, *table.failures()),
        destroys=next_destroys,
        repairs=next_repairs,
        best=best,
        answers=(*destroy_answers, *repair_answers),
        groups=groups,
        scored=RoundScores(
            np.array(destroys, dtype=object), _grid(responses, payoff.utility.shape),
            payoff.utility, learning_credits.leader, learning_credits.follower,
            credits.selected_by.leader, credits.selected_by.follower,
        ),
        crossed=CrossPlay(
            np.array(panel, dtype=object), np.array([m.program for m in rated], dtype=object),
            table.matrix(panel, [member.program for member in rated]),
            np.array([member.score for member in rated]),
        ),
        classical=classical,
        asked=tuple(credit_pairs),
        counts=_counts(
            destroy_answers, repair_answers, sampled, responses[unasked:],
            payoff.utility[unasked:], table,
        ),
        metrics=written(destroy_answers, config) | written(repair_answers, config) | metrics,
    )  # fmt: skip


# --- lines 3 to 8: contexts, samples, pairs -------------------------------------------------------


def _repair_contexts(
    parts: Parts, k: int, population: Population, destroys: Sequence[Program]
) -> list[list[Prompt]]:
    """One row of repair prompts for each destroy.

    The forms start one further for each destroy, so that a budget of fewer groups than there are
    forms leaves no form out of the round.
    """
    config, prompts = parts.config, parts.prompts
    groups = config.search.repairs_per_destroy // config.search.responses
    rows = []
    for i, destroy in enumerate(destroys):
        rng = python_rng(config.seed, "round", k, "parents", "repair", i)
        row = prompts.contexts(
            "repair", population, rng, k=k, groups=groups, first=i, destroy=destroy
        )
        rows.append(row)
    return rows


# --- lines 13 to 17: the update, survivors and cross-play -----------------------------------------


def _learn(parts: Parts, groups: Mapping[Role, Sequence[Group]]) -> dict[str, float]:
    with parts.observer.working("update"):
        return metrics_of(parts.config.learning.update, parts.updater, groups)


def _survivors(parts: Parts, k: int, role: Role, candidates: Sequence[Member]) -> Population:
    config = parts.config
    rng = python_rng(config.seed, "round", k, "survivors", role)
    size, diversity = config.search.population_size, config.search.diversity
    return parts.survivors(candidates, SurvivorContext(size, diversity, k, role, rng, config))


def _panel(
    parts: Parts, k: int, destroys: Population, classical: tuple[Program, ...]
) -> tuple[Program, ...]:
    config = parts.config
    context = PanelContext(
        size=config.search.panel_evolved,
        diversity=config.search.diversity,
        round=k,
        role="destroy",
        rng=python_rng(config.seed, "round", k, "panel"),
        settings=config,
        survivors=parts.survivors,
        classical=classical,
    )
    return parts.panel(destroys, context)


# --- the record -----------------------------------------------------------------------------------


def _grid(rows: Sequence[Sequence[Program]], shape: tuple[int, ...]) -> np.ndarray:
    """[D, R] programs of some rows, "" in slots without one."""
    grid = np.full(shape, "", dtype=object)
    for own, row in zip(grid, rows, strict=True):
        own[: len(row)] = row
    return grid


def _counts(
    leaders: Sequence[Answers],
    followers: Sequence[Answers],
    destroys: Sequence[Program],
    responses: Sequence[Sequence[Program]],
    utility: np.ndarray,
    table: Table,
) -> Counts:
    """utility: [D, R] J of the responses to the sampled destroys."""
    finite = utility[np.isfinite(utility)]
    good = {
        (destroys[i].digest, repair.digest)
        for i, row in enumerate(responses)
        for j, repair in enumerate(row)
        if np.isfinite(utility[i, j])
    }
    valid = sum(
        (answers.prompt.destroy.digest, program.digest) in good
        for answers in followers
        for program in answers.programs
        if program is not None and answers.prompt.destroy is not None
    )
    return counts_of(
        leaders,
        followers,
        table,
        destroys=len(destroys),
        repairs=sum(len(row) for row in responses),
        valid_repairs=valid,
        utilities=finite.tolist(),
    )
