"""The prompt of G-LNS that asks for a destroy and a repair in one answer."""

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

    def fill(file: str, **values: str) -> str:
        return Template(templates.texts[file]).substitute(values).strip("\n")

    variant = "" if state else STATELESS
    contracts = [
        fill(
            f"{problem}-{role}.txt",
            state_input=fill(f"state-input{variant}.txt"),
            adaptation=fill(f"adaptation-{role}.txt" if state else "adaptation-stateless.txt"),
            paired_destroy=fill("joint-destroy.txt"),
        )
        for role in ROLES
    ]
    text = fill(
        "layout.txt",
        contract="\n\n".join(contracts),
        rules=fill("rules.txt", role="destroy or repair, as its interface says,"),
        request=fill(
            f"{JOINT}.txt",
            destroy=pair.destroy.source.strip("\n"),
            repair=pair.repair.source.strip("\n"),
        ),
        output=fill(f"{JOINT}-output.txt"),
    )
    parents = (pair.destroy, pair.repair)
    return Prompt(
        problem, "destroy", JOINT, text + "\n", parents, None, state, kit=templates.kit,
        answer="joint",
    )  # fmt: skip
