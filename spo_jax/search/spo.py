"""Algorithm 1, Stackelberg Program Optimization.

`discover` is the loop and `one_round` its body, in the paper's order, with the line of the
algorithm and the equation at each step. Generator, credit, update and survivors are arguments.

Deliberate differences from the paper's listing:

- Lines 5 to 9 are independent across destroys, so the repairs of a round are sampled together, and
  pairs are evaluated while other repairs are still being sampled.
- The update (line 13) reads nothing of cross-play (lines 14 to 17) and cross-play nothing of the
  update, so they run side by side. An error of either ends the round once the other has ended. No
  result depends on what finishes first.
- A credit scheme may ask for more pairs than the responses; they are evaluated after line 9. The
  paper's asks for none.
- A pair that an earlier round evaluated is not evaluated again: the rollouts would be the same.
- Responses may race (`racing`, off in the paper's presets): see `spo_jax.search.heats`.
- A run may start from pairs that exist (`spo_jax.search.start`); the paper's starts from none.
- The best programs may be measured again before survivors are chosen (`remeasure`, off in the
  paper's presets): see `spo_jax.search.remeasure`.
- An answer that is nearly right may go back to the model (`mend`, off in the paper's presets): see
  `spo_jax.search.mending`.
- Destroy survivors (line 16) are selected before the leader panel (line 14), as Appendix A.5 says.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice

import numpy as np

from spo_jax.config import Settings
from spo_jax.envs.problem import Instance
from spo_jax.program import Group, Pair, Program, Prompt, Role
from spo_jax.search.candidates import counts_of, distinct, play_responses, sample, written
from spo_jax.search.credit import pairs_asked
from spo_jax.search.groups import follower_groups, leader_groups
from spo_jax.search.heats import Heats
from spo_jax.search.instances import round_instances, training_instances
from spo_jax.search.methods import round_of, rounds_in
from spo_jax.search.parts import Method, Parts
from spo_jax.search.payoffs import (
    Table,
    cross_play_candidates,
    payoff_of,
    with_asked,
)
from spo_jax.search.population import Member, PanelContext, Population, SurvivorContext
from spo_jax.search.remeasure import Elites
from spo_jax.search.rounds import Answers, Counts, Round, Scored, State, metrics_of
from spo_jax.search.start import StartPair, opening
from spo_jax.seeding import python_rng


def discover(
    parts: Parts,
    state: State | None = None,
    commit: Callable[[Round], None] = lambda done: None,
    method: Method | None = None,
    instances: Sequence[Instance] = (),
    start: Sequence[StartPair] = (),
    over: Callable[[], bool] | None = None,
) -> State:
    """Run Algorithm 1 from `state` (by default the start) to the last round of the config.

    commit: called with each finished round, before the next one starts; a run that is stopped in
        between goes on from the state that was committed, and ends in the same result.
    method: another method, whose rounds take the place of Algorithm 1's.
    instances: to train on, by default those that the config names.
    start: pairs that round 1 of Algorithm 1 starts from.
    over: asked before each round whether to end, in place of counting the config's rounds.
    Returns the state after the last round: the best pair and both populations.
    """
    config, state = parts.config, state or State()
    instances = instances or training_instances(config, parts.problem)
    if config.search.remeasure and method is None:
        round_instances(config, parts.problem, 1)  # refuses what has none
    last = rounds_in(method, config) if method else config.search.rounds
    while not (over() if over else state.round >= last):
        k = state.round + 1
        done = (
            round_of(method, parts, instances, k, state)
            if method
            else one_round(parts, instances, k, state, start if k == 1 else ())
        )
        commit(done)
        state = state.after(done)
        parts.observer.finished(done)
    return state


def one_round(
    parts: Parts,
    instances: Sequence[Instance],
    k: int,
    state: State,
    start: Sequence[StartPair] = (),
) -> Round:
    """Round k: a pure function of the state it starts from, given deterministic parts.

    start: pairs that join the populations as parents, and the round as leaders with a response.
    """
    config, look = parts.config, parts.observer
    elites = Elites(parts, instances, k, state)
    table = elites.table
    begun = opening(parts, k, start, table)
    old_destroys = (*state.destroys, *begun.leaders)
    old_repairs = (*state.repairs, *begun.followers)

    # Lines 3-4: contexts gamma_D from P_D^(k); destroys D_i (eq:conditional-program-generation).
    rng = python_rng(config.seed, "round", k, "parents", "destroy")
    asked = parts.prompts.contexts(
        "destroy", old_destroys, rng, k=k, groups=config.search.group_forms
    )
    leaders, failures = sample(parts, k, asked, trial=table.first_instance)
    sampled = begun.without(_fresh(distinct(leaders), state, config))

    # Lines 5-8: contexts gamma_R from P_R^(k), conditioned on D_i; repairs R_j|i, and J(D_i, R_j|i)
    # of each pair (eq:pair-performance) as soon as it is sampled.
    prompts = _repair_contexts(parts, k, old_repairs, sampled)
    flat = [prompt for row in prompts for prompt in row]
    heats = None
    if parts.racing is not None:
        heats = Heats(parts, table, instances, len(prompts[0]) if prompts else 0)
    play = heats or partial(play_responses, table)
    answers, refused = sample(parts, k, flat, play, trial=table.first_instance)
    first = len(begun.destroys)  # rows of start pairs, which answer no prompt, come first
    followers = [*([] for _ in range(first)), *_in_rows(answers, prompts)]
    destroys = (*begun.destroys, *sampled)
    responses = [*begun.responses, *(distinct(row) for row in followers[first:])]

    elites.responded(destroys, responses)
    classical = parts.problem.classical_destroys() if config.search.panel_classical else ()

    # Line 10, the union of responses, is `pairs`; from their J the credits C_R
    # (eq:follower-credit) and C_D (eq:leader-credit). Some credits ask for further pairs.
    pairs = [Pair(d, r) for d, row in zip(destroys, responses, strict=True) for r in row]
    slots = max(config.search.repairs_per_destroy, *map(len, begun.responses), 0)
    payoff = payoff_of(destroys, responses, table, slots, old_destroys, old_repairs, classical)
    schemes = [parts.credit, *([parts.learning_credit] if parts.learning_credit else [])]
    wanted = pairs_asked(schemes, payoff, config.search.top_responses)
    if wanted:
        _play(parts, k, wanted, "credit", table)
        payoff = with_asked(payoff, wanted, table)
    credits = parts.credit(payoff, top=config.search.top_responses)
    learned_from = credits
    if parts.learning_credit is not None:
        learned_from = parts.learning_credit(payoff, top=config.search.top_responses)

    # Lines 12-13: credits by generation context (eq:grpo-advantage), and the update (eq:grpo).
    mended, played = config.learning.mended, (destroys, responses, learned_from, table)
    groups: dict[Role, list[Group]] = {
        "destroy": leader_groups(leaders, *played, mended),
        "repair": follower_groups(followers, *played, mended),
    }
    with ThreadPoolExecutor(1) as other:
        learned = other.submit(_learn, parts, groups)
        # Line 16: P_D^(k+1) from P_D^(k) and the new destroys, by C_D.
        scores = credits.selected_by.leader
        scored = [Member(d, float(c), k) for d, c in zip(destroys, scores, strict=True)]
        candidates = elites.destroys((*state.destroys, *scored))
        next_destroys = _survivors(parts, k, "destroy", candidates)

        # Lines 14-15: the leader panel E_D, and C_R^pop of old and new repairs against it
        # (eq:repair-population-credit).
        panel = _panel(parts, k, next_destroys, classical)
        rivals = cross_play_candidates(old_repairs, responses, payoff, credits, config, k)
        crossed = [Pair(leader, member.program) for leader in panel for member in rivals]
        _play(parts, k, crossed, "cross-play", table)

        # Line 17: P_R^(k+1), by C_R^pop.
        rated = elites.repairs(rivals, panel)
        next_repairs = _survivors(parts, k, "repair", rated)

        # Line 11: the best pair so far, which what is measured again may change.
        others = [*wanted, *crossed]
        if config.search.best_from == "responses":
            others = [pair for pair in others if table.settled_late(pair)]
        best = elites.best([*pairs, *others])
        look.stage(k, "update", 0)
        metrics = learned.result()

    return Round(
        number=k,
        programs=(
            *(program for each in start for program in each.programs),
            *destroys,
            *(repair for row in responses for repair in row),
            *panel,
            *(program for pair in wanted for program in (pair.destroy, pair.repair)),
        ),
        pairs=tuple(table.played),
        failures=(*failures, *refused, *table.failures()),
        destroys=next_destroys,
        repairs=next_repairs,
        best=best,
        counts=_counts(leaders, answers, sampled, responses[first:], payoff.utility[first:], table),
        metrics={
            **written(leaders, config), **written(answers, config), **elites.metrics,
            **(heats.metrics if heats else {}), **metrics
        },
        answers=(*leaders, *answers),
        groups=groups,
        scored=Scored(
            destroys,
            tuple(responses),
            payoff.utility,
            learned_from,
            credits.selected_by,
            panel,
            tuple(rated),
            table.matrix(panel, [member.program for member in rated]),
        ),
        again=tuple(table.remeasured),
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


def _in_rows(answers: Sequence[Answers], rows: Sequence[Sequence[Prompt]]) -> list[list[Answers]]:
    """A flat list of answers cut into rows as long as those of its prompts."""
    left = iter(answers)
    return [list(islice(left, len(row))) for row in rows]


def _fresh(programs: Sequence[Program], state: State, config: Settings) -> tuple[Program, ...]:
    """The destroys that take part: with deduplicate = "run", none that an earlier round played."""
    if config.search.deduplicate == "round":
        return tuple(programs)
    seen = {destroy for destroy, _ in state.payoffs}
    return tuple(program for program in programs if program.digest not in seen)


# --- lines 13 to 17: the update, survivors and cross-play -----------------------------------------


def _learn(parts: Parts, groups: Mapping[Role, Sequence[Group]]) -> dict[str, float]:
    with parts.observer.working("update"):
        return metrics_of(parts.config.learning.update, parts.updater, groups)


def _play(parts: Parts, k: int, pairs: Sequence[Pair], kind: str, table: Table) -> None:
    look, count = parts.observer, len(table.missing(pairs))
    look.stage(k, kind, count)
    table.play(pairs, kind, lambda done, total: look.advance(count * done // total))


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
