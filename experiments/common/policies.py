"""The policies of a run as they were after a round, and the prompts that they are asked."""

from collections.abc import Callable

from spo_jax.constants import VLLM
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError
from spo_jax.generator import Generator
from spo_jax.program import Program, Prompt, Role
from spo_jax.program.grammar.base import INITIALIZATION
from spo_jax.rl.checkpoint import Checkpoints
from spo_jax.runs.folders import CHECKPOINTS, locked
from spo_jax.runs.run import Run
from spo_jax.search.instances import training_instances
from spo_jax.search.plugins import writer_and_learner
from spo_jax.search.writing.contexts import PromptMaker
from spo_jax.search.writing.prompts import Templates


def kept_rounds(run: Run) -> tuple[int, ...]:
    """The rounds whose policies are known, from 0: the policy before the first update.

    Raises InputError for a run that goes on, because reading its checkpoints would disturb it, and
    for one of vLLM.
    """
    if run.config.generator.name == VLLM:
        raise InputError(f"{run.path} is sampled by vLLM, and no server is started for this")
    if run.status == "running" or locked(run.path):
        raise InputError(f"{run.path} is running: wait until it ends")
    folder = run.path / CHECKPOINTS
    if not folder.exists():
        return (0,)
    with Checkpoints(folder) as checkpoints:
        # A run that was killed may have a checkpoint of a round that was not committed.
        return (0, *(number for number in checkpoints.numbers() if number <= run.rounds))


def policy_at(run: Run, number: int) -> Generator:
    """What writes for a run after a round.

    Raises InputError for a round without a checkpoint, and as `kept_rounds`.
    """
    known = kept_rounds(run)
    if number not in known:
        rounds = ", ".join(map(str, known[1:])) or "none"
        raise InputError(
            f"{run.path} has no checkpoint of round {number}; there are {rounds}, and round 0 is "
            "the policy before the first update"
        )
    generator, _ = writer_and_learner(run.config)
    if number and hasattr(generator, "learners"):
        with Checkpoints(run.path / CHECKPOINTS) as checkpoints:
            # Not Policy.restore, which deletes the later ones.
            generator.learners = checkpoints.restore(number, like=generator.learners)
    return generator


def first_prompts(run: Run) -> Callable[[Role, Program | None], Prompt]:
    """The run's prompt of a first round, by role and by the destroy that a repair answers."""
    problem = get_problem(run.config.problem)
    training = training_instances(run.config, problem)
    templates = Templates.of(run.config.generator, problem, training)
    maker = PromptMaker(run.config, problem.name, templates)
    return lambda role, destroy: maker.fitted(role, INITIALIZATION, (), destroy)
