"""Texts for a writer of both programs: the contracts of both roles, and the prompt of G-LNS that
asks for a destroy and a repair in one answer.
"""

from string import Template

from spo_jax.program import ROLES, Pair, Prompt
from spo_jax.search.writing.forms import STATELESS
from spo_jax.search.writing.prompts import Templates

JOINT = "glns-joint"


def joint_prompt(templates: Templates, problem: str, pair: Pair, state: bool) -> Prompt:
    """Both contracts, the pair, and a request for its successor.

    Its role is destroy; `parse_answer` reads either program of the answer. state: whether programs
    may use steps_since_improvement.
    """

    text = _fill(
        templates,
        "layout.txt",
        contract=contracts(templates, problem, state),
        rules=rules(templates),
        request=_fill(
            templates,
            f"{JOINT}.txt",
            destroy=pair.destroy.source.strip("\n"),
            repair=pair.repair.source.strip("\n"),
        ),
        output=_fill(templates, f"{JOINT}-output.txt"),
    )
    parents = (pair.destroy, pair.repair)
    return Prompt(
        problem, "destroy", JOINT, text + "\n", parents, None, state, kit=templates.kit,
        answer="joint",
    )  # fmt: skip


def contracts(templates: Templates, problem: str, state: bool) -> str:
    """The contracts of both roles, for a writer of both programs."""
    variant = "" if state else STATELESS
    return "\n\n".join(
        _fill(
            templates,
            f"{problem}-{role}.txt",
            state_input=_fill(templates, f"state-input{variant}.txt"),
            adaptation=_fill(
                templates, f"adaptation-{role}.txt" if state else "adaptation-stateless.txt"
            ),
            paired_destroy=_fill(templates, "joint-destroy.txt"),
        )
        for role in ROLES
    )


def rules(templates: Templates) -> str:
    """The rules of the language, for a writer of both programs."""
    return _fill(templates, "rules.txt", role="destroy or repair, as its interface says,")


def _fill(templates: Templates, file: str, /, **values: str) -> str:
    return Template(templates.texts[file]).substitute(values).strip("\n")
