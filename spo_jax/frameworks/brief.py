"""The system message that tells another framework's model what a pair is and how it is scored."""

from importlib import resources
from string import Template

from spo_jax.envs.run.states import HIDDEN_STATE
from spo_jax.frameworks.scoring import Scorer
from spo_jax.search.utility import meaning
from spo_jax.search.writing.joint import contracts, rules
from spo_jax.search.writing.prompts import Templates


def system_message(scorer: Scorer) -> str:
    """Both contracts of the problem, the rules of the language, the form of the file, the score.

    The settings of `generator` say what contracts offer (kit, state, prompts). Of the instances it
    has their number and which limits they have. Raises InputError for a wrong folder of prompts.
    """
    config, problem = scorer.config, scorer.problem
    settings = config.generator
    templates = Templates.read(settings.prompts, problem, settings.kit != "none")
    templates = templates.with_limits(problem, scorer.instances).with_state(settings.state)
    text = resources.files(__package__).joinpath("brief.txt").read_text("utf-8")
    utility = config.evaluation.utility
    task = Template(text).substitute(
        utility=meaning(utility, maximise=problem.maximise),
        instances=len(scorer.instances),
        rollouts=config.evaluation.rollouts,
        steps=config.evaluation.steps,
        failed=f"{scorer.failed:g}",
    )
    shown = settings.state != HIDDEN_STATE
    parts = contracts(templates, problem.name, shown), rules(templates), task
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"
