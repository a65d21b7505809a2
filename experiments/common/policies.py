"""The policies of a run as they were after a round."""

from spo_jax.constants import VLLM
from spo_jax.errors import InputError
from spo_jax.generator import Generator
from spo_jax.rl.checkpoint import Checkpoints
from spo_jax.runs.folders import CHECKPOINTS
from spo_jax.runs.run import Run
from spo_jax.search.plugins import writer_and_learner


def policy_at(run: Run, number: int) -> Generator:
    """What writes for a run after a round.

    Raises InputError for a round without a checkpoint, for a run that goes on, because reading its
    checkpoints would disturb it, and for one of vLLM.
    """
    if run.config.generator.name == VLLM:
        raise InputError(f"{run.path} is sampled by vLLM, and no server is started for this")
    if run.status == "running":
        raise InputError(f"{run.path} is running: wait until it ends")
    generator, _ = writer_and_learner(run.config)
    if number:
        known: tuple[int, ...] = ()
        if hasattr(generator, "learners"):
            with Checkpoints(run.path / CHECKPOINTS) as checkpoints:
                known = checkpoints.numbers()
                if number in known:
                    # Not Policy.restore, which deletes the later ones.
                    generator.learners = checkpoints.restore(number, like=generator.learners)
        if number not in known:
            rounds = ", ".join(map(str, known)) or "none"
            raise InputError(
                f"{run.path} has no checkpoint of round {number}; there are {rounds}, and "
                "--rounds 0 is the policy before the first update"
            )
    return generator
