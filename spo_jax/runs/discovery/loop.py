"""The loop over the rounds of a method, from any state that was committed."""

from collections.abc import Callable, Sequence

from spo_jax.envs.problem import Instance
from spo_jax.search.instances import training_instances
from spo_jax.search.method import method_of, round_of, rounds_in
from spo_jax.search.parts import Method, Parts
from spo_jax.search.rounds import Round, State


def discover(
    parts: Parts,
    state: State | None = None,
    commit: Callable[[Round], None] = lambda done: None,
    method: Method | None = None,
    instances: Sequence[Instance] = (),
    over: Callable[[], bool] | None = None,
) -> State:
    """Run a method from `state` (by default the start) to its last round.

    commit: called with each finished round, before the next one starts; a run that is stopped in
        between goes on from the state that was committed, and ends in the same result.
    method: by default the one that the config names.
    instances: to train on, by default those that the config names.
    over: asked before each round whether to end, in place of counting rounds.
    Returns the state after the last round: the best pair and both populations.
    """
    config, state = parts.config, state or State()
    method = method or method_of(config)
    instances = instances or training_instances(config, parts.problem)
    last = rounds_in(method, config)
    while not (over() if over else state.round >= last):
        done = round_of(method, parts, instances, state.round + 1, state)
        commit(done)
        state = state.after(done)
        parts.observer.finished(done)
    return state
