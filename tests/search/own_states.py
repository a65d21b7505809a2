"""A state of a user's own, as runs and prompts import it."""

from spo_jax.envs.run.states import SearchState

HALF = SearchState(lambda history: history.step // 2, {"half": "half of the steps"})
